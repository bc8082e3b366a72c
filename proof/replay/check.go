package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"baton/core/room"
	"baton/serve/recorder"
)

// Report is what replaying one file brought.
type Report struct {
	File     string
	Head     recorder.Header
	Events   int           // that were told to a fresh core
	Bytes    int64         // of them
	Span     time.Duration // from the first to the last
	Rooms    int           // that had an end; requests for a gateway
	Outcomes map[room.Outcome]int
	Live     int // rooms that had none when the file ended
	Longest  time.Duration
	Whose    string       // the room that took longest
	End      recorder.End // why the file ends; EndUnknown: its process was killed, or writes on
	Torn     int          // bytes of a last line that was cut
	Panic    string       // what the core said as it panicked, where the file says that it did
	Differs  *Difference  // nil: the core did again what it did
	lived    map[uint64]time.Duration
}

// Difference is the first step in which a fresh core did something else. What follows it in the
// file was not looked at.
type Difference struct {
	Line     int
	Now      time.Duration
	Event    string
	Recorded []string // effects
	Made     []string
	Panic    string        // what the core said, if it panicked
	Clock    time.Duration // where the clock stood before, if it fell
	Expected bool          // the file says that the core panicked, and it did not
	Keys     []uint64
}

// moment is one step, for those who watch.
type moment struct {
	of      *Report
	line    int
	now     time.Duration
	rid     string
	event   any   // *E
	effects []any // *X, as the core made them
	phase   func(key uint64) string
}

// Check replays the file.
func Check(file string) (*Report, error) { return play(file, nil) }

// play replays the file and shows every step to watch, if there is one.
func play(file string, watch func(*moment)) (*Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer f.Close()
	return read(file, f, watch)
}

// read replays what comes from in.
func read(file string, in io.Reader, watch func(*moment)) (*Report, error) {
	r := &Report{File: file, Outcomes: map[room.Outcome]int{}, lived: map[uint64]time.Duration{}}
	lines := &lines{in: bufio.NewReaderSize(in, 1<<16)}
	first, err := lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return r, fmt.Errorf("replay: %s: %w", recorder.Printable(file), err)
	}
	if r.Head, err = recorder.ParseHeader(first); err != nil {
		if len(first) == 0 && lines.torn == 0 {
			err = errors.New("the file is empty")
		}
		return r, fmt.Errorf("replay: %s: %w", recorder.Printable(file), err)
	}
	for _, text := range []*string{&r.Head.Role, &r.Head.Name, &r.Head.Boot, &r.Head.Build} {
		*text = recorder.Printable(*text) // reports show them to a terminal
	}
	switch r.Head.Core {
	case recorder.CorePrefill:
		err = run(r, lines, newPrefill, watch)
	case recorder.CoreDecode:
		err = run(r, lines, newDecode, watch)
	case recorder.CoreRelay:
		err = run(r, lines, newRelay, watch)
	default:
		err = fmt.Errorf("a trace of a %q core, this build has %s, %s and %s", r.Head.Core, recorder.CorePrefill, recorder.CoreDecode, recorder.CoreRelay)
	}
	if err != nil {
		return r, fmt.Errorf("replay: %s: %w%s", recorder.Printable(file), err, r.foreign())
	}
	return r, nil
}

// foreign says that the file was written by another build, which explains what is strange in it.
func (r *Report) foreign() string {
	b := recorder.Build()
	switch {
	case r.Head.Build == b && strings.HasSuffix(b, "+"): // not even the program could be read
		return " (which build wrote the file is not known)"
	case r.Head.Build != b:
		return fmt.Sprintf(" (build %s wrote the file, this is %s)", r.Head.Build, b)
	}
	return ""
}

// lines reads whole lines of a bounded length.
type lines struct {
	in   *bufio.Reader
	n    int // of the line returned last
	torn int // bytes of a last line without an end
	long []byte
}

// next returns the next line without its end, io.EOF behind the last whole one.
func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		b, err := l.in.ReadSlice('\n')
		if len(l.long)+len(b) > recorder.LineMax {
			return nil, fmt.Errorf("line %d has more than %d bytes", l.n+1, recorder.LineMax)
		}
		switch {
		case err == nil && len(l.long) == 0:
			l.n++
			return b[:len(b)-1], nil
		case err == nil:
			l.n++
			l.long = append(l.long, b...)
			return l.long[:len(l.long)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, b...)
		case errors.Is(err, io.EOF):
			l.torn = len(l.long) + len(b)
			return nil, io.EOF
		default:
			return nil, err
		}
	}
}

// run tells a fresh core all events of the file, up to the first difference.
func run[E, X any](r *Report, in *lines, fresh func(config []byte) (*machine[E, X], error), watch func(*moment)) error {
	m, err := fresh(r.Head.Config)
	if err != nil {
		return err
	}
	var buf []byte
	var began, clock time.Duration
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			r.Torn = in.torn
			r.Live = len(r.lived)
			return nil
		} else if err != nil {
			return err
		}
		l, err := m.lines.Parse(line)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", in.n, err)
		case r.End != recorder.EndUnknown:
			return fmt.Errorf("line %d stands behind the end", in.n)
		case l.Events != r.Events && l.End != recorder.EndUnknown:
			return fmt.Errorf("line %d says that there are %d events, there are %d: some are missing", in.n, l.Events, r.Events)
		}
		if r.End = l.End; l.End != recorder.EndUnknown && l.End != recorder.EndPanic {
			continue
		}
		if r.Events == 0 {
			began = l.Now
		}
		r.Events, r.Bytes, r.Span = r.Events+1, r.Bytes+int64(len(line))+1, l.Now-began
		if l.Now < clock { // a core may not mind, but no driver's clock does that
			r.Differs = differs(m, in.n, &l, nil, "")
			r.Differs.Clock = clock
			return nil
		}
		clock = l.Now
		made, fell := attempt(m, &l)
		if l.End == recorder.EndPanic && fell != "" {
			r.Panic = fell
			continue
		}
		buf = m.lines.AppendEffects(buf[:0], made)
		if fell != "" || l.End == recorder.EndPanic || len(made) != len(l.Effects) || !same(m, buf, &l) {
			r.Differs = differs(m, in.n, &l, made, fell)
			return nil
		}
		tally(r, m, &l, made)
		if watch != nil {
			watch(momentOf(r, m, in.n, &l, made))
		}
	}
}

// attempt steps the core; fell is what it said as it panicked.
func attempt[E, X any](m *machine[E, X], l *recorder.Line[E, X]) (made []X, fell string) {
	defer func() {
		if p := recover(); p != nil {
			made, fell = nil, fmt.Sprint(p)
		}
	}()
	return m.step(l.Now, &l.Event), ""
}

// same says whether effects written as b are those of the line, however that is written.
func same[E, X any](m *machine[E, X], b []byte, l *recorder.Line[E, X]) bool {
	return bytes.Equal(b, l.Wrote) || bytes.Equal(b, m.lines.AppendEffects(nil, l.Effects))
}

func momentOf[E, X any](r *Report, m *machine[E, X], line int, l *recorder.Line[E, X], made []X) *moment {
	w := &moment{of: r, line: line, now: l.Now, rid: l.RID, event: &l.Event, phase: m.phase}
	for i := range made {
		w.effects = append(w.effects, &made[i])
	}
	return w
}

func differs[E, X any](m *machine[E, X], line int, l *recorder.Line[E, X], made []X, fell string) *Difference {
	d := &Difference{Line: line, Now: l.Now, Event: string(m.lines.AppendEvent(nil, &l.Event)), Panic: fell, Expected: l.End == recorder.EndPanic}
	d.Keys = keysOf(&l.Event)
	for i := range l.Effects {
		d.Recorded = append(d.Recorded, string(m.lines.AppendEffect(nil, &l.Effects[i])))
	}
	for i := range made {
		d.Made = append(d.Made, string(m.lines.AppendEffect(nil, &made[i])))
	}
	// First the rooms of what differs, then those of the event.
	var first []uint64
	for i := range max(len(made), len(l.Effects)) {
		if i < len(made) && i < len(l.Effects) && d.Made[i] == d.Recorded[i] {
			continue
		}
		if i < len(l.Effects) {
			first = append(first, keysOf(&l.Effects[i])...)
		}
		if i < len(made) {
			first = append(first, keysOf(&made[i])...)
		}
	}
	d.Keys = unique(append(first, d.Keys...))
	return d
}

// tally counts rooms and their ends.
func tally[E, X any](r *Report, m *machine[E, X], l *recorder.Line[E, X], made []X) {
	if key, ok := m.came(&l.Event); ok {
		r.lived[key] = l.Now
	}
	for i := range made {
		if key, ok := m.began(&made[i]); ok {
			r.lived[key] = l.Now
		}
		e, ok := m.ended(&made[i])
		if !ok {
			continue
		}
		since, lived := r.lived[e.key]
		switch {
		case e.half:
			since = e.since
		case !lived: // refused
			since = l.Now
		default:
			delete(r.lived, e.key)
		}
		r.Rooms++
		r.Outcomes[e.outcome]++
		if took := l.Now - since; took > r.Longest || r.Whose == "" {
			r.Longest, r.Whose = took, nameOf(r.Head.Core, e.key)
		}
	}
}

// nameOf is how people call what a core keeps under a key.
func nameOf(core string, key uint64) string {
	if core == recorder.CoreRelay {
		return fmt.Sprintf("request %d", key)
	}
	return "room " + room.ID(key).String()
}
