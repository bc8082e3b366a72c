package relay

import "baton/core/room"

// place asks for a pair of workers. Every leg of the attempt before is over (G5).
func (c *Core) place(r *request) {
	for _, l := range r.legs {
		room.Assert(l.state == unused || l.state == over, "relay", r.room, r.phase, "an attempt starts while a leg of the last one is open")
	}
	room.Assert(r.tokens == 0, "relay", r.room, r.phase, "an attempt starts behind the first token, or before what came of the last is discarded")
	r.attempt++
	r.room = 0
	for i := range r.legs {
		r.legs[i] = leg{worker: NoWorker}
	}
	c.enter(r, Placing)
	c.arm(r, PlaceTimer, r.budgets.Place)
	c.ask(r)
}

// ask asks for a pair, for the first time in this attempt or again (G9).
func (c *Core) ask(r *request) {
	r.place, r.nobody = asked, room.Outcome{}
	e := Effect{Kind: Place, Req: r.id, Attempt: r.attempt}
	for _, t := range r.tried {
		e.Exclude = append(e.Exclude, t.worker)
		if !t.guilty {
			e.Innocent = append(e.Innocent, t.worker)
		}
	}
	c.out.add(e)
}

// pair dispatches both legs at once, or has the request wait for somebody to serve it.
func (c *Core) pair(r *request, ev Event) {
	if r.phase != Placing || ev.Attempt != r.attempt || r.place == alone {
		return
	}
	if !ev.OK {
		c.absent(r, ev.Outcome)
		return
	}
	room.Assert(ev.Room != 0 && ev.Decode != NoWorker, "relay", r.room, r.phase, "a pair without room or decode worker")
	r.room = ev.Room
	r.verdict, r.place = room.Outcome{}, asked
	r.armed[QueueTimer], r.armed[PlaceTimer] = false, false
	c.enter(r, Connecting)
	c.arm(r, ConnectTimer, r.budgets.Connect)
	c.open(r, Prefill, ev.Prefill)
	c.open(r, Decode, ev.Decode)
}

// absent hears that nobody is there to serve the attempt.
func (c *Core) absent(r *request, o room.Outcome) {
	stale := r.place == outdated
	r.place, r.nobody = alone, o
	switch {
	case stale: // whoever looked may have looked before that worker came
		c.ask(r)
	case r.attempt > 1 && !mends(r.verdict.Cause):
		c.unplaced(r)
	}
}

// mends says whether a worker that comes, or comes back, can cure what the last attempt failed
// by. One that is full, too slow, or stumbles over the request, is still there and will do so
// again.
func mends(c room.Cause) bool { return c == room.WorkerLost || c == room.TransferFailed }

// unplaced ends a request that nobody came to serve.
func (c *Core) unplaced(r *request) {
	o := r.nobody
	switch {
	case r.verdict.Ended():
		o = r.verdict // why there was a second attempt is the first cause
	case !o.Ended() || o.Kind == room.Success:
		o = room.Fail(room.Overload)
	}
	c.finish(r, o, false)
}

// roster hears that a worker may be placed on again, or for the first time: it is not held
// against it any more that it was lost, and whoever found nobody asks again, the oldest first.
func (c *Core) roster(worker int32) {
	for e := c.all.Front(); e != nil; e = e.Next() {
		r := e.Value.(*request)
		for i := range r.tried {
			r.tried[i].guilty = r.tried[i].guilty && r.tried[i].worker != worker
		}
		switch {
		case r.phase != Placing:
		case r.place == alone:
			c.ask(r)
		default:
			r.place = outdated
		}
	}
}

func (c *Core) open(r *request, l Leg, worker int32) {
	if worker == NoWorker {
		return
	}
	r.legs[l] = leg{worker, opening}
	known := false
	for _, t := range r.tried {
		known = known || t.worker == worker
	}
	if !known {
		r.tried = append(r.tried, tried{worker: worker})
	}
	c.out.add(Effect{Kind: Open, Req: r.id, Attempt: r.attempt, Leg: l, Worker: worker, Room: r.room})
}

// closeLegs ends whatever is open (G2, G3).
func (c *Core) closeLegs(r *request) {
	for i := range r.legs {
		if r.legs[i].state.live() {
			r.legs[i].state = closing
			c.out.add(Effect{Kind: Close, Req: r.id, Attempt: r.attempt, Leg: Leg(i)})
		}
	}
}

// release is the only place where a leg stops being load of its worker (G4).
func (c *Core) release(r *request, l Leg) {
	r.legs[l].state = over
	c.out.add(Effect{Kind: Release, Req: r.id, Worker: r.legs[l].worker})
}

// current says whether the event is about a leg that is still watched.
func (r *request) current(ev Event) bool {
	return ev.Attempt == r.attempt && ev.Leg < legs
}

func (c *Core) legOpen(r *request, ev Event) {
	if !r.current(ev) || r.legs[ev.Leg].state != opening {
		return
	}
	r.legs[ev.Leg].state = open
	c.accepted(r)
}

// accepted goes on when no leg is left that has not answered.
func (c *Core) accepted(r *request) {
	if r.phase != Connecting || r.legs[Prefill].state == opening || r.legs[Decode].state == opening {
		return
	}
	r.armed[ConnectTimer] = false
	c.arm(r, FirstTokenTimer, r.budgets.FirstToken)
	c.enter(r, Prefilling)
}

// tokens passes on what the decode leg brought, unless the request or attempt is over.
func (c *Core) tokens(r *request, ev Event) {
	if ev.Attempt != r.attempt || !r.legs[Decode].state.live() {
		return
	}
	r.legs[Decode].state = open
	r.tokens += max(ev.N, 1) // a piece of text counts although its tokens came earlier
	if r.phase != Streaming {
		r.armed[ConnectTimer], r.armed[FirstTokenTimer] = false, false
		c.enter(r, Streaming)
	}
	c.arm(r, GapTimer, r.budgets.Gap)
	c.out.add(Effect{Kind: Forward, Req: r.id, Attempt: r.attempt})
}

// waits hears that a worker has taken a room's memory back for a while: it is well, and the stream
// stands still for a reason. What it brings all the same is bounded by the total budget.
func (c *Core) waits(r *request, ev Event) {
	if ev.Attempt == r.attempt && r.phase == Streaming && r.legs[Decode].state.live() {
		c.arm(r, GapTimer, r.budgets.Gap)
	}
}

// legEnd hears that a leg is over by itself.
func (c *Core) legEnd(r *request, ev Event) {
	if !r.current(ev) {
		return
	}
	l := &r.legs[ev.Leg]
	watched := l.state.live()
	if !watched && l.state != closing {
		return
	}
	c.release(r, ev.Leg)
	if !watched { // it crossed our Close, whose reason came first
		c.settle(r)
		return
	}
	switch {
	case ev.Outcome.Kind != room.Success || ev.Leg == Decode && !ev.Finished:
		c.legFailed(r, ev)
	case ev.Leg == Decode:
		c.finish(r, room.Done(), true)
	default:
		c.accepted(r)
	}
}

func (c *Core) legClosed(r *request, ev Event) {
	if !r.current(ev) || r.legs[ev.Leg].state != closing {
		return
	}
	c.release(r, ev.Leg)
	c.settle(r)
}
