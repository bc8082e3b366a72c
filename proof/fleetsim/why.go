package fleetsim

import (
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// This file judges CAUSE hop by hop: whatever may end a room at a worker, or a request's attempt
// at its gateway, is noted before the core hears of it, and the first such thing has to be the
// outcome there. So the first thing that was done to an attempt is what its client reads, however
// many nodes it goes through.

// because notes what ends a room at a worker, if nothing has yet.
func (w *World) because(n *node, id room.ID, o room.Outcome) {
	if g := w.rooms[id]; g != nil && !g.first(n).Ended() {
		g.why[n.side()], g.lives[n.side()] = o, n.life
	}
}

// first is what ended a room first in this life of a worker.
func (g *ghost) first(n *node) (o room.Outcome) {
	if g.lives[n.side()] == n.life {
		o = g.why[n.side()]
	}
	return o
}

// cancelled is the outcome of an end that somebody asked for.
func cancelled(c room.Cause) room.Outcome {
	if c == room.NoCause {
		c = room.Cancelled
	}
	return room.Fail(c)
}

// whyP notes what a prefill core is about to hear.
func (w *World) whyP(n *node, ev *prefill.Event) {
	switch ev.Kind {
	case prefill.Abort:
		w.because(n, ev.Room, cancelled(ev.Cause))
	case prefill.Cancel:
		v, there := w.view(n, ev.Cancel.Room)
		if !there || v.Lease == ev.Cancel.Lease || v.Lease == (room.Lease{}) {
			w.because(n, ev.Cancel.Room, cancelled(ev.Cancel.Cause))
		}
	case prefill.StepDone:
		for i := range ev.Results {
			if r := &ev.Results[i]; !r.OK {
				w.because(n, r.Room, room.Fail(room.Internal))
			}
		}
	case prefill.WriteDone:
		if !ev.OK {
			w.because(n, ev.Room, room.Fail(room.TransferFailed))
		}
	case prefill.LinkEnd:
		for v := range n.p.core.Rooms {
			if g := w.rooms[v.Room]; v.Lease.Boot == ev.Boot && g.conn == ev.Conn {
				w.because(n, v.Room, room.Fail(room.WorkerLost))
			}
		}
	case prefill.TimerFired:
		if ev.Timer.Kind == room.DeadlineTimer {
			w.because(n, ev.Timer.Room, room.Fail(room.Deadline))
		}
	}
}

// whyD notes what a decode core is about to hear.
func (w *World) whyD(n *node, ev *decode.Event) {
	switch ev.Kind {
	case decode.Abort:
		w.because(n, ev.Room, cancelled(ev.Cause))
	case decode.Settled:
		if s := &ev.Settled; s.Outcome.Kind != room.Success && w.waiting(n, s.Room, s.Lease) {
			w.because(n, s.Room, s.Outcome)
		}
	case decode.LinkFailed, decode.LinkEnd:
		o := room.Fail(room.WorkerLost)
		for v := range n.d.core.Rooms {
			lost := ev.Kind == decode.LinkFailed && v.Phase == decode.NeedsLink.String() && v.Peer == ev.Peer
			if ev.Kind == decode.LinkEnd {
				lost = n.d.rooms[v.Room].conn == ev.Conn && w.waiting(n, v.Room, v.Lease)
			}
			if lost {
				w.because(n, v.Room, o)
			}
		}
	case decode.ChunkRefused:
		if w.waiting(n, ev.Room, ev.Lease) {
			w.because(n, ev.Room, room.Fail(room.TransferFailed))
		}
	case decode.StepDone:
		for i := range ev.Results {
			if r := &ev.Results[i]; !r.OK {
				w.because(n, r.Room, room.Fail(room.Internal))
			}
		}
	case decode.Begun:
		if !ev.OK {
			w.because(n, ev.Room, room.Fail(room.TransferFailed))
		}
	case decode.TimerFired:
		if ev.Timer.Kind == room.DeadlineTimer {
			w.because(n, ev.Timer.Room, room.Fail(room.Deadline))
		}
	}
}

// waiting says that a room at decode still waits for what comes under its lease.
func (w *World) waiting(n *node, id room.ID, l room.Lease) bool {
	v, there := w.view(n, id)
	return there && v.Lease == l && (v.Phase == decode.Preallocated.String() || v.Phase == decode.Receiving.String())
}

// judgeWhy demands that a room ends at a worker for what happened to it there first.
func (w *World) judgeWhy(n *node, id room.ID, o room.Outcome) {
	why := w.rooms[id].first(n)
	if o.Kind == room.Success && !why.Ended() || o == why {
		return
	}
	w.fail("CAUSE", w.of(id), "room %s ends as %s at %s %d, and what happened to it there first is %s", id, o, roleNames[n.role], n.at, why)
}

// whyG notes what a gateway's core is about to hear. What a client or its deadline says counts
// over what ended an attempt that another one follows.
func (w *World) whyG(n *node, ev *relay.Event) {
	id := ev.Req
	if ev.Kind == relay.TimerFired {
		id = ev.Timer.Req
	}
	if id == 0 || ev.Kind == relay.Arrive {
		return
	}
	r := &w.reqs[id]
	if r.ended {
		return
	}
	first := func(o room.Outcome) {
		if !r.why.Ended() {
			r.why = o
		}
	}
	switch ev.Kind {
	case relay.ClientGone:
		r.why = room.Fail(room.Cancelled)
	case relay.Pair:
		if !ev.OK {
			r.nobody = true
		}
	case relay.LegEnd:
		if o, counts := w.legWhy(r, ev); counts {
			first(o)
		}
	case relay.TimerFired:
		switch ev.Timer.Name {
		case relay.TotalTimer:
			r.why = room.Fail(room.Deadline)
		case relay.QueueTimer:
			if !r.nobody {
				first(room.Fail(room.Overload))
				return
			}
			first(room.Fail(room.WorkerLost))
		case relay.PlaceTimer, relay.ConnectTimer:
			first(room.Fail(room.WorkerLost))
		case relay.FirstTokenTimer, relay.GapTimer:
			first(room.Fail(room.Deadline))
		}
	}
}

// legWhy is what the end of a leg means for the attempt, if it means anything.
func (w *World) legWhy(r *request, ev *relay.Event) (o room.Outcome, counts bool) {
	o = ev.Outcome
	for _, l := range r.legs {
		if l.attempt == ev.Attempt && l.side == ev.Leg && l.closed || l.attempt > ev.Attempt {
			return o, false // it crossed our hanging up, whose reason came first
		}
	}
	switch {
	case ev.Leg == relay.Decode && o.Kind == room.Success && !ev.Finished:
		return room.Fail(room.WorkerLost), true
	case o.Kind == room.Success:
		return o, false
	case ev.Leg == relay.Decode:
		return o, true
	case r.got > 0 && r.of == ev.Attempt:
		return o, false // decode has all of the KV
	case ev.Said && o.Cause == room.Cancelled:
		return o, !r.decodes(ev.Attempt) // decode gave it up, and says why itself
	}
	return o, true
}

// decodes says that the decode leg of a try is still there.
func (r *request) decodes(attempt int32) bool {
	for _, l := range r.legs {
		if l.attempt == attempt && l.side == relay.Decode {
			return !l.final && !l.closed
		}
	}
	return false
}

// judgeCause demands that a client reads what ended the deciding attempt first.
func (w *World) judgeCause(n *node, r *request, req int, o room.Outcome) {
	if o.Kind != room.Success && o != r.why {
		w.fail("CAUSE", req, "request %d ends as %s at gateway %d, and what happened to its attempt first is %s", req, o, n.at, r.why)
	}
	if o.Kind == room.Success || int(w.tries(r)) >= w.plan.limits.MaxTries || r.got > 0 && !r.whole {
		return
	}
	if n.g.credit < retryCost && (o.Cause == room.WorkerLost || o.Cause == room.TransferFailed) {
		w.sights.see(noCredit)
	}
}

func (w *World) tries(r *request) (n int32) {
	for _, l := range r.legs {
		n = max(n, l.attempt)
	}
	return n
}
