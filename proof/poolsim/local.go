package poolsim

import (
	"fmt"
	"slices"

	"baton/core/decode"
	"baton/core/room"
	"baton/proof/explore"
)

// LocalScope sizes a world around core/decode in the unified role: its rooms prefill where they
// generate, and give their blocks back when older ones need them.
type LocalScope struct {
	Prompts   []string // one room each, a letter for a full block
	Tail      int      // tokens of every prompt behind its full blocks
	Output    int      // tokens of every output
	Blocks    int
	Running   int
	Chunk     int // blocks of a step
	Ahead     int // decode.Config.AheadTokens
	Abort     bool
	StepFails bool
}

// LocalWorld is one state of it.
type LocalWorld struct {
	core   decode.Core
	mem    memory
	rooms  []localRoom
	step   []decode.StepItem
	starts []decode.StepItem // of the event at hand
	shows  uint64
	out    decode.Effects
}

// localRoom is what the world knows of a room.
type localRoom struct {
	came, ended, begins, retracted bool
	harmed                         bool // it was given up, or a step failed for it
	emitted                        int
	table                          []int32
	left                           []int32 // the table that it has just given back
}

// Locals explores a scope.
type Locals struct{ scope LocalScope }

// NewLocals returns the system of a scope.
func NewLocals(sc LocalScope) *Locals { return &Locals{sc} }

func (s *Locals) Init() LocalWorld {
	sc := &s.scope
	c := decode.New(decode.Config{Boot: 1, Blocks: sc.Blocks, QueuedMax: len(sc.Prompts), RunningMax: sc.Running,
		ChunkTokens: sc.Chunk * room.BlockTokens, AheadTokens: sc.Ahead})
	return LocalWorld{core: *c, mem: newMemory(sc.Blocks), rooms: make([]localRoom, len(sc.Prompts))}
}

func (s *Locals) Clone(w *LocalWorld) LocalWorld {
	var d LocalWorld
	s.CopyInto(&d, w)
	return d
}

func (s *Locals) CopyInto(dst, src *LocalWorld) {
	src.core.CopyTo(&dst.core)
	src.mem.copyTo(&dst.mem)
	dst.rooms = append(dst.rooms[:0], src.rooms...)
	dst.step, dst.starts, dst.shows = src.step, nil, 0
}

func (s *Locals) Done(w *LocalWorld) bool {
	for i := range w.rooms {
		if r := &w.rooms[i]; !r.came || !r.ended {
			return false
		}
	}
	return w.step == nil && w.core.Idle() && w.core.Blocks().Held == 0
}

func (s *Locals) tokens(id room.ID) int {
	return len(s.scope.Prompts[id-1])*room.BlockTokens + s.scope.Tail
}

func (s *Locals) Class(e Event) explore.Class { return (*Prefills)(nil).Class(e) }

func (s *Locals) Events(w *LocalWorld, dst []Event) []Event {
	for i := range w.rooms {
		r, id := &w.rooms[i], room.ID(i+1)
		if !r.came {
			dst = append(dst, Event{Kind: Come, Room: id})
			continue
		}
		if r.begins {
			dst = append(dst, Event{Kind: First, Room: id})
		}
		if s.scope.Abort && !r.ended && w.core.PhaseOf(id) != decode.Draining.String() {
			dst = append(dst, Event{Kind: Abort, Room: id})
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
	return dst
}

func (s *Locals) Apply(w *LocalWorld, e Event) error {
	w.shows = 0
	switch e.Kind {
	case Come:
		w.rooms[e.Room-1].came = true
		return s.feed(w, decode.Event{Kind: decode.Request, Room: e.Room, Peer: decode.Local, Tokens: s.tokens(e.Room),
			MaxNew: s.scope.Output, Keys: keysOf(s.scope.Prompts[e.Room-1]), Deadline: 1})
	case First:
		w.rooms[e.Room-1].begins = false
		return s.feed(w, decode.Event{Kind: decode.Begun, Room: e.Room, OK: true, Finished: s.scope.Output == 1})
	case Abort:
		w.rooms[e.Room-1].harmed = true
		if slices.ContainsFunc(w.step, func(it decode.StepItem) bool { return it.Room == e.Room && it.Prefill && !it.Last }) {
			w.show(midway)
		}
		return s.feed(w, decode.Event{Kind: decode.Abort, Room: e.Room})
	case Fails:
		w.show(failed)
		w.rooms[e.Room-1].harmed = true
	}
	return s.home(w, e.Room)
}

// users counts the rooms that have a block in their table.
func (w *LocalWorld) users(b int32) (n int) {
	for i := range w.rooms {
		if slices.Contains(w.rooms[i].table, b) {
			n++
		}
	}
	return n
}

func (w *LocalWorld) held(b int32) bool { return w.users(b) > 0 }

// written says that the outstanding step writes to a block.
func (w *LocalWorld) written(b int32) bool {
	return slices.ContainsFunc(w.step, func(it decode.StepItem) bool {
		return slices.Contains(it.Blocks[it.From/room.BlockTokens:room.BlocksFor(int(it.To))], b)
	})
}

// feed steps the core, does what it says, and looks at who has which blocks now.
func (s *Locals) feed(w *LocalWorld, ev decode.Event) error {
	w.out.Reset()
	w.core.Step(0, ev, &w.out)
	w.starts = nil
	for i := range w.out.List {
		if err := s.do(w, &w.out.List[i]); err != nil {
			return err
		}
	}
	for i := range w.rooms {
		if err := s.moved(w, room.ID(i+1)); err != nil {
			return err
		}
	}
	if err := s.begin(w); err != nil {
		return err
	}
	return w.mem.checked(s.scope.Prompts, w.core.Blocks(), w.core.Found, w.held)
}

func (s *Locals) do(w *LocalWorld, x *decode.Effect) error {
	var r *localRoom
	if x.Room != 0 {
		r = &w.rooms[x.Room-1]
	}
	switch x.Kind {
	case decode.Refuse:
		return fmt.Errorf("RELEASE: room %d is refused: %s", x.Room, x.Outcome)
	case decode.Begin:
		r.begins = true
	case decode.Emit:
		r.emitted++
	case decode.Step:
		w.starts = x.Items
	case decode.Retract:
		w.show(retracted)
		r.retracted, r.left, r.table = true, r.table, nil
	case decode.Freed:
		if r.table != nil {
			r.left, r.table = r.table, nil
		}
		for _, b := range x.Blocks {
			if !slices.Contains(r.left, b) || !w.mem.used[b] {
				return fmt.Errorf("RELEASE: room %d frees block %d, which is not its own", x.Room, b)
			}
			if w.held(b) || w.written(b) {
				return fmt.Errorf("QUIET: block %d is freed while somebody uses it", b)
			}
			w.mem.used[b] = false
		}
	case decode.End:
		switch well := x.Outcome.Kind == room.Success; {
		case r.ended:
			return fmt.Errorf("RELEASE: the leg of room %d ends twice", x.Room)
		case slices.ContainsFunc(w.step, func(it decode.StepItem) bool { return it.Room == x.Room }):
			return fmt.Errorf("QUIET: room %d ends while its step is under way", x.Room)
		case !well && !r.harmed:
			return fmt.Errorf("CAUSE: room %d ends with %s although nothing of it broke", x.Room, x.Outcome)
		case well && r.emitted != s.scope.Output:
			return fmt.Errorf("WHOLE: room %d succeeds with %d tokens", x.Room, r.emitted)
		case well:
			if w.show(success); r.retracted {
				w.show(wentOn)
			}
		}
		r.ended, r.table, r.left = true, nil, nil
	}
	return nil
}

// moved compares a room's table with what it was: what is new was found, or is fresh.
func (s *Locals) moved(w *LocalWorld, id room.ID) error {
	r := &w.rooms[id-1]
	table, filled := w.core.Table(id)
	if len(table) == len(r.table) {
		return nil
	}
	old, found := len(r.table), 0
	if old == 0 {
		found = int(filled) / room.BlockTokens
	}
	if !slices.Equal(table[:old], r.table) {
		return fmt.Errorf("OWN: the table of room %d was %v and is %v", id, r.table, table)
	}
	seen, err := w.mem.enters(id, table, old, found, w.held, w.written)
	if err != nil {
		return err
	}
	if w.shows |= seen; r.retracted && seen>>hit&1 == 1 {
		w.show(refound)
	}
	r.table, r.left = table, nil
	return w.mem.holds(s.scope.Prompts[id-1], table, found)
}

// begin starts the step of the event: what it writes to holds nothing known until it is home.
func (s *Locals) begin(w *LocalWorld) error {
	if w.starts == nil {
		return nil
	}
	if w.step != nil {
		return fmt.Errorf("OWN: a second step is started")
	}
	for i := range w.starts {
		it := &w.starts[i]
		r, prompt := &w.rooms[it.Room-1], s.scope.Prompts[it.Room-1]
		if !slices.Equal(r.table, it.Blocks) || it.To <= it.From {
			return fmt.Errorf("WHOLE: room %d computes %d to %d in %v, its table is %v", it.Room, it.From, it.To, it.Blocks, r.table)
		}
		from := int(it.From) / room.BlockTokens
		if err := w.mem.holds(prompt, r.table, min(from, len(prompt))); err != nil {
			return err
		}
		if err := w.mem.begin(it.Room, it.Blocks[from:room.BlocksFor(int(it.To))], w.users, w.written); err != nil {
			return err
		}
	}
	w.step = w.starts
	return nil
}

func (s *Locals) home(w *LocalWorld, fails room.ID) error {
	ev := decode.Event{Kind: decode.StepDone}
	for i := range w.step {
		it := &w.step[i]
		ok := it.Room != fails
		ev.Results = append(ev.Results, decode.Result{Room: it.Room, OK: ok, Finished: ok && !it.Prefill && w.rooms[it.Room-1].emitted+1 == s.scope.Output})
		if ok && it.Prefill && w.mem.compute(s.scope.Prompts[it.Room-1], it.Blocks, it.From, it.To, w.core.Found) {
			w.show(private)
		}
	}
	w.step = nil
	return s.feed(w, ev)
}

func (s *Locals) Key(w *LocalWorld, b []byte) []byte {
	b = w.core.AppendState(b)
	for i := range w.rooms {
		r, prompt := &w.rooms[i], s.scope.Prompts[i]
		b = append(b, flag(r.came)|flag(r.ended)<<1|flag(r.begins)<<2|flag(r.retracted)<<3|flag(r.harmed)<<4, byte(r.emitted))
		b = w.mem.appendHolds(b, prompt, r.table)
	}
	return append(b, byte(len(w.step)))
}

func (w *LocalWorld) show(i int) { w.shows |= 1 << i }

func (s *Locals) Witnesses() []string                { return sights[:] }
func (s *Locals) Shows(w *LocalWorld) uint64         { return w.shows }
func (s *Locals) Name(_ *LocalWorld, e Event) string { return (*Prefills)(nil).Name(nil, e) }

func (s *Locals) Columns() []string {
	return columns(s.scope.Prompts)
}

func (s *Locals) Cells(w *LocalWorld, dst []string) []string {
	for i := range w.rooms {
		cell := w.core.PhaseOf(room.ID(i + 1))
		if t := w.rooms[i].table; t != nil {
			cell += fmt.Sprintf(" %v %d", t, w.rooms[i].emitted)
		}
		dst = append(dst, cell)
	}
	return append(dst, w.mem.String())
}

func (s *Locals) Stuck(w *LocalWorld) string { return stuck(w.core.Rooms) }
