package poolsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	Outputs   [][]int  // of several outputs of one room, by room; nil: each has one
	Says      []string // what the end of a prompt and its first or only output fill, by room: the driver has keys for it
	Blocks    int
	Running   int
	Chunk     int // blocks of a step
	Ahead     int // decode.Config.AheadTokens
	Abort     bool
	StepFails bool
	Pin       []uint8 // until when each room pins what it leaves; all end well then; nil: none does
	PinnedMax int
}

// LocalWorld is one state of it.
type LocalWorld struct {
	core   decode.Core
	mem    memory
	rooms  []localRoom
	step   []decode.StepItem
	starts []decode.StepItem // of the event at hand
	copies []decode.Copy     // that it makes
	shows  uint64
	out    decode.Effects
}

// localRoom is what the world knows of a room.
type localRoom struct {
	came, ended, retracted bool
	harmed                 bool // it was given up, or a step failed for it
	begins                 [outputsMax]bool
	emitted                [outputsMax]int
	table                  []int32
	more                   [outputsMax][]int32 // what other outputs have behind the prompt's full blocks
	left                   []int32             // the blocks that it has just given back
}

// outputsMax bounds the outputs of one room in a world.
const outputsMax = 2

// Locals explores a scope.
type Locals struct{ scope LocalScope }

// NewLocals returns the system of a scope.
func NewLocals(sc LocalScope) *Locals { return &Locals{sc} }

func (s *Locals) Init() LocalWorld {
	sc := &s.scope
	c := decode.New(decode.Config{Boot: 1, Blocks: sc.Blocks, QueuedMax: len(sc.Prompts), RunningMax: sc.Running,
		ChunkTokens: sc.Chunk * room.BlockTokens, AheadTokens: sc.Ahead, PinnedMax: sc.PinnedMax})
	return LocalWorld{core: *c, mem: newPins(sc.Blocks, sc.Pin), rooms: make([]localRoom, len(sc.Prompts))}
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
	dst.step, dst.starts, dst.copies, dst.shows = src.step, nil, nil, 0
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

// outputs are the lengths of what a room says.
func (s *Locals) outputs(id room.ID) []int {
	if s.scope.Outputs == nil {
		return []int{s.scope.Output}
	}
	return s.scope.Outputs[id-1]
}

// word is what the blocks of one output hold, as far as anybody knows: the prompt's, and what is said.
func (s *Locals) word(id room.ID, branch int32) string {
	prompt := s.scope.Prompts[id-1]
	if s.scope.Says == nil {
		return prompt
	}
	says := s.scope.Says[id-1]
	if branch > 0 {
		says = strings.Repeat(string('0'+rune(branch)), len(says))
	}
	return prompt + says
}

func (s *Locals) words() (all []string) {
	for i := range s.scope.Prompts {
		all = append(all, s.word(room.ID(i+1), 0))
	}
	return all
}

// request is what the gateway asks of decode for a room.
func (s *Locals) request(id room.ID, peer int32) decode.Event {
	all := s.outputs(id)
	return decode.Event{Kind: decode.Request, Room: id, Peer: peer, Tokens: s.tokens(id), Branches: len(all), MaxNew: slices.Max(all),
		Keys: keysOf(s.scope.Prompts[id-1]), Deadline: 1, Pin: pinOf(s.scope.Pin, id)}
}

func (s *Locals) Class(e Event) explore.Class { return (*Prefills)(nil).Class(e) }

func (s *Locals) Events(w *LocalWorld, dst []Event) []Event {
	for i := range w.rooms {
		r, id := &w.rooms[i], room.ID(i+1)
		if !r.came {
			dst = append(dst, Event{Kind: Come, Room: id})
			continue
		}
		for n, begins := range r.begins {
			if begins {
				dst = append(dst, Event{Kind: First, Room: id, Chunk: int32(n)})
			}
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
	return w.mem.ends(dst)
}

func (s *Locals) Apply(w *LocalWorld, e Event) error {
	w.shows = 0
	switch e.Kind {
	case Come:
		w.rooms[e.Room-1].came = true
		return s.feed(w, s.request(e.Room, decode.Local))
	case First:
		return s.feed(w, s.begun(w, e))
	case Abort:
		w.rooms[e.Room-1].harmed = true
		if slices.ContainsFunc(w.step, func(it decode.StepItem) bool { return it.Room == e.Room && it.Prefill && !it.Last }) {
			w.show(midway)
		}
		return s.feed(w, decode.Event{Kind: decode.Abort, Room: e.Room})
	case Fails:
		w.show(failed)
		w.rooms[e.Room-1].harmed = true
	case Over:
		w.shows |= w.mem.over(uint8(e.Chunk))
		return s.feedAt(w, time.Duration(e.Chunk), decode.Event{Kind: decode.TimerFired})
	}
	return s.home(w, e.Room)
}

// begun is the answer to a Begin.
func (s *Locals) begun(w *LocalWorld, e Event) decode.Event {
	w.rooms[e.Room-1].begins[e.Chunk] = false
	return decode.Event{Kind: decode.Begun, Room: e.Room, Branch: e.Chunk, OK: true, Finished: s.outputs(e.Room)[e.Chunk] == 1}
}

// users counts the tables that a block is in; what the outputs of a room share is one.
func (w *LocalWorld) users(b int32) (n int) {
	for i := range w.rooms {
		r := &w.rooms[i]
		if slices.Contains(r.table, b) {
			n++
		}
		for _, own := range r.more {
			if slices.Contains(own, b) {
				n++
			}
		}
	}
	return n
}

// tableOf is the whole table of one output of a room.
func (s *Locals) tableOf(w *LocalWorld, id room.ID, branch int32) []int32 {
	r := &w.rooms[id-1]
	if branch == 0 {
		return r.table
	}
	return slices.Concat(r.table[:len(s.scope.Prompts[id-1])], r.more[branch])
}

func (w *LocalWorld) held(b int32) bool { return w.users(b) > 0 }

// written says that the outstanding step writes to a block.
func (w *LocalWorld) written(b int32) bool {
	return slices.ContainsFunc(w.step, func(it decode.StepItem) bool {
		return slices.Contains(it.Blocks[it.From/room.BlockTokens:room.BlocksFor(int(it.To))], b)
	})
}

// feed steps the core, does what it says, and looks at who has which blocks now.
func (s *Locals) feed(w *LocalWorld, ev decode.Event) error { return s.feedAt(w, 0, ev) }

func (s *Locals) feedAt(w *LocalWorld, now time.Duration, ev decode.Event) error {
	w.out.Reset()
	before := w.mem.found(s.words(), w.core.Found)
	w.core.Step(now, ev, &w.out)
	if s.scope.Pin != nil {
		s.pin(w, before)
	}
	w.starts, w.copies = nil, nil
	for i := range w.rooms {
		w.rooms[i].left = nil
	}
	for i := range w.out.List {
		if err := s.do(w, &w.out.List[i]); err != nil {
			return err
		}
	}
	w.mem.going = w.mem.going[:0]
	for i := range w.rooms {
		table, _ := w.core.Table(room.ID(i + 1))
		w.mem.going = append(w.mem.going, table...)
	}
	for i := range w.rooms {
		s.gives(w, room.ID(i+1)) // what went to the cache
	}
	var err error
	inLine := false                       // behind one that waits for blocks
	w.core.Rooms(func(v room.View) bool { // in order of arrival
		hungry := v.Phase == "needs_blocks" || v.Phase == "retracted"
		comes := hungry && v.Peer == decode.Local && s.comes(w, v.Room) != 0
		if comes {
			w.show(joined)
		}
		if (v.WaitsFor == room.OlderPrefix) != (comes && !inLine) {
			err = fmt.Errorf("TRUTH: room %d waits for %s", v.Room, v.WaitsFor)
			return false
		}
		inLine = inLine || hungry && !comes
		err = s.moved(w, v.Room)
		return err == nil
	})
	if err != nil {
		return err
	}
	if err := s.begin(w); err != nil {
		return err
	}
	if err := w.mem.checkedPins(w.core.Pinned()); err != nil {
		return err
	}
	return w.mem.checked(s.words(), w.core.Blocks(), w.core.Found, w.held)
}

// pin notes what rooms that are over, and first outputs, leave pinned.
func (s *Locals) pin(w *LocalWorld, before map[string]int32) {
	for _, x := range w.out.List {
		if x.Kind == decode.End || x.Kind == decode.Emit && x.Branch == 0 && w.rooms[x.Room-1].emitted[0]+1 == s.outputs(x.Room)[0] {
			r := &w.rooms[x.Room-1]
			w.shows |= w.mem.pin(s.word(x.Room, 0), r.table, s.scope.Pin[x.Room-1], s.scope.PinnedMax, w.mem.first(before, w.core.Found))
		}
	}
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
		r.begins[x.Branch] = true
	case decode.Emit:
		r.emitted[x.Branch]++
	case decode.Step:
		w.starts, w.copies = x.Items, x.Copies
	case decode.Retract:
		w.show(retracted)
		r.retracted = true
		r.gives()
	case decode.Freed:
		s.gives(w, x.Room)
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
		case well && !slices.Equal(r.emitted[:len(s.outputs(x.Room))], s.outputs(x.Room)):
			return fmt.Errorf("WHOLE: room %d succeeds with %d tokens", x.Room, r.emitted)
		case well:
			if w.show(success); r.retracted {
				w.show(wentOn)
			}
			if len(s.outputs(x.Room)) > 1 {
				w.show(several)
			}
		}
		r.gives()
		r.ended, r.left = true, nil
	}
	return nil
}

// gives notes that a room gives back all that it has.
func (r *localRoom) gives() {
	for n, own := range r.more {
		r.left, r.more[n] = append(r.left, own...), nil
	}
	r.left, r.table = append(r.left, r.table...), nil
}

// gives notes that a room gives blocks back: all, or those of an output that is over while others
// go on.
func (s *Locals) gives(w *LocalWorld, id room.ID) {
	r := &w.rooms[id-1]
	table, _ := w.core.Table(id)
	if r.table == nil || table == nil {
		r.gives()
		return
	}
	if n := len(table); n < len(r.table) {
		r.left, r.table = append(r.left, r.table[n:]...), r.table[:n:n]
	}
	for n, own := range r.more {
		if own != nil && w.core.BranchTable(id, int32(n)) == nil {
			r.left, r.more[n] = append(r.left, own...), nil
		}
	}
}

// comes returns an older room that computes here what a room has to, too, and could find then.
func (s *Locals) comes(w *LocalWorld, id room.ID) (who room.ID) {
	word := s.word(id, 0)
	word = word[:min(len(word), (s.tokens(id)+max(w.rooms[id-1].emitted[0], 1)-2)/room.BlockTokens)]
	w.core.Rooms(func(v room.View) bool {
		o, had := s.word(v.Room, 0), s.tokens(v.Room)+max(w.rooms[v.Room-1].emitted[0], 1)-1
		switch v.Phase {
		case "unfilled", "prefilling", "regranted", "recomputing":
			if v.Room != id && v.Peer == decode.Local && w.mem.lacks(o[:min(len(o), had/room.BlockTokens)], w.rooms[v.Room-1].table, word) {
				who = v.Room
			}
		}
		return v.Room != id
	})
	return who
}

// moved compares a room's table with what it was: what is new was found, or is fresh.
func (s *Locals) moved(w *LocalWorld, id room.ID) error {
	r := &w.rooms[id-1]
	table, filled := w.core.Table(id)
	if len(table) == len(r.table) {
		return nil
	}
	old, found := len(r.table), 0
	if who := s.comes(w, id); who != 0 && old == 0 {
		return fmt.Errorf("TWICE: room %d computes what room %d is computing", id, who)
	}
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
	r.table = table
	for i, p := range s.scope.Prompts { // somebody said what is found
		if found > len(p) && s.scope.Says != nil && s.scope.Says[i] != "" && strings.HasPrefix(s.word(id, 0), s.word(room.ID(i+1), 0)) {
			w.show(spoken)
		}
	}
	for n := range s.outputs(id)[1:] {
		whole, common := w.core.BranchTable(id, int32(n+1)), len(s.scope.Prompts[id-1])
		if len(whole) < common || !slices.Equal(whole[:common], table[:common]) {
			return fmt.Errorf("OWN: outputs of room %d have the tables %v and %v", id, table, whole)
		}
		seen, err := w.mem.enters(id, whole[common:], 0, 0, w.held, w.written)
		if err != nil {
			return err
		}
		w.shows |= seen
		r.more[n+1] = whole[common:]
	}
	return w.mem.holds(s.word(id, 0), table, found)
}

// begin starts the step of the event: what it writes to holds nothing known until it is home.
func (s *Locals) begin(w *LocalWorld) error {
	if w.starts == nil {
		return nil
	}
	if w.step != nil {
		return fmt.Errorf("OWN: a second step is started")
	}
	for _, c := range w.copies {
		if !w.held(c.From) || w.users(c.To) != 1 || w.written(c.To) {
			return fmt.Errorf("OWN: block %d is copied over block %d, which others use", c.From, c.To)
		}
	}
	for i := range w.starts {
		it := &w.starts[i]
		table, word := s.tableOf(w, it.Room, it.Branch), s.word(it.Room, it.Branch)
		if !slices.Equal(table, it.Blocks) || it.To <= it.From {
			return fmt.Errorf("WHOLE: room %d computes %d to %d in %v, its table is %v", it.Room, it.From, it.To, it.Blocks, table)
		}
		from := int(it.From) / room.BlockTokens
		if err := w.mem.holds(word, table, min(from, len(word))); err != nil {
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
		ok, word := it.Room != fails, s.word(it.Room, it.Branch)
		res := decode.Result{Room: it.Room, Branch: it.Branch, OK: ok}
		if full := int(it.To) / room.BlockTokens; !it.Prefill {
			res.Finished = ok && w.rooms[it.Room-1].emitted[it.Branch]+1 == s.outputs(it.Room)[it.Branch]
			if it.Branch == 0 && it.To%room.BlockTokens == 0 && full <= len(word) {
				res.Key = keyOf(word[:full])
			}
		}
		ev.Results = append(ev.Results, res)
		if ok && w.mem.compute(word, it.Blocks, it.From, it.To, w.core.Found) && it.Prefill {
			w.show(private)
		}
	}
	w.step = nil
	return s.feed(w, ev)
}

func (s *Locals) Key(w *LocalWorld, b []byte) []byte {
	b = w.core.AppendState(b)
	for i := range w.rooms {
		r := &w.rooms[i]
		b = append(b, flag(r.came)|flag(r.ended)<<1|flag(r.retracted)<<2|flag(r.harmed)<<3)
		for n := range s.outputs(room.ID(i + 1)) {
			b = append(b, flag(r.begins[n]), byte(r.emitted[n]), byte(len(r.more[n])))
		}
		b = w.mem.appendHolds(b, s.word(room.ID(i+1), 0), r.table)
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
			cell += fmt.Sprintf(" %v %v", t, w.rooms[i].emitted[:len(s.outputs(room.ID(i+1)))])
		}
		dst = append(dst, cell)
	}
	return append(dst, w.mem.String())
}

func (s *Locals) Stuck(w *LocalWorld) string { return stuck(w.core.Rooms) }
