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
