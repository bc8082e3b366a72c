package relay

import "baton/core/room"

// legFailed decides what the failure of one leg means for the request.
func (c *Core) legFailed(r *request, ev Event) {
	o := ev.Outcome
	if o.Kind == room.Success { // an early end: no finish reason came
		o = room.Fail(room.WorkerLost)
		ev.Said = false
	} else if !o.Ended() || o.Cause == room.NoCause {
		o = room.Fail(room.Internal)
	}
	if ev.Leg == Prefill && r.phase == Streaming {
		// Decode has all of the KV. What prefill says about its peer now says nothing (G2).
		if !ev.Said && o.Cause != room.ClientError && o.Cause != room.Cancelled {
			c.blame(r, Prefill, o.Cause)
		}
		return
	}
	if ev.Leg == Prefill && ev.Said && o.Cause == room.Cancelled && r.legs[Decode].state.live() {
		// We did not cancel, so decode gave the lease up and prefill heard of it first. Why it
		// did, decode says itself: its end is on its way.
		c.accepted(r)
		return
	}
	again := true
	switch o.Cause {
	case room.ClientError, room.Cancelled:
		again = false
	case room.Deadline: // said: the request's own time. Not said: the leg was silent
		again = !ev.Said
		if !ev.Said {
			c.blame(r, ev.Leg, o.Cause)
		}
	case room.WorkerLost: // a worker that speaks is not lost: it says so of its peer
		if ev.Said && r.legs[ev.Leg.Peer()].state != unused {
			c.blame(r, ev.Leg.Peer(), o.Cause)
		} else {
			c.blame(r, ev.Leg, o.Cause)
		}
	case room.TransferFailed: // what lies between two workers belongs to both
		c.blame(r, Prefill, o.Cause)
		c.blame(r, Decode, o.Cause)
	default:
		c.blame(r, ev.Leg, o.Cause)
	}
	c.fail(r, o, again)
}

// timer fires a budget. A timer that is not armed any more crossed what disarmed it.
func (c *Core) timer(r *request, t TimerName) {
	if t >= timerNames || !r.armed[t] {
		return
	}
	r.armed[t] = false
	switch t {
	case QueueTimer:
		if r.phase == Placing && r.place == alone { // not too many requests, too few workers
			c.unplaced(r)
			return
		}
		c.finish(r, room.Fail(room.Overload), false)
	case PlaceTimer:
		c.unplaced(r)
	case TotalTimer: // the client's own deadline: nobody is to blame (G7)
		c.finish(r, room.Fail(room.Deadline), false)
	case ConnectTimer:
		for l := range legs {
			if r.legs[l].state == opening {
				c.blame(r, l, room.WorkerLost)
			}
		}
		c.fail(r, room.Fail(room.WorkerLost), true)
	case FirstTokenTimer: // who of the two is slow cannot be seen, unless prefill is through
		if r.legs[Prefill].state.live() {
			c.blame(r, Prefill, room.Deadline)
		}
		c.blame(r, Decode, room.Deadline)
		c.fail(r, room.Fail(room.Deadline), true)
	case GapTimer:
		c.blame(r, Decode, room.Deadline)
		c.fail(r, room.Fail(room.Deadline), true)
	}
}

// fail ends the attempt: both legs at once, then another try or the end of the request.
func (c *Core) fail(r *request, o room.Outcome, again bool) {
	again = again && r.unheard() && int(r.attempt) < c.limits.MaxTries && c.credit >= retryCost
	if !again {
		c.finish(r, o, false)
		return
	}
	c.credit -= retryCost
	r.verdict = o
	r.armed[ConnectTimer], r.armed[FirstTokenTimer], r.armed[GapTimer] = false, false, false
	c.discard(r)
	c.enter(r, Retrying)
	c.closeLegs(r)
	c.settle(r)
}

// unheard says that the client has had nothing yet, so that another attempt may answer it (G5).
func (r *request) unheard() bool { return r.tokens == 0 || r.buffered }

// discard takes back what was forwarded of an attempt that is given up. Nothing more of it is
// forwarded: its decode leg is over, or closed in this step (G10).
func (c *Core) discard(r *request) {
	if r.tokens > 0 {
		room.Assert(r.buffered, "relay", r.room, r.phase, "tokens are taken back that the client has")
		c.out.add(Effect{Kind: Discard, Req: r.id, Attempt: r.attempt})
		r.tokens = 0
	}
}

func (c *Core) blame(r *request, l Leg, cause room.Cause) {
	worker := r.legs[l].worker
	if worker == NoWorker {
		return
	}
	for i := range r.tried {
		// A transfer is blamed on both and may be the fault of neither: another link, or the
		// same two with a new one, can do better.
		if r.tried[i].worker == worker && cause != room.TransferFailed {
			r.tried[i].guilty = true
		}
	}
	c.out.add(Effect{Kind: Blame, Req: r.id, Worker: worker, Cause: cause})
}
