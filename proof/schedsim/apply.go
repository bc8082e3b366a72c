package schedsim

import (
	"errors"
	"fmt"

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
		return y.stepHome(w, e.Kind == home, roomsMax)
	case stops:
		return y.stepHome(w, true, r)
	case begun, unbegun:
		return y.begun(w, r, e.Kind == begun)
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
			w.kv[b] = stamp{r + 1, uint8(i), uint8(min(room.BlockTokens, y.scope.Rooms[r].Tokens-i*room.BlockTokens))}
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
	ev := decode.Event{Kind: decode.Request, Room: id(r), Peer: decode.Local, Tokens: one.Tokens, MaxNew: one.MaxNew, Deadline: deadline}
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

// stepHome brings the engine's step home: what it computed is in its blocks. The output of room
// stop ends with it.
func (y *System) stepHome(w *World, ok bool, stop uint8) error {
	var results []decode.Result
	for _, it := range w.step {
		r := uint8(it.Room - 1)
		res := decode.Result{Room: it.Room, OK: ok}
		w.rooms[r].hurt = w.rooms[r].hurt || !ok
		for i := int(it.From) / room.BlockTokens; ok && i < room.BlocksFor(int(it.To)); i++ {
			w.kv[it.Blocks[i]] = stamp{r + 1, uint8(i), uint8(min(room.BlockTokens, int(it.To)-i*room.BlockTokens))}
		}
		if ok && !it.Prefill {
			res.Finished = y.last(w, r) || r == stop
			y.makes(&w.rooms[r])
			w.rooms[r].early = r == stop
		}
		if it.Again {
			w.shows |= 1 << sawAgain
			if y.scope.Rooms[r].Pair {
				w.shows |= 1 << sawPairAgain
			}
		}
		results = append(results, res)
	}
	w.step = nil
	return y.do(w, decode.Event{Kind: decode.StepDone, Results: results})
}

func (y *System) begun(w *World, r uint8, ok bool) error {
	s := &w.rooms[r]
	s.begin = false
	s.hurt = s.hurt || !ok
	ev := decode.Event{Kind: decode.Begun, Room: id(r), OK: ok}
	if ok {
		y.makes(s)
		ev.Finished = int(s.fed) == y.scope.Rooms[r].MaxNew
	}
	return y.do(w, ev)
}

// makes counts a token of output.
func (y *System) makes(s *state) {
	s.fed++
	s.since = min(s.since+1, uint8(y.scope.Ahead)+1)
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
		return y.start(w, x.Items)
	case decode.Begin:
		if w.rooms[r].begin || w.rooms[r].fed > 0 {
			return fmt.Errorf("STREAM: room %d begins twice", r+1)
		}
		w.rooms[r].begin = true
		return y.holds(w, r, y.scope.Rooms[r].Tokens, nil)
	case decode.Emit:
		s := &w.rooms[r]
		if s.emitted++; !s.owed || s.emitted > s.fed {
			return fmt.Errorf("STREAM: room %d emits its token %d, the engine made %d", r+1, s.emitted, s.fed)
		}
	case decode.Retract:
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
		if s.fed == 0 {
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

// holds checks that the KV of the first n tokens of a room, and of no more, is in its blocks; the
// table is not known at a Begin.
func (y *System) holds(w *World, r uint8, n int, table []int32) error {
	for i := range room.BlocksFor(n) {
		want := stamp{r + 1, uint8(i), uint8(min(room.BlockTokens, n-i*room.BlockTokens))}
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

// start checks what a step reads and writes, and begins it.
func (y *System) start(w *World, items []decode.StepItem) error {
	if w.step != nil || len(items) == 0 {
		return errors.New("a step starts that is empty, or while one is running")
	}
	var writer [blocksMax]uint8
	for _, it := range items {
		r := uint8(it.Room - 1)
		s, one := &w.rooms[r], &y.scope.Rooms[r]
		said := one.Tokens + max(int(s.fed), 1) - 1 // tokens that are no decode item's input
		switch {
		case !s.owed:
			return fmt.Errorf("room %d is over and in a step", r+1)
		case len(it.Blocks) < room.BlocksFor(int(it.To)):
			return fmt.Errorf("OWN: room %d has no block for its token %d", r+1, it.To-1)
		case !it.Prefill && (s.fed == 0 || int(it.From) != said || it.To != it.From+1):
			return fmt.Errorf("STREAM: room %d feeds token %d, its newest is %d", r+1, it.From, said)
		case it.Prefill && (int(it.To) > said || it.Again != (s.retracted > 0)):
			return fmt.Errorf("room %d computes tokens %d to %d of %d, again: %v", r+1, it.From, it.To, said, it.Again)
		case it.Prefill && it.Last != (int(it.To) == one.Tokens && s.fed == 0 && !one.Pair):
			return fmt.Errorf("STREAM: room %d samples from its token %d: %v", r+1, it.To-1, it.Last)
		}
		if err := y.holds(w, r, int(it.From), it.Blocks); err != nil {
			return err
		}
		for _, b := range it.Blocks {
			if k := w.kv[b].room; writer[b] != 0 || k != 0 && k != r+1 || w.inside(b) {
				return fmt.Errorf("OWN: room %d computes in a block of another", r+1)
			}
			writer[b] = r + 1
		}
		s.table = uint8(len(it.Blocks))
	}
	w.step = items
	return nil
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
	if !s.owed || s.begin {
		return fmt.Errorf("RELEASE: room %d ends twice, or while its first token is being fed", r+1)
	}
	s.owed, s.over, s.send = false, true, send{}
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
		if s.emitted != s.fed || !s.early && int(s.fed) != y.scope.Rooms[r].MaxNew {
			return fmt.Errorf("STREAM: room %d is a success after %d of %d tokens", r+1, s.emitted, y.scope.Rooms[r].MaxNew)
		}
		w.shows |= 1 << sawSuccess
		if s.retracted > 0 {
			w.shows |= 1 << sawReturned
		}
		if s.early {
			w.shows |= 1 << sawEarly
		}
		for i := range w.rooms {
			if s.retracted == 0 && w.rooms[i].retracted > 0 && w.rooms[i].owed {
				w.shows |= 1 << sawKept
			}
		}
	}
	return nil
}
