package fleetsim

import (
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// judgeEnd is called when nothing is left to happen.
func (w *World) judgeEnd() {
	property := "TERM"
	if w.plan.weather.prompt() {
		property = "PROMPT"
	}
	for i := range w.reqs {
		if r := &w.reqs[i]; r.came && !r.ended && !r.lost {
			w.fail(property, i, "request %d never ends", i)
			return
		}
	}
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		if n.role == gatewayRole {
			w.judgeLoads(n, property)
			continue
		}
		for v := range n.rooms() {
			w.fail(property, w.of(v.Room), "room %s is %s at %s %d for ever: it waits for %s", v.Room, v.Phase, roleNames[n.role], n.at, v.WaitsFor)
			return
		}
		w.judgeBaseline(n)
	}
}

func (w *World) judgeLoads(n *node, property string) {
	for v := range n.g.core.Rooms {
		w.fail(property, int(v.Req), "request %d is %s at gateway %d for ever: it waits for %s", v.Req, v.Phase, n.at, v.WaitsFor)
		return
	}
	for _, m := range n.g.members {
		if m.load != 0 {
			w.fail("RELEASE", 0, "gateway %d counts a load of %d for worker %d when all is over", n.at, m.load, m.worker)
		}
	}
}

// judgeBaseline lets the last tombstones go and finds nothing.
func (w *World) judgeBaseline(n *node) {
	for at, t, ok := n.timer(); ok; at, t, ok = n.timer() {
		if t.Kind != room.TombstoneTimer {
			w.fail("PROMPT", w.of(t.Room), "%s is armed at %s %d when all is over", t, roleNames[n.role], n.at)
			return
		}
		w.fire(n, at, t)
	}
	left, free := 0, true
	inside := func(p *pool) bool { return slices.ContainsFunc(p.inside, func(x uint8) bool { return x > 0 }) }
	if n.p != nil {
		n.p.core.Ended(func(room.View) bool { left++; return true })
		b := n.p.core.Blocks()
		free = b.Free+b.Cached == w.plan.blocks[0] && !inside(&n.p.pool)
	} else {
		n.d.core.Ended(func(room.View) bool { left++; return true })
		b := n.d.core.Blocks()
		free = b.Free+b.Cached == w.plan.blocks[1] && !inside(&n.d.pool)
	}
	if left > 0 || !free {
		w.fail("BOUND", 0, "%s %d keeps %d tombstones, pool at its baseline %v", roleNames[n.role], n.at, left, free)
	}
}

// timer is the next timer of a worker's core.
func (n *node) timer() (at time.Duration, t room.Timer, ok bool) {
	if n.p != nil {
		return n.p.core.NextTimer()
	}
	return n.d.core.NextTimer()
}

// nextTimer is when the next timer of a node's core is due, on the node's clock.
func (n *node) nextTimer() (at time.Duration, ok bool) {
	if n.g != nil {
		at, _, ok = n.g.core.NextTimer()
		return at, ok
	}
	at, _, ok = n.timer()
	return at, ok
}

// fire fires one timer of a worker.
func (w *World) fire(n *node, at time.Duration, t room.Timer) {
	w.sights.timer(t.Kind)
	if w.trace != nil && t.Room != 0 {
		w.say(w.of(t.Room), n, "%s fires", t.Kind)
	}
	w.now = max(w.now, n.clock.when(at))
	if n.p != nil {
		w.stepP(n, prefill.Event{Kind: prefill.TimerFired, Timer: t})
	} else {
		w.stepD(n, decode.Event{Kind: decode.TimerFired, Timer: t})
	}
}

// tick fires what is due at a node.
func (w *World) tick(n *node) {
	if n.tickAt != 0 && n.tickAt <= w.now {
		n.tickAt = 0
	}
	for range eventsMax {
		at, ok := n.nextTimer()
		if !ok || at > n.clock.read(w.now) {
			w.rearm(n)
			return
		}
		if n.g != nil {
			_, t, _ := n.g.core.NextTimer()
			w.sights.budget(t.Name)
			if w.trace != nil {
				w.say(int(t.Req), n, "the %s budget of request %d is over", t.Name, t.Req)
			}
			w.stepG(n, relay.Event{Kind: relay.TimerFired, Timer: t})
			continue
		}
		at, t, _ := n.timer()
		w.fire(n, at, t)
		if again, u, ok := n.timer(); ok && again == at && u == t && t.Room != 0 { // two tombstones may be due at once
			w.fail("TERM", w.of(t.Room), "%s of %s %d fires for ever", t, roleNames[n.role], n.at)
			return
		}
	}
}
