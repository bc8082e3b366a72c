package sim

import (
	"fmt"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/proof/explore"
)

// deadline of every request. It only has to be later than now, which is always 0: the
// explorer fires any armed timer at any moment.
const deadline = time.Hour

// Apply performs e. An error is a broken invariant.
func (y *System) Apply(w *world, e Event) error {
	w.shows = 0
	r := e.Room
	w.hurt |= y.hurts(e)
	switch e.Kind {
	case deliver:
		w.net.remove(e.Arg)
		return y.deliver(w, unpackMsg(e.Arg))
	case twice:
		return y.deliver(w, unpackMsg(e.Arg))
	case lose:
		w.net.remove(e.Arg)
	case stepP, stepPFails:
		return y.stepHomeP(w, e.Kind == stepP)
	case stepD, stepDFails:
		return y.stepHomeD(w, e.Kind == stepD)
	case begun:
		w.begin &^= 1 << r
		return y.doD(w, decode.Event{Kind: decode.Begun, Room: id(r), OK: true, Finished: y.scope.MaxNew == 1})
	case arrive, again, body, refuse, returns, writeFails, writeLate:
		return y.chunk(w, e.Kind, e.Arg)
	case cutD, staleD, breakD:
		w.breaks -= bit(e.Kind == breakD)
		w.shows |= 1 << sawBreak
		return y.cutD(w, uint8(e.Arg))
	case cutP, staleP, breakP:
		w.breaks -= bit(e.Kind == breakP)
		return y.cutP(w, uint8(e.Arg))
	case linkUp:
		w.dialing = false
		w.conn++
		if w.dInc == 2 {
			w.late |= 1 << w.conn
		}
		return y.doD(w, decode.Event{Kind: decode.LinkUp, Conn: room.Conn(w.conn)})
	case noLink:
		w.dialing = false
		return y.doD(w, decode.Event{Kind: decode.LinkFailed, Cause: room.WorkerLost})
	case deadlineP:
		return y.doP(w, prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id(r)}})
	case deadlineD:
		w.shows |= 1 << sawDeadline
		return y.doD(w, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id(r)}})
	case resend:
		return y.doD(w, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.ResendTimer, Room: id(r)}})
	case forgetP:
		w.forget--
		w.shows |= 1 << sawForget
		return y.doP(w, prefill.Event{Kind: prefill.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
	case forgetD:
		w.forget--
		w.shows |= 1 << sawForget
		return y.doD(w, decode.Event{Kind: decode.TimerFired, Timer: room.Timer{Kind: room.TombstoneTimer}})
	case giveUp:
		return y.doD(w, decode.Event{Kind: decode.Abort, Room: id(r), Cause: room.Internal})
	case giveUpP:
		return y.doP(w, prefill.Event{Kind: prefill.Abort, Room: id(r), Cause: room.Internal})
	case clientAbort:
		w.gone |= 1 << r
		w.net.add(msg{kind: msgAbortP, room: r}.pack())
		w.net.add(msg{kind: msgAbortD, room: r}.pack())
	case clientEarly:
		w.gone |= 1 << r
		w.unsent |= 1 << r
		w.net.remove(msg{kind: msgRequestP, room: r}.pack())
		w.net.add(msg{kind: msgAbortD, room: r}.pack())
	case drainP:
		w.drained |= 1
		return y.doP(w, prefill.Event{Kind: prefill.Drain})
	case drainD:
		w.drained |= 2
		return y.doD(w, decode.Event{Kind: decode.Drain})
	case crashP, crashD:
		y.crash(w, e.Kind == crashP)
	case restartP:
		w.shows |= 1 << sawCrash
		w.pUp = true
		w.pInc++
		y.newP(w)
	case restartD:
		w.shows |= 1 << sawCrash
		w.dUp = true
		w.dInc++
		y.newD(w)
	}
	return nil
}

// hurts says to which rooms e does something that they may fail by: to its own, or, if it is about
// a connection or a worker, to all.
func (y *System) hurts(e Event) uint8 {
	switch y.Class(e) {
	case explore.Progress, explore.Delivery, explore.Retry:
		return 0
	}
	switch e.Kind {
	case staleD, staleP, breakD, breakP, crashP, crashD, restartP, restartD, forgetP, forgetD, drainP, drainD, stepPFails, stepDFails:
		return 1<<y.scope.Rooms - 1
	}
	return 1 << e.Room
}

// unhurt is what is wrong with a room that fails and was left in peace.
func (w *world) unhurt(r uint8, o room.Outcome) error {
	if o.Kind == room.Success || w.hurt>>r&1 == 1 {
		return nil
	}
	return fmt.Errorf("CAUSE: room %d ends as %s, and nothing was done to it", r+1, o)
}

func id(r uint8) room.ID { return room.ID(r) + 1 }

// deliver hands a message to its receiver; one that is down does not hear it, and whoever
// asked over HTTP sees that at once.
func (y *System) deliver(w *world, m msg) error {
	sc := &y.scope
	switch m.kind {
	case msgRequestP:
		w.opened |= bit(sc.Gateway) << m.room // only a gateway asks
		if !w.pUp {
			y.tell(w, msgAbortD, m.room)
			return nil
		}
		return y.asked(y.doP(w, prefill.Event{Kind: prefill.Request, Room: id(m.room), Tokens: sc.Tokens, Keys: y.keys(sc.Tokens), Deadline: deadline}))
	case msgRequestD:
		if !w.dUp {
			y.tell(w, msgAbortP, m.room)
			return nil
		}
		if w.leases >= y.scope.leases() {
			return nil // the model is out of lease numbers, the protocol never is
		}
		peer := int32(0)
		if sc.Local {
			peer = decode.Local
		}
		return y.asked(y.doD(w, decode.Event{Kind: decode.Request, Room: id(m.room), Peer: peer, Tokens: sc.Tokens, Keys: y.keys(sc.Tokens), MaxNew: sc.MaxNew, Deadline: deadline}))
	case msgAbortP:
		return y.doP(w, prefill.Event{Kind: prefill.Abort, Room: id(m.room), Cause: room.Cancelled})
	case msgAbortD:
		return y.doD(w, decode.Event{Kind: decode.Abort, Room: id(m.room), Cause: room.Cancelled})
	case msgPrealloc:
		return y.doP(w, prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{
			Room: id(m.room), Lease: lease(m.boot, m.seq), Conn: room.Conn(m.n), Tokens: sc.Tokens, From: int(m.from) * room.BlockTokens, Left: deadline}})
	case msgCancel:
		return y.doP(w, prefill.Event{Kind: prefill.Cancel, Cancel: room.Cancel{Room: id(m.room), Lease: lease(m.boot, m.seq)}})
	}
	s := room.Settled{Room: id(m.room), Lease: lease(m.boot, m.seq), Outcome: room.Fail(room.Internal)}
	if m.n > 0 {
		s.Outcome, s.Chunks = room.Done(), int(m.n)
	}
	return y.doD(w, decode.Event{Kind: decode.Settled, Settled: s})
}

// asked checks that a Request was answered exactly once.
func (y *System) asked(err error) error {
	if err == nil && y.answers != 1 {
		return fmt.Errorf("a request got %d answers instead of one", y.answers)
	}
	return err
}

// stepHomeP brings prefill's engine step home: what it computed is in its source blocks.
func (y *System) stepHomeP(w *world, ok bool) error {
	s := w.pStep
	w.pStep = passes{}
	var results []prefill.Result
	for _, it := range s.item[:s.n] {
		results = append(results, prefill.Result{Room: id(it.room), OK: ok})
		for i := int(it.from) / room.BlockTokens; i < room.BlocksFor(int(it.to)) && (ok || !y.scope.Keys); i++ {
			w.src[it.table[i]] = y.stamp(it.room, i)
		}
	}
	return y.doP(w, prefill.Event{Kind: prefill.StepDone, Results: results})
}

// stepHomeD brings decode's engine step home.
func (y *System) stepHomeD(w *world, ok bool) error {
	s := w.dStep
	w.dStep = passes{}
	var results []decode.Result
	for _, it := range s.item[:s.n] {
		results = append(results, decode.Result{Room: id(it.room), OK: ok, Finished: it.finish})
		for i := int(it.from) / room.BlockTokens; it.prefill && i < room.BlocksFor(int(it.to)) && (ok || !y.scope.Keys); i++ {
			w.dst[it.table[i]] = y.stamp(it.room, i)
		}
	}
	return y.doD(w, decode.Event{Kind: decode.StepDone, Results: results})
}

// chunk lets something happen to one chunk.
func (y *System) chunk(w *world, k Kind, x uint32) error {
	c := unpackChunk(x)
	ev := decode.Event{
		Kind: decode.ChunkArrived, Room: id(c.room), Lease: lease(c.boot, c.seq), Conn: room.Conn(c.conn), Chunk: int32(c.n),
		FirstBlock: int32(c.first), N: int32(c.blocks), Last: c.last,
	}
	switch k {
	case arrive, again:
		if k == arrive {
			w.wire.remove(x)
		}
		y.arriving = x
		return y.doD(w, ev)
	case body:
		in := w.leave(x)
		for i := range c.blocks {
			b := in.table[i]
			w.dst[b] = y.stamp(c.room, int(c.first+i))
			w.by[b] = origin{c.boot, c.seq, c.pass}
		}
		ev.Kind = decode.ChunkPlaced
		return y.doD(w, ev)
	case refuse:
		w.leave(x)
		ev.Kind = decode.ChunkOff
		if err := y.doD(w, ev); err != nil {
			return err
		}
		ev.Kind = decode.ChunkRefused
		return y.doD(w, ev)
	case writeFails:
		w.wire.remove(x)
	}
	return y.returned(w, x, k == returns)
}

// leave takes a receiver out of decode's memory.
func (w *world) leave(x uint32) inside {
	for i := range w.nIn {
		if in := w.in[i]; in.id == x {
			copy(w.in[i:], w.in[i+1:w.nIn])
			w.nIn--
			w.in[w.nIn] = inside{}
			return in
		}
	}
	panic("sim: no receiver inside")
}

// returned brings a write home. That says nothing about its chunk.
func (y *System) returned(w *world, x uint32, ok bool) error {
	for i := range w.nWrites {
		if w.writes[i].id == x {
			copy(w.writes[i:], w.writes[i+1:w.nWrites])
			w.nWrites--
			w.writes[w.nWrites] = write{}
			c := unpackChunk(x)
			return y.doP(w, prefill.Event{Kind: prefill.WriteDone, Room: id(c.room), Lease: lease(c.boot, c.seq), Chunk: int32(c.n), OK: ok})
		}
	}
	panic("sim: no such write")
}

// leaseBit numbers the leases of a world.
func leaseBit(boot, seq uint8) uint16 { return 1 << ((boot-1)*leasesMax + seq - 1) }
