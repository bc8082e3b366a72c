package poolsim

import (
	"fmt"
	"slices"
	"time"

	"baton/core/prefill"
	"baton/core/room"
)

// PrefillScope sizes a world around core/prefill and says what may go wrong in it.
type PrefillScope struct {
	Prompts    []string // one room each, a letter for a full block
	Tail       int      // tokens of every prompt behind its full blocks
	Blocks     int
	Running    int  // rooms that may be in flight at once
	Chunk      int  // blocks of a step
	Abort      bool // the gateway may end a leg at any moment
	StepFails  bool // an engine step may fail for a room
	WriteFails bool
	Lose       bool    // a Prealloc may be lost: only the deadline is left
	AnyOrder   bool    // writes of a room come home in any order
	Pin        []uint8 // until when each room pins what it leaves; all end well then; nil: none does
	PinnedMax  int
}

// PrefillWorld is one state: the core, and what is around it.
type PrefillWorld struct {
	core   prefill.Core
	mem    memory
	rooms  []prefillRoom
	step   []prefill.StepItem // outstanding, or nil
	writes []writing          // under way
	shows  uint64             // witnesses of the last event
	out    prefill.Effects
}

// prefillRoom is what the world knows of a room.
type prefillRoom struct {
	came, ended, success bool
	harmed               bool    // it was given up, or something failed for it
	sent                 int     // blocks handed to writes
	table                []int32 // of the core's; nil while it has none, or no more
	found                int     // blocks of table that it found
}

// writing is a write under way.
type writing struct {
	room   room.ID
	chunk  int32
	blocks []int32
}

// Prefills explores a scope.
type Prefills struct{ scope PrefillScope }

// NewPrefills returns the system of a scope.
func NewPrefills(sc PrefillScope) *Prefills { return &Prefills{sc} }

func (s *Prefills) Init() PrefillWorld {
	sc := &s.scope
	c := prefill.New(prefill.Config{Blocks: sc.Blocks, QueuedMax: len(sc.Prompts), RunningMax: sc.Running, ChunkTokens: sc.Chunk * room.BlockTokens, PinnedMax: sc.PinnedMax})
	return PrefillWorld{core: *c, mem: newPins(sc.Blocks, sc.Pin), rooms: make([]prefillRoom, len(sc.Prompts))}
}

func (s *Prefills) Clone(w *PrefillWorld) PrefillWorld {
	var d PrefillWorld
	s.CopyInto(&d, w)
	return d
}

func (s *Prefills) CopyInto(dst, src *PrefillWorld) {
	src.core.CopyTo(&dst.core)
	src.mem.copyTo(&dst.mem)
	dst.rooms = append(dst.rooms[:0], src.rooms...)
	dst.writes = append(dst.writes[:0], src.writes...)
	dst.step, dst.shows = src.step, 0
}

// Done: whoever came has ended and nothing is held or under way.
func (s *Prefills) Done(w *PrefillWorld) bool {
	for i := range w.rooms {
		if r := &w.rooms[i]; !r.came || !r.ended {
			return false
		}
	}
	return w.step == nil && len(w.writes) == 0 && w.core.Idle() && w.core.Blocks().Held == 0
}

func (s *Prefills) tokens(id room.ID) int {
	return len(s.scope.Prompts[id-1])*room.BlockTokens + s.scope.Tail
}

func leaseOf(id room.ID) room.Lease { return room.Lease{Boot: 1, Seq: uint64(id)} }

// users counts the rooms that have a block in their table.
func (w *PrefillWorld) users(b int32) (n int) {
	for i := range w.rooms {
		if slices.Contains(w.rooms[i].table, b) {
			n++
		}
	}
	return n
}

func (w *PrefillWorld) held(b int32) bool { return w.users(b) > 0 }

// busy says that a write or the outstanding step is in a block.
func (w *PrefillWorld) busy(b int32) bool { return w.read(b) || w.written(b) }

func (w *PrefillWorld) read(b int32) bool {
	return slices.ContainsFunc(w.writes, func(x writing) bool { return slices.Contains(x.blocks, b) })
}

// written says that the outstanding step writes to a block.
func (w *PrefillWorld) written(b int32) bool {
	return slices.ContainsFunc(w.step, func(it prefill.StepItem) bool {
		return slices.Contains(it.Blocks[it.From/room.BlockTokens:room.BlocksFor(int(it.To))], b)
	})
}

// feed steps the core and does what it says.
func (s *Prefills) feed(w *PrefillWorld, ev prefill.Event) error { return s.feedAt(w, 0, ev) }

func (s *Prefills) feedAt(w *PrefillWorld, now time.Duration, ev prefill.Event) error {
	w.out.Reset()
	before := w.mem.found(s.scope.Prompts, w.core.Found)
	w.core.Step(now, ev, &w.out)
	for _, x := range w.out.List {
		if x.Kind == prefill.End && s.scope.Pin != nil {
			r := x.Room - 1
			w.shows |= w.mem.pin(s.scope.Prompts[r], w.rooms[r].table, s.scope.Pin[r], s.scope.PinnedMax, w.mem.first(before, w.core.Found))
		}
	}
	had := uint64(0) // rooms with blocks before the event
	for i := range w.rooms {
		had |= uint64(flag(w.rooms[i].table != nil)) << i
	}
	for i := range w.out.List {
		if err := s.do(w, &w.out.List[i]); err != nil {
			return err
		}
	}
	if err := s.inTurn(w, had); err != nil {
		return err
	}
	if err := w.mem.checkedPins(w.core.Pinned()); err != nil {
		return err
	}
	return w.mem.checked(s.scope.Prompts, w.core.Blocks(), w.core.Found, w.held)
}

// inTurn checks who got blocks: nobody before one who came earlier and waits for them, and not for
// another that computes what it begins with.
func (s *Prefills) inTurn(w *PrefillWorld, had uint64) (err error) {
	waits := room.ID(0)
	w.core.Rooms(func(v room.View) bool { // in order of arrival
		comes := v.Phase == prefill.Queued.String() && s.comes(w, v.Room) != 0
		if (v.WaitsFor == room.OlderPrefix) != (comes && waits == 0) {
			err = fmt.Errorf("TRUTH: room %d waits for %s", v.Room, v.WaitsFor)
			return false
		}
		switch i := v.Room - 1; {
		case comes:
			w.show(joined)
		case v.Phase == prefill.Queued.String():
			waits = v.Room
		case waits != 0 && w.rooms[i].table != nil && had>>i&1 == 0:
			err = fmt.Errorf("TURN: room %d gets blocks before room %d, which came earlier", v.Room, waits)
		}
		return err == nil
	})
	return err
}

func (s *Prefills) do(w *PrefillWorld, x *prefill.Effect) error {
	switch x.Kind {
	case prefill.Write:
		return s.write(w, x)
	case prefill.Step:
		return s.starts(w, x.Items)
	case prefill.Freed:
		return s.freed(w, x)
	case prefill.End:
		return s.end(w, x)
	case prefill.Refuse:
		return fmt.Errorf("RELEASE: room %d is refused: %s", x.Room, x.Outcome)
	}
	return nil
}

// write begins to read blocks. What a room found moves before its first step: its table is
// known from these writes on.
func (s *Prefills) write(w *PrefillWorld, x *prefill.Effect) error {
	r, prompt := &w.rooms[x.Room-1], s.scope.Prompts[x.Room-1]
	if int(x.FirstBlock) != r.sent {
		return fmt.Errorf("WHOLE: room %d sends block %d after %d", x.Room, x.FirstBlock, r.sent-1)
	}
	if len(r.table) < r.sent+len(x.Blocks) {
		if err := s.enters(w, x.Room, append(slices.Clone(r.table), x.Blocks...), r.sent+len(x.Blocks)); err != nil {
			return err
		}
	}
	r.sent += len(x.Blocks)
	if err := w.mem.holds(prompt, r.table, min(r.sent, len(prompt))); err != nil {
		return err
	}
	for _, b := range x.Blocks {
		if w.written(b) {
			return fmt.Errorf("OWN: block %d is sent while a step writes to it", b)
		}
	}
	w.writes = append(w.writes, writing{x.Room, x.Chunk, x.Blocks})
	return nil
}

// comes returns an older room that computes something that a room has to, too, and could find then.
func (s *Prefills) comes(w *PrefillWorld, id room.ID) (who room.ID) {
	prompt := s.scope.Prompts[id-1][:(s.tokens(id)-1)/room.BlockTokens]
	w.core.Rooms(func(v room.View) bool {
		if v.Room != id && v.Phase == prefill.Computing.String() && w.mem.lacks(s.scope.Prompts[v.Room-1], w.rooms[v.Room-1].table, prompt) {
			who = v.Room
		}
		return v.Room != id
	})
	return who
}

// enters notes the table of a room, of which found blocks were there before.
func (s *Prefills) enters(w *PrefillWorld, id room.ID, table []int32, found int) error {
	r := &w.rooms[id-1]
	if who := s.comes(w, id); who != 0 && r.table == nil {
		return fmt.Errorf("TWICE: room %d computes what room %d is computing", id, who)
	}
	seen, err := w.mem.enters(id, table, len(r.table), found, w.held, w.busy)
	if err != nil {
		return err
	}
	w.shows |= seen
	r.table, r.found = table, found
	return w.mem.holds(s.scope.Prompts[id-1], table, found)
}

// starts begins a step: the blocks of its parts hold nothing known until it is home.
func (s *Prefills) starts(w *PrefillWorld, items []prefill.StepItem) error {
	if w.step != nil {
		return fmt.Errorf("OWN: a second step is started")
	}
	for i := range items {
		it := &items[i]
		r, prompt := &w.rooms[it.Room-1], s.scope.Prompts[it.Room-1]
		if len(r.table) < len(it.Blocks) {
			if err := s.enters(w, it.Room, it.Blocks, int(it.Cached)/room.BlockTokens); err != nil {
				return err
			}
		}
		if !slices.Equal(r.table, it.Blocks) || it.To <= it.From || it.Last != (int(it.To) == s.tokens(it.Room)) {
			return fmt.Errorf("WHOLE: room %d computes %d to %d of %d in %v, its table is %v", it.Room, it.From, it.To, s.tokens(it.Room), it.Blocks, r.table)
		}
		from := int(it.From) / room.BlockTokens
		if err := w.mem.holds(prompt, r.table, from); err != nil {
			return err
		}
		if err := w.mem.begin(it.Room, it.Blocks[from:room.BlocksFor(int(it.To))], w.users, w.busy); err != nil {
			return err
		}
	}
	w.step = items
	return nil
}

// home brings the step home, with one room in it failing, or none. What the engine left in the
// blocks of one that failed is not known.
func (s *Prefills) home(w *PrefillWorld, fails room.ID) error {
	ev := prefill.Event{Kind: prefill.StepDone}
	for i := range w.step {
		it := &w.step[i]
		ok := it.Room != fails
		ev.Results = append(ev.Results, prefill.Result{Room: it.Room, OK: ok})
		if ok && w.mem.compute(s.scope.Prompts[it.Room-1], it.Blocks, it.From, it.To, w.core.Found) {
			w.show(private)
		}
	}
	w.step = nil
	return s.feed(w, ev)
}

// freed takes blocks of a room that has ended: nobody may use them.
func (s *Prefills) freed(w *PrefillWorld, x *prefill.Effect) error {
	r := &w.rooms[x.Room-1]
	table := r.table
	r.table = nil
	for _, b := range x.Blocks {
		if !slices.Contains(table, b) || !w.mem.used[b] {
			return fmt.Errorf("RELEASE: room %d frees block %d, which is not its own", x.Room, b)
		}
		if w.held(b) || w.busy(b) {
			return fmt.Errorf("QUIET: block %d is freed while somebody uses it", b)
		}
		w.mem.used[b] = false
	}
	return nil
}

func (s *Prefills) end(w *PrefillWorld, x *prefill.Effect) error {
	r := &w.rooms[x.Room-1]
	reads := slices.ContainsFunc(w.writes, func(k writing) bool { return k.room == x.Room }) ||
		slices.ContainsFunc(w.step, func(it prefill.StepItem) bool { return it.Room == x.Room })
	switch r.success = x.Outcome.Kind == room.Success; {
	case !r.success && !r.harmed:
		return fmt.Errorf("CAUSE: room %d ends with %s although nothing of it broke", x.Room, x.Outcome)
	case r.ended:
		return fmt.Errorf("RELEASE: the leg of room %d ends twice", x.Room)
	case reads:
		return fmt.Errorf("QUIET: room %d ends while its step or a write is under way", x.Room)
	case r.success && r.sent != room.BlocksFor(s.tokens(x.Room)):
		return fmt.Errorf("WHOLE: room %d succeeds with %d blocks sent", x.Room, r.sent)
	}
	if r.success {
		if w.show(success); r.found > 0 {
			w.show(served)
		}
	}
	r.ended, r.table = true, nil
	return nil
}

// request is the event of a room that comes.
func (s *Prefills) request(id room.ID) prefill.Event {
	return prefill.Event{Kind: prefill.Request, Room: id, Tokens: s.tokens(id), Keys: keysOf(s.scope.Prompts[id-1]), Deadline: 1, Pin: pinOf(s.scope.Pin, id)}
}

func (s *Prefills) prealloc(id room.ID) prefill.Event {
	return prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: id, Lease: leaseOf(id), Conn: 1, Tokens: s.tokens(id), Left: 1}}
}
