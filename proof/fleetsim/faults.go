package fleetsim

import (
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// cause of trouble at a node, to be held against outcomes and blames.
type cause uint8

const (
	byCrash cause = iota
	byFreeze
	bySlow
	byNet
	byPlane // byNet, between workers
	byLink
	byPeer // the other end of a link is gone
	byBytes
	byStep
	byDrain
	causes = iota
)

// struck notes that something happened at a node.
func (w *World) struck(n *node, c cause) { n.trouble[c] = max(n.trouble[c], w.now) }

// strike does one choice of the plan.
func (w *World) strike(i int) {
	c := &w.plan.choices[i]
	n := w.nodes[c.a]
	if c.kind == leave || c.kind == stall {
		r := &w.reqs[c.req]
		if !r.came || r.lost {
			return
		}
		n = r.gw
	}
	if n.up && n.frozenAt != 0 && c.kind <= stall {
		n.held = append(n.held, event{at: w.now, kind: strike, node: int32(n.id), life: n.life, n: int32(i)})
		return
	}
	switch c.kind {
	case arrive:
		w.arrive(n, c)
		return
	case leave:
		w.clientGone(n, c.req)
		return
	case stall:
		w.reqs[c.req].stalled = true
		w.queue.push(event{at: w.now + c.lasts, kind: reads, node: world, n: int32(c.req)})
		return
	}
	if !n.up {
		return
	}
	if w.trace != nil {
		w.sayFault(c)
	}
	if c.kind == drain || c.kind == replace {
		w.drain(n, c)
		return
	}
	until := w.now + c.lasts
	if c.lasts == never {
		until = never
		w.sights.see(neverHeals + sight(c.kind/mute)*(gatewayMute-neverHeals))
	}
	w.begin(n, c, until)
	if c.lasts != never {
		w.queue.push(event{at: until, kind: heal, node: world, n: int32(i)})
	}
}

// begin begins a fault.
func (w *World) begin(n *node, c *choice, until time.Duration) {
	trouble := func(n *node, x cause) { n.trouble[x] = max(n.trouble[x], until) }
	net := func(m *node) {
		for _, x := range []*node{n, m} {
			trouble(x, byNet)
			if n.role != gatewayRole && m.role != gatewayRole {
				trouble(x, byPlane)
			}
		}
	}
	switch c.kind {
	case crash:
		trouble(n, byCrash)
		w.crash(n)
	case freeze:
		trouble(n, byFreeze)
		w.freeze(n)
	case slow:
		trouble(n, bySlow)
		n.slow = c.size
	case deaden:
		net(w.nodes[c.b])
		if w.sights.see(deadLink); w.dir(c.b, c.a).dead == 0 {
			w.sights.see(oneWayDead)
		}
		w.deadDirection(n, w.nodes[c.b])
	case garble:
		trouble(n, byPlane)
		for to := range w.nodes {
			w.dir(c.a, to).garbled++
		}
	case lag:
		net(w.nodes[c.b])
		w.dir(c.a, c.b).lags++
	case cut:
		for _, k := range n.links() {
			if k.p == w.nodes[c.b] && n.frozenAt == 0 {
				w.endLink(n, k)
			}
		}
	case corrupt:
		if p := w.nodes[c.b]; p.up {
			p.damaged = n
		}
	case stepFail:
		n.failStep = true
	case writeFail:
		n.failWrite = true
	case mute:
		n.muted = append(n.muted, w.nodes[c.b])
	}
}

// heal ends what a choice began.
func (w *World) heal(i int) {
	c := &w.plan.choices[i]
	n := w.nodes[c.a]
	switch c.kind {
	case crash:
		if !n.up && !n.vacant {
			w.boot(n)
			w.sayNode(n, "%s %d starts again", roleNames[n.role], n.at)
		}
	case freeze:
		w.thaw(n)
	case slow:
		n.slow = 0
	case deaden:
		w.healDirection(n, w.nodes[c.b])
		w.sayNode(n, "%s %d reaches %s %d again", roleNames[n.role], n.at, roleNames[w.nodes[c.b].role], w.nodes[c.b].at)
	case corrupt:
		w.nodes[c.b].damaged = nil
	case lag:
		w.dir(c.a, c.b).lags--
	case garble:
		for to := range w.nodes {
			w.dir(c.a, to).garbled--
		}
	}
}

// crash ends a process at once. Its kernel resets what is connected to it.
func (w *World) crash(n *node) {
	w.sights.see(crashes + sight(n.role))
	was := n.worker
	w.vanish(n)
	if n.role != gatewayRole {
		w.look(was, pollAfter) // whoever keeps the fleet sees it end
	}
	n.vacant = n.followed
}

// vanish takes a process away.
func (w *World) vanish(n *node) {
	w.thaw(n)
	n.up, n.slow, n.failStep, n.failWrite, n.damaged, n.muted = false, 0, false, false, nil, nil
	links := n.links()
	n.worker = noLife
	if n.role == gatewayRole {
		w.unsent(n)
	}
	for i := range w.reqs {
		r := &w.reqs[i]
		for _, l := range r.legs {
			switch {
			case n.role == gatewayRole && l.gw == n && l.gwLife == n.life && !l.final:
				l.final = true
				w.hangUp(l)
			case l.worker == n && l.life == n.life && l.accepted:
				l.accepted = false
				w.sendLeg(n, l, legReset, room.Outcome{})
			}
		}
		if n.role == gatewayRole && r.gw == n && r.life == n.life && !r.ended {
			r.lost = true
		}
	}
	for _, k := range links {
		w.tell(n, k, linkEnded)
	}
	n.g, n.p, n.d = nil, nil, nil
}

// unsent drops requests of a gateway's machine that never left it.
func (w *World) unsent(n *node) {
	for to := range w.nodes {
		d := w.dir(n.id, to)
		d.stalled = slices.DeleteFunc(d.stalled, func(x stalled) bool {
			lost := x.m.leg != nil && x.m.leg.life == 0
			if lost {
				w.free(x.m)
			}
			return lost
		})
	}
}

// freeze stops a process; its kernel goes on taking what arrives.
func (w *World) freeze(n *node) {
	if n.frozenAt != 0 {
		return
	}
	w.sights.see(frozenNode)
	n.frozenAt = max(w.now, 1)
	for _, x := range w.nodes {
		if x != n && x.up {
			w.quiet(n, x)
		}
	}
}

// thaw lets it go on, with everything that came meanwhile.
func (w *World) thaw(n *node) {
	if n.frozenAt == 0 {
		return
	}
	w.sayNode(n, "%s %d goes on", roleNames[n.role], n.at)
	n.frozen += w.now - n.frozenAt
	n.frozenAt, n.thawedAt = 0, w.now
	held := n.held
	n.held = nil
	for i := range held {
		held[i].at = w.now
		w.queue.push(held[i]) // in the order in which they came
	}
	if n.p == nil {
		return
	}
	for _, k := range n.p.links {
		w.pump(n, k)
	}
}

const (
	leavesAfter = 250 * time.Millisecond // between two looks whether a node that drains is idle
	endMax      = 2 * time.Second        // for the ends of what a worker aborts (serve/worker)
)

// drain tells a node to take nothing new and to leave when it is idle. A worker that is replaced
// has its successor beside it, if there is a place.
func (w *World) drain(n *node, c *choice) {
	if n.frozenAt != 0 || n.draining {
		return
	}
	w.struck(n, byDrain)
	n.draining, n.leaveBy = true, w.now+c.lasts
	n.trouble[byDrain] = max(n.trouble[byDrain], n.leaveBy+endMax)
	switch {
	case n.g != nil:
		w.sights.see(gatewayDrains)
		w.stepG(n, relay.Event{Kind: relay.Drain})
	case n.p != nil:
		w.stepP(n, prefill.Event{Kind: prefill.Drain})
	default:
		w.stepD(n, decode.Event{Kind: decode.Drain})
	}
	w.queue.push(event{at: w.now + min(leavesAfter, c.lasts), kind: leaves, node: int32(n.id), life: n.life})
	if n.g != nil {
		return
	}
	w.sights.see(drained)
	w.look(n.worker, pollAfter/2)
	if c.kind != replace {
		return
	}
	if i := slices.IndexFunc(w.nodes, func(x *node) bool { return x.role == n.role && x.vacant && !x.up }); i >= 0 {
		n.followed = true
		w.sights.see(replaced)
		w.boot(w.nodes[i])
		w.sayNode(n, "%s %d starts as the successor of %d", roleNames[n.role], w.nodes[i].at, n.at)
	}
}

// leaves has a node that drains leave, if nothing is left on it or its time is over.
func (w *World) leaves(n *node) {
	idle := false
	switch {
	case n.g != nil:
		idle = n.g.core.Running() == 0 && n.g.core.Queue().Len == 0
	case n.p != nil:
		idle = n.p.core.Idle()
	default:
		idle = n.d.core.Idle()
	}
	switch {
	case idle || w.now >= n.leaveBy+endMax:
		w.exit(n, idle)
		return
	case w.now >= n.leaveBy && !n.leaving:
		n.leaving = true
		w.sights.see(drainCut)
		w.sayNode(n, "the time of %s %d to drain is over", roleNames[n.role], n.at)
		w.cutOff(n)
	}
	w.queue.push(event{at: w.now + leavesAfter, kind: leaves, node: int32(n.id), life: n.life})
}

// cutOff ends what is left on a node.
func (w *World) cutOff(n *node) {
	if n.g != nil {
		n.g.stopped = true
		var left []uint64
		for v := range n.g.core.Rooms {
			left = append(left, v.Req)
		}
		for _, req := range left {
			w.stepG(n, relay.Event{Kind: relay.ClientGone, Req: req})
		}
		return
	}
	var live []room.ID
	for v := range n.rooms() {
		live = append(live, v.Room)
	}
	for _, id := range live {
		w.abort(n, id, room.WorkerLost)
	}
}

// exit is the end of a process that drained; another one starts, there or beside it already.
func (w *World) exit(n *node, idle bool) {
	w.sayNode(n, "%s %d has left", roleNames[n.role], n.at)
	if !idle {
		w.struck(n, byCrash)
	}
	was, followed := n.worker, n.followed
	w.vanish(n)
	if n.role != gatewayRole {
		w.look(was, pollAfter/4)
	}
	if followed {
		n.vacant = true
		return
	}
	w.boot(n)
}
