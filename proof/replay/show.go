package replay

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"baton/core/room"
	"baton/serve/recorder"
)

// String is the report on one line, and the difference below it if there is one.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %d events in %v, ", recorder.Printable(r.File), r.Head.Name, r.Events, r.Span.Round(time.Millisecond))
	what := "rooms"
	if r.Head.Core == recorder.CoreRelay {
		what = "requests"
	}
	fmt.Fprintf(&b, "%d %s", r.Rooms, what)
	if r.Rooms > 0 {
		fmt.Fprintf(&b, " (%s; longest %v, %s)", tallied(r.Outcomes), r.Longest.Round(time.Millisecond), r.Whose)
	}
	fmt.Fprintf(&b, "; %s", r.ending())
	if r.Differs != nil {
		fmt.Fprintf(&b, "\n%s", r.Differs.show(r))
	}
	return b.String()
}

func tallied(all map[room.Outcome]int) string {
	outcomes := make([]room.Outcome, 0, len(all))
	for o := range all {
		outcomes = append(outcomes, o)
	}
	slices.SortFunc(outcomes, func(a, b room.Outcome) int { return all[b] - all[a] + int(a.Cause) - int(b.Cause) })
	words := make([]string, len(outcomes))
	for i, o := range outcomes {
		words[i] = fmt.Sprintf("%d %s", all[o], o)
	}
	return strings.Join(words, ", ")
}

// ending says how far the file goes.
func (r *Report) ending() string {
	live := ""
	if r.Live > 0 {
		live = fmt.Sprintf(", %d live", r.Live)
	}
	switch {
	case r.Differs != nil:
		return "DIFFERS"
	case r.Panic != "":
		return "the core panicked in the last of them, then and now: " + r.Panic
	case r.End == recorder.EndFull:
		return "the file is full there, what came later is not in it" + live
	case r.End == recorder.EndOverrun:
		return "EVENTS ARE MISSING from there on: they came faster than they could be written" + live
	case r.End == recorder.EndUnwritten:
		return "the file could not be written to any more, what came later is not in it" + live
	case r.End == recorder.EndClosed:
		return "closed" + live
	case r.Torn > 0:
		return fmt.Sprintf("its process was killed, still writes, or could write no more: the last line is cut, after %d bytes%s", r.Torn, live)
	}
	return "its process was killed, still writes, or could write no more" + live
}

// show says what is different, effect by effect.
func (d *Difference) show(r *Report) string {
	var b strings.Builder
	if d.Clock > 0 || d.Now < 0 {
		fmt.Fprintf(&b, "line %d, at %v: the clock fell, it stood at %v%s\n    event     %s\n", d.Line, d.Now, d.Clock, r.foreign(), d.Event)
		return b.String()
	}
	fmt.Fprintf(&b, "line %d, at %v: a fresh core does something else%s\n", d.Line, d.Now, r.foreign())
	fmt.Fprintf(&b, "    event     %s\n", d.Event)
	for i := range max(len(d.Recorded), len(d.Made)) {
		switch {
		case i < len(d.Recorded) && i < len(d.Made) && d.Recorded[i] == d.Made[i]:
			fmt.Fprintf(&b, "    both      %s\n", d.Made[i])
			continue
		case i < len(d.Recorded):
			fmt.Fprintf(&b, "  - recorded  %s\n", d.Recorded[i])
		}
		if i < len(d.Made) {
			fmt.Fprintf(&b, "  + the core  %s\n", d.Made[i])
		}
	}
	switch {
	case d.Panic != "":
		fmt.Fprintf(&b, "  + the core  panics: %s\n", d.Panic)
	case d.Expected:
		b.WriteString("  - recorded  the core panicked; a fresh one does not\n")
	case len(d.Recorded) == 0:
		b.WriteString("  - recorded  no effect\n")
	case len(d.Made) == 0:
		b.WriteString("  + the core  no effect\n")
	}
	return b.String()
}

// drawnMax is how many rooms of a difference are drawn.
const drawnMax = 2

// Draw draws the rooms that the difference is about, up to it.
func (d *Difference) Draw(r *Report) (string, error) {
	if once(r.File) {
		return "the rooms of it are not drawn: " + onceWords + "\n", nil
	}
	var b strings.Builder
	for _, key := range d.Keys[:min(len(d.Keys), drawnMax)] {
		f := &Film{reels: []*reel{{file: r.File, head: r.Head}}}
		if err := f.shoot(0, []uint64{key}, d.Line); err != nil {
			return "", err
		}
		if s, err := f.chart(); err == nil { // it may be new in that step
			fmt.Fprintf(&b, "%s, before that:\n%s", nameOf(r.Head.Core, key), s)
		}
	}
	return b.String(), nil
}

// onceWords say what a film wants of a file.
const onceWords = "a film needs a file that can be read twice"

// once says that a file is a pipe or another thing whose bytes are gone when they were read.
func once(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular()
}
