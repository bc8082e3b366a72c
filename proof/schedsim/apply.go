package schedsim

import (
	"errors"
	"fmt"
	"slices"

	"baton/core/decode"
	"baton/core/room"
	"baton/proof/life"
)

// System explores one scope.
type System struct {
	Log *life.Log // sees what the core moves; nil: nobody looks

	scope   Scope
	out     decode.Effects
	answers int
	before  views
	after   views
	took    []uint8 // rooms retracted in this step, in order
}

// New returns the system of a scope.
func New(sc Scope) *System { return &System{scope: sc} }

// Apply performs e. An error is a broken invariant.
func (y *System) Apply(w *World, e Event) error {
	w.shows = 0
	r := e.Room
	s := &w.rooms[r]
	switch e.Kind {
	case again:
		w.shows |= 1 << sawSuccessor
		// Its number is used again, for worlds to be finite: so it must be forgotten first.
		for w.core.PhaseOf(id(r)) != "" {
			if err := y.do(w, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}}); err != nil {
				return err
			}
		}
		*s = state{}
		fallthrough
	case ask:
		return y.request(w, r)
	case home, fails:
		return y.stepHome(w, e.Kind == home, roomsMax, 0)
	case stops:
		return y.stepHome(w, true, r, e.Branch)
	case begun, unbegun, only:
		return y.begun(w, e)
	case linkUp:
		w.link.dialing, w.link.up = false, true
		w.link.conn++
		return y.do(w, decode.Event{Kind: decode.LinkUp, Peer: peer, Conn: room.Conn(w.link.conn)})
	case breaks:
		return y.linkEnd(w)
	case arrive:
		ev := y.chunk(w, r, decode.ChunkArrived)
		ev.N = int32(room.BlocksFor(y.scope.Rooms[r].Tokens))
		return y.do(w, ev)
	case place:
		s.send.isIn, s.send.isPlaced = false, true
		for i, b := range s.send.blocks {
			if w.kv[b] != (stamp{}) {
				return fmt.Errorf("OWN: a receiver of room %d writes a block that holds something", r+1)
			}
			w.kv[b] = y.stamped(r, 0, i, y.scope.Rooms[r].Tokens)
		}
		return y.do(w, y.chunk(w, r, decode.ChunkPlaced))
	case word:
		s.send.said = true
		return y.do(w, decode.Event{Kind: decode.Settled, Settled: room.Settled{Room: id(r), Lease: s.send.lease, Outcome: room.Done(), Chunks: 1}})
	case expire:
		w.shows |= 1 << sawDeadline
		s.hurt = true
		return y.do(w, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id(r)}})
	case leave:
		s.gone, s.hurt = true, true
		return y.do(w, decode.Event{Kind: decode.Abort, Room: id(r), Cause: room.Cancelled})
	}
	return nil
}

func (y *System) request(w *World, r uint8) error {
	one := &y.scope.Rooms[r]
	w.rooms[r].asked = true
	ev := decode.Event{Kind: decode.Request, Room: id(r), Peer: decode.Local, Tokens: one.Tokens, Branches: one.Branches, MaxNew: one.MaxNew, Deadline: deadline}
	if one.Pair {
		ev.Peer = peer
	}
	if err := y.do(w, ev); err != nil {
		return err
	}
	if y.answers != 1 {
		return fmt.Errorf("a request got %d answers instead of one", y.answers)
	}
	return nil
}

func (y *System) chunk(w *World, r uint8, k decode.EventKind) decode.Event {
	return decode.Event{Kind: k, Room: id(r), Lease: w.rooms[r].send.lease, Conn: room.Conn(w.link.conn)}
}

// stepHome brings the engine's step home: what it computed is in its blocks. The output of a branch
// of room stop ends with it.
func (y *System) stepHome(w *World, ok bool, stop, branch uint8) error {
	var results []decode.Result
	for _, it := range w.step {
		r, n := uint8(it.Room-1), uint8(it.Branch)
		res := decode.Result{Room: it.Room, Branch: it.Branch, OK: ok}
		w.rooms[r].hurt = w.rooms[r].hurt || !ok
		for i := int(it.From) / room.BlockTokens; ok && i < room.BlocksFor(int(it.To)); i++ {
			w.kv[it.Blocks[i]] = y.stamped(r, n, i, int(it.To))
		}
		if ok && !it.Prefill {
			o, early := &w.rooms[r].out[n], r == stop && n == branch
			res.Finished = y.last(w, r, n) || early
			y.makes(w, r, n)
			o.early, o.over = early, res.Finished
		}
		if it.Again {
			w.shows |= 1 << sawAgain
			if y.scope.Rooms[r].Pair {
				w.shows |= 1 << sawPairAgain
			}
		}
		results = append(results, res)
	}
	w.step, w.reads = nil, nil
	return y.do(w, decode.Event{Kind: decode.StepDone, Results: results})
}

func (y *System) begun(w *World, e Event) error {
	s := &w.rooms[e.Room]
	o := &s.out[e.Branch]
	o.begin = false
	ev := decode.Event{Kind: decode.Begun, Room: id(e.Room), Branch: int32(e.Branch), OK: e.Kind != unbegun}
	s.hurt = s.hurt || !ev.OK
	if ev.OK {
		ev.Finished = e.Kind == only || y.last(w, e.Room, e.Branch)
		y.makes(w, e.Room, e.Branch)
		o.early, o.over = e.Kind == only, ev.Finished
	}
	return y.do(w, ev)
}

// makes counts a token of output; of several outputs none asks for more memory, so they do not
// count for whose turn it is to give some back.
func (y *System) makes(w *World, r, branch uint8) {
	s := &w.rooms[r]
	s.out[branch].fed++
	if y.scope.Rooms[r].branches() == 1 {
		s.since = min(s.since+1, uint8(y.scope.Ahead)+1)
	}
}

// linkEnd ends the link, once its receivers are off.
func (y *System) linkEnd(w *World) error {
	w.link.up = false
	w.link.breaks--
	for r := range uint8(len(y.scope.Rooms)) {
		s := &w.rooms[r].send
		if s.waits() {
			w.rooms[r].hurt = true
		}
		if s.isIn {
			s.isIn = false
			if err := y.do(w, y.chunk(w, r, decode.ChunkOff)); err != nil {
				return err
			}
		}
		w.rooms[r].send = send{}
	}
	return y.do(w, decode.Event{Kind: decode.LinkEnd, Conn: room.Conn(w.link.conn)})
}

// do steps the core, does what it asks, in order, and judges.
func (y *System) do(w *World, ev decode.Event) error {
	y.answers, y.took = 0, y.took[:0]
	y.out.Reset()
	y.before.look(w)
	y.Log.Decode(w.core, &ev, func() { w.core.Step(0, ev, &y.out) })
	for i := range y.out.List {
		if err := y.effect(w, &y.out.List[i]); err != nil {
			return err
		}
	}
	y.after.look(w)
	return y.judge(w)
}

func (y *System) effect(w *World, x *decode.Effect) error {
	r := uint8(x.Room - 1)
	switch x.Kind {
	case decode.Accept:
		y.answers++
		w.rooms[r].owed = true
	case decode.Refuse:
		return fmt.Errorf("CAUSE: room %d is refused as %s, and there is room for it", r+1, x.Outcome)
	case decode.Dial:
		w.link.dialing = true
	case decode.SendPrealloc:
		if s := &w.rooms[r].send; s.lease != x.Prealloc.Lease {
			*s = send{lease: x.Prealloc.Lease, isOpen: w.link.up}
			w.rooms[r].hurt = w.rooms[r].hurt || !w.link.up // the link ends, and decode has not heard yet
		}
	case decode.SendCancel: // prefill stops; what is inside still comes out
		w.rooms[r].send.isOpen = false
	case decode.Place:
		s := &w.rooms[r].send
		s.isIn, s.blocks = x.OK, x.Blocks
	case decode.Step:
		return y.start(w, x)
	case decode.Begin:
		o := &w.rooms[r].out[x.Branch]
		if o.begin || o.fed > 0 {
			return fmt.Errorf("STREAM: room %d begins twice", r+1)
		}
		o.begin = true
		return y.holds(w, r, uint8(x.Branch), y.scope.Rooms[r].Tokens, nil)
	case decode.Emit:
		s, o := &w.rooms[r], &w.rooms[r].out[x.Branch]
		if o.emitted++; !s.owed || o.emitted > o.fed {
			return fmt.Errorf("STREAM: room %d emits its token %d, the engine made %d", r+1, o.emitted, o.fed)
		}
	case decode.Retract:
		if y.scope.Rooms[r].branches() > 1 {
			if w.rooms[r].said() {
				return fmt.Errorf("STREAM: room %d has several outputs, began to speak and is retracted", r+1)
			}
			w.shows |= 1 << sawManyRetracted
		}
		if err := y.spent(w, r); err != nil {
			return err
		}
		y.took = append(y.took, r)
		s := &w.rooms[r]
		s.retracted = min(s.retracted+1, 2)
		if s.send.waits() {
			return fmt.Errorf("OWN: room %d is retracted while its blocks are promised to prefill", r+1)
		}
		s.send = send{}
		w.shows |= 1<<sawRetracted | uint64(s.retracted/2)<<sawTwice
		if !s.said() {
			w.shows |= 1 << sawUnbegun
		}
	case decode.Freed:
		return y.freed(w, r, x.Blocks)
	case decode.End:
		return y.end(w, r, x.Outcome)
	}
	return nil
}

// spent checks that somebody made more tokens than all were promised when the last one was let in.
func (y *System) spent(w *World, r uint8) error {
	for i := range w.rooms {
		if w.rooms[i].owed && int(w.rooms[i].since) > y.scope.Ahead {
			return nil
		}
	}
	return fmt.Errorf("S6: room %d is retracted, and nobody made %d tokens since the last room was let in", r+1, y.scope.Ahead)
}

// holds checks that the KV of the first n tokens of a branch, and of no more, is in its blocks; the
// table is not known at a Begin.
func (y *System) holds(w *World, r, branch uint8, n int, table []int32) error {
	for i := range room.BlocksFor(n) {
		want := y.stamped(r, branch, i, n)
		found := false
		for b, k := range w.kv {
			found = found || k == want && (table == nil || table[i] == int32(b))
		}
		if !found {
			return fmt.Errorf("OWN: room %d needs the KV of its first %d tokens, and block %d of it is not there or another's", r+1, n, i)
		}
	}
	return nil
}

// start checks what a step copies, reads and writes, and begins it.
func (y *System) start(w *World, x *decode.Effect) error {
	if w.step != nil || len(x.Items) == 0 {
		return errors.New("a step starts that is empty, or while one is running")
	}
	for _, c := range x.Copies {
		if w.kv[c.To] != (stamp{}) || w.inside(c.To) || w.kv[c.From] == (stamp{}) {
			return fmt.Errorf("OWN: block %d, which holds %v, is copied over block %d, which holds %v", c.From, w.kv[c.From], c.To, w.kv[c.To])
		}
		w.kv[c.To] = w.kv[c.From]
		w.shows |= 1 << sawCopied
	}
	var owner [blocksMax]struct{ room, branch uint8 }
	for i := range x.Items {
		it := &x.Items[i]
		if err := y.item(w, it); err != nil {
			return err
		}
		r, own := uint8(it.Room-1), y.scope.Rooms[it.Room-1].Tokens/room.BlockTokens
		for i, b := range it.Blocks {
			me := owner[b]
			if me.room = r + 1; i >= own { // a block of its own, not of the prompt that all begin with
				me.branch = uint8(it.Branch) + 1
			}
			if k := w.kv[b].room; owner[b].room != 0 && owner[b].room != me.room || k != 0 && k != r+1 || w.inside(b) {
				return fmt.Errorf("OWN: room %d computes in a block of another", r+1)
			}
			if owner[b].room != 0 && (owner[b] != me || i >= own) {
				return fmt.Errorf("OWN: two outputs of room %d write one block", r+1)
			}
			owner[b] = me
		}
		w.rooms[r].out[it.Branch].table = uint8(len(it.Blocks))
	}
	w.step, w.reads = x.Items, x.Copies
	return nil
}

// item checks what a step does for one branch.
func (y *System) item(w *World, it *decode.StepItem) error {
	r := uint8(it.Room - 1)
	s, one := &w.rooms[r], &y.scope.Rooms[r]
	if int(it.Branch) >= one.branches() || it.Prefill && it.Branch > 0 {
		return fmt.Errorf("room %d computes for its output %d", r+1, it.Branch)
	}
	o := &s.out[it.Branch]
	said := one.Tokens + max(int(o.fed), 1) - 1 // tokens that are no decode item's input
	switch {
	case !s.owed || o.over:
		return fmt.Errorf("room %d is over and in a step", r+1)
	case len(it.Blocks) < room.BlocksFor(int(it.To)):
		return fmt.Errorf("OWN: room %d has no block for its token %d", r+1, it.To-1)
	case !it.Prefill && (o.fed == 0 || int(it.From) != said || it.To != it.From+1):
		return fmt.Errorf("STREAM: room %d feeds token %d, its newest is %d", r+1, it.From, said)
	case it.Prefill && (int(it.To) > said || it.Again != (s.retracted > 0)):
		return fmt.Errorf("room %d computes tokens %d to %d of %d, again: %v", r+1, it.From, it.To, said, it.Again)
	case it.Prefill && it.Last != (int(it.To) == one.Tokens && o.fed == 0 && !one.Pair):
		return fmt.Errorf("STREAM: room %d samples from its token %d: %v", r+1, it.To-1, it.Last)
	}
	return y.holds(w, r, uint8(it.Branch), int(it.From), it.Blocks)
}

// inside says that a receiver is in a block.
func (w *World) inside(b int32) bool {
	for i := range w.rooms {
		s := &w.rooms[i].send
		for _, x := range s.blocks {
			if s.isIn && x == b {
				return true
			}
		}
	}
	return false
}

func (y *System) freed(w *World, r uint8, blocks []int32) error {
	for _, b := range blocks {
		if slices.ContainsFunc(w.reads, func(c decode.Copy) bool { return c.From == b || c.To == b }) {
			return fmt.Errorf("QUIET: a block of room %d is freed that a step still copies", r+1)
		}
		for _, it := range w.step {
			for _, x := range it.Blocks {
				if x == b {
					return fmt.Errorf("QUIET: a block of room %d is freed that a step still uses", r+1)
				}
			}
		}
		if w.inside(b) {
			return fmt.Errorf("QUIET: a block of room %d is freed that a receiver is inside of", r+1)
		}
		if k := w.kv[b].room; k != 0 && k != r+1 {
			return fmt.Errorf("OWN: room %d frees a block of room %d", r+1, k)
		}
		w.kv[b] = stamp{}
	}
	return nil
}

func (y *System) end(w *World, r uint8, o room.Outcome) error {
	s := &w.rooms[r]
	if !s.owed || s.begins() {
		return fmt.Errorf("RELEASE: room %d ends twice, or while its first token is being fed", r+1)
	}
	s.owed, s.over, s.send = false, true, send{}
	one := &y.scope.Rooms[r]
	if y.before.of[r].isAway() {
		w.shows |= 1 << sawLeft
	}
	if o.Kind != room.Success && !s.hurt {
		return fmt.Errorf("CAUSE: room %d ends as %s, and nothing was done to it", r+1, o)
	}
	switch o.Kind {
	case room.Aborted:
		w.shows |= 1 << sawAborted
	case room.Failed:
		w.shows |= 1 << sawFailed
	default:
		for _, o := range s.out[:one.branches()] {
			if !o.over || o.emitted != o.fed || !o.early && int(o.fed) != one.MaxNew {
				return fmt.Errorf("STREAM: room %d is a success after %d of %d tokens", r+1, o.emitted, one.MaxNew)
			}
			if o.early {
				w.shows |= 1 << sawEarly
			}
		}
		w.shows |= 1 << sawSuccess
		if s.retracted > 0 {
			w.shows |= 1 << sawReturned
		}
		if one.branches() > 1 {
			w.shows |= 1 << sawMany
		}
		for i := range w.rooms {
			if s.retracted == 0 && w.rooms[i].retracted > 0 && w.rooms[i].owed {
				w.shows |= 1 << sawKept
			}
		}
	}
	return nil
}
