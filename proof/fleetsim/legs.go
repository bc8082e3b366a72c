package fleetsim

import (
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// leg is one connection from a gateway to a worker, for one room.
type leg struct {
	req      int
	attempt  int32
	side     relay.Leg
	room     room.ID
	gw       *node
	gwLife   uint32
	worker   *node
	life     uint32 // of the process that took the request; 0: none yet
	member   int32
	peer     int32 // decode: its prefill worker's place
	left     time.Duration
	until    time.Duration // ghost: when the request's time is over, true time
	out, in  stream
	closed   bool // the gateway hung up
	final    bool // the gateway heard its end, or that its close is confirmed
	released bool
	accepted bool // and not ended at the worker
	unread   int  // tokens on their way to the gateway
}

// unreadMax is how many lines a worker keeps for a gateway that does not read, before it gives
// its room up. (In production it is a buffer of bytes.)
const unreadMax = 12

// sendLeg sends one line of a leg to its gateway.
func (w *World) sendLeg(n *node, l *leg, kind messageKind, o room.Outcome) *message {
	m := w.message()
	m.kind, m.from, m.to, m.life, m.leg = kind, int32(n.id), int32(l.gw.id), l.gwLife, l
	m.outcome, m.said, m.finished = o, kind == legEnd, o.Kind == room.Success
	w.send(&l.in, m)
	return m
}

// hangUp tells a leg's worker that the gateway's end is gone.
func (w *World) hangUp(l *leg) {
	if slices.Contains(l.gw.muted, l.worker) {
		return
	}
	m := w.message()
	m.kind, m.from, m.to, m.leg = legClose, int32(l.gw.id), int32(l.worker.id), l
	w.send(&l.out, m)
}

// legAtWorker takes what the gateway sent.
func (w *World) legAtWorker(n *node, m *message) {
	l := m.leg
	if m.kind == legRequest {
		l.life = n.life
		l.until += w.now - m.sentAt // the worker counts what is left from here
		w.judgeLater(n, l.room, l.until)
		deadline := n.clock.read(w.now) + l.left
		r := &w.reqs[l.req]
		if n.p != nil {
			n.p.answering = l
			w.stepP(n, prefill.Event{Kind: prefill.Request, Room: l.room, Tokens: r.tokens, Deadline: deadline, Keys: r.keys, Pin: r.pin})
		} else {
			n.d.answering = l
			w.stepD(n, decode.Event{Kind: decode.Request, Room: l.room, Peer: l.peer, Tokens: r.tokens, Branches: r.n, MaxNew: r.most, Deadline: deadline, Keys: r.keys, Pin: r.pin})
		}
		return
	}
	if l.life != n.life || !l.accepted {
		return
	}
	w.sights.abort(n, l.room)
	w.goneSoon(n, l.room)
	w.abort(n, l.room, room.Cancelled)
}

// abort ends a room at a worker.
func (w *World) abort(n *node, id room.ID, c room.Cause) {
	if n.p != nil {
		w.stepP(n, prefill.Event{Kind: prefill.Abort, Room: id, Cause: c})
	} else {
		w.stepD(n, decode.Event{Kind: decode.Abort, Room: id, Cause: c})
	}
}

// legAtGateway takes one line of a worker.
func (w *World) legAtGateway(n *node, m *message) {
	l := m.leg
	if m.kind == legToken || m.kind == legWaits {
		l.unread--
	}
	if l.final {
		return
	}
	ev := relay.Event{Req: uint64(l.req), Attempt: l.attempt, Leg: l.side}
	switch m.kind {
	case legAccepted:
		ev.Kind = relay.LegOpen
	case legToken:
		ev.Kind, ev.N = relay.Tokens, 1
		n.g.token, n.g.k, n.g.output = m.token, m.k, m.output
	case legWaits:
		ev.Kind = relay.Waits
	case legEnd, legReset:
		l.final = true
		ev.Kind, ev.Outcome, ev.Finished, ev.Said = relay.LegEnd, m.outcome, m.finished, m.said
		if m.kind == legReset {
			ev.Outcome = room.Fail(room.WorkerLost)
		}
		w.heardOf(l, ev.Outcome)
	}
	w.stepG(n, ev)
	if r := &w.reqs[l.req]; ev.Kind == relay.LegEnd && r.quits && !r.ended && ev.Outcome.Kind != room.Success {
		w.queue.push(event{at: w.now + 2*time.Microsecond, kind: quits, node: int32(n.id), life: n.life, n: int32(l.req)})
	}
}

// legOver confirms a close.
func (w *World) legOver(n *node, l *leg) {
	if l.final {
		return
	}
	l.final = true
	w.stepG(n, relay.Event{Kind: relay.LegClosed, Req: uint64(l.req), Attempt: l.attempt, Leg: l.side})
}

// accept and refuse answer a leg's request.
func (w *World) accept(n *node, l *leg) {
	l.accepted = true
	w.sendLeg(n, l, legAccepted, room.Outcome{})
}

func (w *World) refuse(n *node, l *leg, o room.Outcome) {
	if o.Cause == room.Overload {
		w.sights.see(workerRefuses)
	}
	if n.draining && (o.Cause == room.Overload || o.Cause == room.WorkerLost) { // to the gateway it is as good as gone
		w.sendLeg(n, l, legReset, o)
		return
	}
	w.sendLeg(n, l, legEnd, o)
}

// end ends an accepted leg.
func (w *World) end(n *node, l *leg, id room.ID, o room.Outcome) {
	if l == nil || !l.accepted || l.life != n.life {
		w.fail("RELEASE", 0, "%s %d ends room %s, whose leg is not open", roleNames[n.role], n.at, id)
		return
	}
	l.accepted = false
	r := &w.reqs[l.req]
	w.leavesPins(n, r)
	n.mustPin = n.mustPin || o.Kind == room.Success && r.pin > 0 && len(r.keys) > 0
	if n.leaving && o.Cause == room.WorkerLost { // of itself a worker says it by being gone
		w.sendLeg(n, l, legReset, o)
		return
	}
	w.sendLeg(n, l, legEnd, o)
}
