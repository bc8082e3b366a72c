package schedsim

import (
	"fmt"
	"strings"
	"time"

	"baton/core/room"
	"baton/proof/explore"
)

// Event is one choice of the scheduler.
type Event struct {
	Kind   Kind
	Room   uint8 // 0-based, of those that are about one
	Branch uint8 // the same
}

// Kind of choice.
type Kind uint8

const (
	ask    Kind = iota // a request arrives
	home               // the engine step comes home
	begun              // the driver fed a first token
	linkUp             // the dial succeeds
	arrive             // a chunk's header is read
	place              // its bytes are placed
	word               // prefill's final word arrives
	expire             // a deadline
	fails              // the engine step fails
	stops              // the step comes home, and a room's output ends with it
	unbegun
	only   // a first token is fed, and its output ends with it
	breaks // the link ends
	leave  // a client leaves
	again  // another room like one that is over arrives: it always comes
	kinds
)

var kindTable = [kinds]struct {
	class explore.Class
	name  string
}{
	ask:     {explore.Progress, "gateway ── Request ──▶ worker"},
	home:    {explore.Progress, "engine step done"},
	begun:   {explore.Progress, "first token fed"},
	linkUp:  {explore.Delivery, "linked"},
	arrive:  {explore.Delivery, "chunk arrives"},
	place:   {explore.Delivery, "chunk is placed"},
	word:    {explore.Delivery, "prefill ── Settled ──▶ decode"},
	expire:  {explore.Timer, "deadline"},
	fails:   {explore.Fault, "engine step fails"},
	stops:   {explore.Environment, "engine step done, its output ends"},
	unbegun: {explore.Fault, "first token makes no sense"},
	only:    {explore.Environment, "first token fed, its output ends"},
	breaks:  {explore.Fault, "the link ends"},
	leave:   {explore.Environment, "client leaves"},
	again:   {explore.Progress, "gateway ── another Request ──▶ worker"},
}

// Class says what kind of event e is.
func (y *System) Class(e Event) explore.Class { return kindTable[e.Kind].class }

// Name says what e does, in a chart.
func (y *System) Name(_ *World, e Event) string {
	switch e.Kind {
	case home, fails, linkUp, breaks:
		return kindTable[e.Kind].name
	}
	if e.Branch > 0 {
		return fmt.Sprintf("r%d.%d %s", e.Room+1, e.Branch, kindTable[e.Kind].name)
	}
	return fmt.Sprintf("r%d %s", e.Room+1, kindTable[e.Kind].name)
}

// Events appends everything that is possible in w.
func (y *System) Events(w *World, evs []Event) []Event {
	sc := &y.scope
	add := func(k Kind, r uint8) { evs = append(evs, Event{Kind: k, Room: r}) }
	for r := range uint8(len(sc.Rooms)) {
		s := &w.rooms[r]
		switch {
		case !s.asked:
			add(ask, r)
		case s.over && sc.Rooms[r].Endless:
			add(again, r)
		}
		if sc.Abort && s.owed && !s.gone {
			add(leave, r)
		}
		for n := range uint8(sc.Rooms[r].branches()) {
			if !s.out[n].begin {
				continue
			}
			evs = append(evs, Event{begun, r, n})
			if sc.BegunFails {
				evs = append(evs, Event{unbegun, r, n})
			}
			if sc.Early && sc.Rooms[r].branches() > 1 && !y.last(w, r, n) {
				evs = append(evs, Event{only, r, n})
			}
		}
		if s.send.isOpen && !s.send.isIn && !s.send.isPlaced && w.link.up {
			add(arrive, r)
		}
		if s.send.isIn {
			add(place, r)
		}
		if s.send.isOpen && !s.send.said && w.link.up {
			add(word, r)
		}
	}
	if w.step != nil {
		add(home, 0)
		if sc.StepFails {
			add(fails, 0)
		}
		for _, it := range w.step {
			if r, n := uint8(it.Room-1), uint8(it.Branch); sc.Early && !it.Prefill && !y.last(w, r, n) {
				evs = append(evs, Event{stops, r, n})
			}
		}
	}
	if w.link.dialing {
		add(linkUp, 0)
	}
	if w.link.up && w.link.breaks > 0 {
		add(breaks, 0)
	}
	for _, t := range w.core.Timers {
		if t.Kind == room.DeadlineTimer {
			add(expire, uint8(t.Room-1))
		}
	}
	return evs
}

// last says that the token which is made for a branch is the last that it may have.
func (y *System) last(w *World, r, branch uint8) bool {
	return int(w.rooms[r].out[branch].fed)+1 == y.scope.Rooms[r].MaxNew
}

// Columns of a chart.
func (y *System) Columns() []string { return []string{"rooms", "free"} }

// Cells of a chart.
func (y *System) Cells(w *World, dst []string) []string {
	var all []string
	for _, rooms := range []func(func(room.View) bool){w.core.Rooms, w.core.Ended} {
		for v := range rooms {
			all = append(all, fmt.Sprintf("r%d:%s", v.Room, v.Phase))
		}
	}
	n := w.core.Blocks()
	return append(dst, strings.Join(all, " "), fmt.Sprintf("%d/%d", n.Free+n.Cached, n.Total))
}

// Stuck names what never ends.
func (y *System) Stuck(w *World) string {
	var all []string
	for v := range w.core.Rooms {
		if !y.scope.Rooms[v.Room-1].Endless {
			all = append(all, fmt.Sprintf("room %d stays in %s, waits for %s", v.Room, v.Phase, v.WaitsFor))
		}
	}
	return strings.Join(all, "; ")
}

// Witnesses, in the order of their bits.
const (
	sawSuccess = iota
	sawAborted
	sawFailed
	sawDeadline
	sawRetracted
	sawTwice     // the same room was retracted twice
	sawAgain     // what was retracted is computed again
	sawReturned  // success of a room that was retracted
	sawKept      // success of a room that was not, while another was
	sawLeft      // a room that was retracted ended before it ran again
	sawSatOut    // a room that generates waits for a block
	sawUnbegun   // retracted before its first token
	sawPairAgain // KV that had come over the link is computed again
	sawEarly     // success of a room whose output ended before its longest
	sawMany      // success of a room of several outputs
	sawCopied    // one of them copied the last block of the prompt
	sawLess      // a room ran on with fewer outputs than it had
	sawManyRetracted
	sawSuccessor // another room came after one that was over
)

// Witnesses names what may be seen.
func (y *System) Witnesses() []string {
	return []string{"success", "aborted", "failed", "deadline", "retracted", "retracted twice", "computed again", "success after retraction",
		"oldest kept", "ended while retracted", "sat out", "retracted before its first token", "pair computed again", "ended early",
		"several outputs", "block copied", "one output over before another", "several outputs retracted", "a successor"}
}

// Shows returns what the last event showed.
func (y *System) Shows(w *World) uint64 { return w.shows }

// armed lists the rooms whose deadline runs, one bit each.
func (w *World) armed() (rooms uint8) {
	w.core.Timers(func(_ time.Duration, t room.Timer) bool {
		if t.Kind == room.DeadlineTimer {
			rooms |= 1 << (t.Room - 1)
		}
		return true
	})
	return rooms
}

var (
	_ explore.System[World, Event] = (*System)(nil)
	_ explore.Copier[World]        = (*System)(nil)
	_ explore.Witness[World]       = (*System)(nil)
	_ explore.Drawer[World]        = (*System)(nil)
	_ explore.Finder[World]        = (*System)(nil)
)
