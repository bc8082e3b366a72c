package relaysim

import (
	"baton/core/relay"
	"baton/core/room"
)

// due is how a request may end in a step.
type due struct {
	req     uint64
	outcome room.Outcome
}

// due lists how the request of an event may end when the gateway hears it, by what happened to it
// so far (CAUSE): by this event, if it is the first of its attempt that decides anything, or, if
// there is no attempt, by why the last one failed. It knows what was said, not what the core
// made of it.
func (w *World) due(ev relay.Event, all []due) []due {
	id := ev.Req
	if ev.Kind == relay.TimerFired {
		id = ev.Timer.Req
	}
	r := w.of(id)
	if r.ended {
		return all
	}
	may := func(causes ...room.Cause) {
		for _, c := range causes {
			all = append(all, due{id, room.Fail(c)})
		}
	}
	unplaced := func(c room.Cause) {
		if r.why.Ended() {
			c = r.why.Cause
		}
		may(c)
	}
	switch ev.Kind {
	case relay.Arrive: // no place for it
		may(room.Overload)
	case relay.ClientGone:
		may(room.Cancelled)
	case relay.Pair:
		if ev.OK {
			r.why = room.Outcome{}
		} else {
			unplaced(ev.Outcome.Cause)
		}
	case relay.LegEnd:
		if r.why.Ended() || ev.Attempt != r.attempt {
			break // the attempt has its cause
		}
		if o := heard(r, ev); o.Kind == room.Success {
			all = append(all, due{id, o})
		} else if o.Ended() {
			r.why = o
			may(o.Cause)
		}
	case relay.TimerFired:
		switch ev.Timer.Name {
		case relay.TotalTimer:
			may(room.Deadline)
		case relay.QueueTimer, relay.PlaceTimer:
			unplaced(room.WorkerLost) // nobody is there
			may(room.Overload)        // or nobody has answered
		case relay.ConnectTimer:
			r.why = room.Fail(room.WorkerLost)
			may(room.WorkerLost)
		default:
			r.why = room.Fail(room.Deadline)
			may(room.Deadline)
		}
	}
	return all
}

// heard is what the end of a leg means for its attempt: nothing, if the attempt goes on.
func heard(r *request, ev relay.Event) room.Outcome {
	switch {
	case ev.Leg == relay.Prefill && ev.Outcome.Kind == room.Success:
		return room.Outcome{}
	case ev.Leg == relay.Prefill && r.got > 0 && r.of == ev.Attempt:
		return room.Outcome{} // decode has everything
	case ev.Leg == relay.Prefill && ev.Outcome.Cause == room.Cancelled && ev.Said && r.legs[relay.Decode].open():
		return room.Outcome{} // an echo of decode's own end, which is on its way
	case ev.Outcome.Kind == room.Success && !ev.Finished:
		return room.Fail(room.WorkerLost)
	}
	return ev.Outcome
}

// open says that the gateway has not heard of the leg's end.
func (l *leg) open() bool { return l.loaded && !l.closed }
