package poolsim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
)

// Event is one choice of the scheduler in a world with rooms.
type Event struct {
	Kind  Kind
	Room  room.ID
	Chunk int32 // of a write; of a first token its branch
}

// Kind of choice.
type Kind uint8

const (
	Come        Kind = iota // the gateway's Request and decode's Prealloc are here
	Alone                   // the Request is here, the Prealloc is lost
	Abort                   // the gateway gives the leg up
	Home                    // the step comes home, well for all of its rooms
	Fails                   // the step comes home, and failed for Room
	Written                 // a write comes home
	Unwritten               // a write failed
	Deadline                // of a room
	First                   // the first token of a room is known
	SourceHome              // prefill's step comes home
	SourceFails             // and failed for Room
	Told                    // prefill hears decode's next message
	Heard                   // decode hears prefill's next word
	Arrives                 // a chunk is at decode
	Placed                  // its receiver has left
	Over                    // the time of the pins that end by Chunk is over
	kinds
)

var kindNames = [kinds]string{"a room comes", "a room comes alone", "abort", "the step comes home", "the step fails", "a write comes home", "a write fails", "deadline", "first token", "prefill's step comes home", "prefill's step fails",
	"prefill hears decode", "decode hears prefill", "a chunk arrives", "a chunk is placed", "pins are over"}

func (k Kind) String() string { return kindNames[k] }

var (
	_ explore.System[PrefillWorld, Event]      = (*Prefills)(nil)
	_ explore.Copier[PrefillWorld]             = (*Prefills)(nil)
	_ explore.Witness[PrefillWorld]            = (*Prefills)(nil)
	_ explore.Drawer[PrefillWorld]             = (*Prefills)(nil)
	_ explore.Finder[PrefillWorld]             = (*Prefills)(nil)
	_ explore.System[LocalWorld, Event]        = (*Locals)(nil)
	_ explore.Copier[LocalWorld]               = (*Locals)(nil)
	_ explore.Witness[LocalWorld]              = (*Locals)(nil)
	_ explore.Drawer[LocalWorld]               = (*Locals)(nil)
	_ explore.Finder[LocalWorld]               = (*Locals)(nil)
	_ explore.System[HolderWorld, HolderEvent] = (*Holders)(nil)
	_ explore.Copier[HolderWorld]              = (*Holders)(nil)
	_ explore.Witness[HolderWorld]             = (*Holders)(nil)
	_ explore.Drawer[HolderWorld]              = (*Holders)(nil)
)

func (s *Prefills) Class(e Event) explore.Class {
	switch e.Kind {
	case Abort, Over:
		return explore.Environment
	case Alone, Fails, Unwritten:
		return explore.Fault
	case Deadline:
		return explore.Timer
	}
	return explore.Progress
}

func (s *Prefills) Events(w *PrefillWorld, dst []Event) []Event {
	for i := range w.rooms {
		r, id := &w.rooms[i], room.ID(i+1)
		switch {
		case !r.came:
			dst = append(dst, Event{Kind: Come, Room: id})
			if s.scope.Lose {
				dst = append(dst, Event{Kind: Alone, Room: id})
			}
		case !r.ended && w.core.PhaseOf(id) != prefill.Draining.String():
			if s.scope.Abort {
				dst = append(dst, Event{Kind: Abort, Room: id})
			}
			if s.scope.Lose {
				dst = append(dst, Event{Kind: Deadline, Room: id})
			}
		}
	}
	if w.step != nil {
		dst = append(dst, Event{Kind: Home})
		for i := range w.step {
			if s.scope.StepFails {
				dst = append(dst, Event{Kind: Fails, Room: w.step[i].Room})
			}
		}
	}
	dst = w.mem.ends(dst)
	for i, x := range w.writes {
		if !s.scope.AnyOrder && slices.ContainsFunc(w.writes[:i], func(y writing) bool { return y.room == x.room }) {
			continue
		}
		dst = append(dst, Event{Written, x.room, x.chunk})
		if s.scope.WriteFails {
			dst = append(dst, Event{Unwritten, x.room, x.chunk})
		}
	}
	return dst
}

func (s *Prefills) Apply(w *PrefillWorld, e Event) error {
	w.shows = 0
	if s.Class(e) != explore.Progress && e.Kind != Over {
		w.rooms[e.Room-1].harmed = true
	}
	switch e.Kind {
	case Come:
		w.rooms[e.Room-1].came = true
		if err := s.feed(w, s.request(e.Room)); err != nil {
			return err
		}
		return s.feed(w, s.prealloc(e.Room))
	case Alone:
		w.rooms[e.Room-1].came = true
		return s.feed(w, s.request(e.Room))
	case Abort:
		if slices.ContainsFunc(w.step, func(it prefill.StepItem) bool { return it.Room == e.Room && !it.Last }) {
			w.show(midway)
		}
		return s.feed(w, prefill.Event{Kind: prefill.Abort, Room: e.Room})
	case Deadline:
		w.show(late)
		return s.feed(w, prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: e.Room}})
	case Home, Fails:
		if e.Kind == Fails {
			w.show(failed)
		}
		return s.home(w, e.Room)
	case Over:
		w.shows |= w.mem.over(uint8(e.Chunk))
		return s.feedAt(w, time.Duration(e.Chunk), prefill.Event{Kind: prefill.TimerFired})
	}
	i := slices.IndexFunc(w.writes, func(x writing) bool { return x.room == e.Room && x.chunk == e.Chunk })
	w.writes = slices.Delete(w.writes, i, i+1)
	return s.feed(w, prefill.Event{Kind: prefill.WriteDone, Room: e.Room, Lease: leaseOf(e.Room), Chunk: e.Chunk, OK: e.Kind == Written})
}

// Key: the core's state names cached blocks by key and held ones by their place in a table; what
// they hold follows, if there is no mistake.
func (s *Prefills) Key(w *PrefillWorld, b []byte) []byte {
	b = w.core.AppendState(b)
	for i := range w.rooms {
		r, prompt := &w.rooms[i], s.scope.Prompts[i]
		b = append(b, flag(r.came)|flag(r.ended)<<1|flag(r.success)<<2|flag(r.harmed)<<3, byte(r.sent), byte(r.found))
		b = w.mem.appendHolds(b, prompt, r.table)
	}
	b = append(b, byte(len(w.step)), byte(len(w.writes)))
	for _, x := range w.writes {
		b = append(binary.AppendUvarint(b, uint64(x.room)), byte(x.chunk))
	}
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// What the worlds may show.
const (
	success = iota
	hit
	shared
	wasEvicted
	private
	served
	midway
	failed
	late
	apart
	proven
	retracted
	refound
	wentOn
	unsent
	unlike
	several
	spoken
	joined
	isPinned
	otherPinned
	pinOver
	sightsAll
)

var sights = [sightsAll]string{"success", "hit", "shared by two", "evicted", "private copy", "success after a hit", "abort in mid-prefill",
	"failed step", "deadline", "quarantined while shared", "cleared", "retracted", "found after a retraction", "success after a retraction", "sent in part", "legs differ",
	"success of several outputs", "output found", "waited for another's prefix", "pinned", "pinned for a copy", "a pin is over"}

func (w *PrefillWorld) show(i int) { w.shows |= 1 << i }

func (s *Prefills) Witnesses() []string          { return sights[:] }
func (s *Prefills) Shows(w *PrefillWorld) uint64 { return w.shows }

func (s *Prefills) Columns() []string {
	return columns(s.scope.Prompts)
}

func columns(prompts []string) (c []string) {
	for i, p := range prompts {
		c = append(c, fmt.Sprintf("room %d %q", i+1, p))
	}
	return append(c, "pool")
}

func (s *Prefills) Cells(w *PrefillWorld, dst []string) []string {
	for i := range w.rooms {
		cell := w.core.PhaseOf(room.ID(i + 1))
		if t := w.rooms[i].table; t != nil {
			cell += " " + fmt.Sprint(t)
		}
		dst = append(dst, cell)
	}
	return append(dst, w.mem.String())
}

// String shows what is in use.
func (m *memory) String() string {
	var all []string
	for b, used := range m.used {
		if used {
			all = append(all, fmt.Sprintf("%d:%q", b, m.bytes[b]))
		}
	}
	return strings.Join(all, " ")
}

func (s *Prefills) Stuck(w *PrefillWorld) string { return stuck(w.core.Rooms) }

// stuck says what the rooms of a core wait for.
func stuck(rooms func(yield func(room.View) bool)) string {
	var what []string
	rooms(func(v room.View) bool {
		what = append(what, fmt.Sprintf("room %d stays in %s and waits for %s", v.Room, v.Phase, v.WaitsFor))
		return true
	})
	return strings.Join(what, "; ")
}

func (s *Prefills) Name(_ *PrefillWorld, e Event) string {
	switch e.Kind {
	case Home:
		return e.Kind.String()
	case Over:
		return fmt.Sprintf("%s (%d)", e.Kind, e.Chunk)
	case Written, Unwritten:
		return fmt.Sprintf("room %d: %s (chunk %d)", e.Room, e.Kind, e.Chunk)
	}
	return fmt.Sprintf("room %d: %s", e.Room, e.Kind)
}
