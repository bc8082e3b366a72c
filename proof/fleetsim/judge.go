package fleetsim

import (
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/transfer"
)

// ghost is what the world knows of a room.
type ghost struct {
	req             int
	prefill, decode *node            // prefill is nil if decode prefills itself
	until           [2]time.Duration // at prefill, at decode: when its time is over, true time
	why             [2]room.Outcome  // what ended it there first
	lives           [2]uint32        // of the workers to which that happened
	conn            room.Conn        // that its lease is bound to at prefill
}

// of returns the request of a room, for charts.
func (w *World) of(id room.ID) int {
	if g := w.rooms[id]; g != nil {
		return g.req
	}
	return 0
}

const (
	// graceGateway is how much later than its deadline a request may end: its timer is exact.
	graceGateway = time.Millisecond
	// graceWorker is how much later a room may: what still touches its memory is bounded by the
	// silence of links, and by the slowest step.
	graceWorker = transfer.SilenceDefault + 2*time.Second
	// again is after what time a judge who found a frozen node looks again.
	again = 50 * time.Millisecond
)

// judgeRequest is called when a request's time is over.
func (w *World) judgeRequest(n *node, req int) {
	r := &w.reqs[req]
	switch {
	case r.ended || r.lost:
	case n.frozenAt != 0:
		w.queue.push(event{at: w.now + again, kind: judgeReq, node: int32(n.id), n: int32(req)})
	default:
		w.fail("TERM", req, "request %d has not ended at its deadline of %v, %v after it came", req, r.total, w.now-r.arrived)
	}
}

// judgeLater has a room judged when its time at a worker is over. The worker's clock may be
// slower than the gateway's.
func (w *World) judgeLater(n *node, id room.ID, until time.Duration) {
	g := w.rooms[id]
	until += max(0, until-w.now) / 40
	g.until[n.side()] = max(g.until[n.side()], until)
	if w.plan.weather.prompt() {
		return
	}
	m := w.message()
	m.room, m.frozen = id, n.frozen
	w.queue.push(event{at: until + graceWorker, kind: judgeRoom, node: int32(n.id), life: n.life, m: m})
}

func (w *World) judgeRoom(n *node, e *event) {
	m := e.m
	if n.up && n.life == e.life {
		view, there := w.view(n, m.room)
		extra := n.frozen - m.frozen
		switch {
		case !there:
		case n.frozenAt != 0 || extra > 0:
			m.frozen = n.frozen
			w.queue.push(event{at: w.now + max(extra, again), kind: judgeRoom, node: e.node, life: e.life, m: m})
			return
		default:
			w.fail(w.termOf(n), w.of(m.room), "room %s is still %s at %s %d, after its deadline", m.room, view.Phase, roleNames[n.role], n.at)
		}
	}
	w.free(m)
}

// goneWithin is how long a room may go on that was told to end: a step and a write of the slowest
// node, and the wait of a write for its turn.
const goneWithin = 4 * time.Second

// goneSoon has a room judged that has heard at a worker that it is over: what ends it now is no
// timer. Deadlines hide exactly this.
func (w *World) goneSoon(n *node, id room.ID) {
	m := w.message()
	m.room, m.sentAt = id, w.now
	w.queue.push(event{at: w.now + goneWithin, kind: judgeGone, node: int32(n.id), life: n.life, m: m})
}

func (w *World) judgeGone(n *node, m *message) {
	defer w.free(m)
	view, there := w.view(n, m.room)
	if !there {
		return
	}
	g := w.rooms[m.room]
	for _, x := range []*node{g.prefill, g.decode} {
		if x == nil {
			continue
		}
		for _, c := range []cause{byCrash, byFreeze, bySlow, byPlane} {
			if x.trouble[c] >= m.sentAt-time.Second {
				return // something holds it up; its deadline is judged all the same
			}
		}
	}
	w.fail("PROMPT", g.req, "room %s is still %s at %s %d, %v after it had to end there", m.room, view.Phase, roleNames[n.role], n.at, w.now-m.sentAt)
}

// termOf is TERM, or ALONE at a node that a dead link parts from others for ever.
func (w *World) termOf(n *node) string {
	if n.trouble[byNet] == never {
		return "ALONE"
	}
	return "TERM"
}

func (w *World) view(n *node, id room.ID) (v room.View, ok bool) {
	rooms := n.rooms()
	if rooms == nil {
		return v, false
	}
	for x := range rooms {
		if x.Room == id {
			return x, true
		}
	}
	return v, false
}

// rooms lists the live rooms of a worker.
func (n *node) rooms() func(yield func(room.View) bool) {
	switch {
	case n.p != nil:
		return n.p.core.Rooms
	case n.d != nil:
		return n.d.core.Rooms
	}
	return nil
}

// judgeOutcome demands that what a client reads has happened to it.
func (w *World) judgeOutcome(r *request, req int) {
	o := r.outcome
	w.sights.see(outcomes + sight(o.Cause))
	took := w.now - r.arrived
	ok := true
	switch o.Cause {
	case room.NoCause:
		if o.Kind != room.Success || r.got != r.texts() {
			w.fail("STREAM", req, "request %d reads %s after %d of %d tokens", req, o, r.got, r.texts())
		}
		if r.n > 1 {
			w.sights.see(several)
		}
	case room.ClientError:
		ok = slices.ContainsFunc(r.legs, func(l *leg) bool { return !w.fits(r, l.worker.role) })
	case room.Cancelled:
		ok = r.gone
	case room.Overload:
		ok = r.refused || took >= w.plan.budgets.Queue*98/100 || w.hit(r, byDrain)
	case room.Deadline: // of the request, or of a budget
		ok = took >= min(r.total, w.plan.budgets.FirstToken, w.plan.budgets.Gap)*97/100-time.Millisecond // workers hear of whole ones
	case room.WorkerLost:
		ok = w.hit(r, byCrash, byFreeze, byNet, byLink, byPeer, byDrain)
	case room.TransferFailed:
		ok = w.hit(r, byBytes, byLink, byPeer, byNet, byCrash, byFreeze)
	case room.Internal:
		ok = w.hit(r, byStep)
	}
	switch {
	case !ok:
		w.fail("CAUSE", req, "request %d reads %s, and nothing of the kind happened to it", req, o)
	case o.Kind == room.Success && slices.ContainsFunc(r.legs, func(l *leg) bool { return l.attempt == r.of && !w.fits(r, l.worker.role) }):
		w.fail("CAUSE", req, "request %d is a success, and a pool does not hold it", req)
	}
}

// hit says whether one of these causes struck a node of the request since shortly before it came.
func (w *World) hit(r *request, list ...cause) bool {
	for _, c := range list {
		if r.gw.trouble[c] >= r.arrived-time.Second {
			return true
		}
		for _, l := range r.legs {
			if l.worker.trouble[c] >= r.arrived-time.Second {
				return true
			}
		}
		if len(r.legs) == 0 { // nobody was there to serve it
			for _, n := range w.nodes {
				if n.trouble[c] >= r.arrived-w.plan.budgets.Place-pollAfter {
					return true
				}
			}
		}
	}
	return false
}

// judgeBlame demands that a worker is blamed for what it did.
func (w *World) judgeBlame(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	switch {
	case e.Cause == room.ClientError || e.Cause == room.Cancelled:
		w.fail("CAUSE", int(e.Req), "worker %d is blamed for %s", e.Worker, e.Cause)
		return
	case e.Cause != room.WorkerLost:
		return
	}
	w.sights.see(blamed)
	m := n.g.member(e.Worker)
	if m == nil || m.worker != m.node.worker { // that life is over
		return
	}
	for _, c := range []cause{byCrash, byFreeze, byNet, byLink, byDrain} {
		if m.node.trouble[c] >= r.arrived-time.Second || n.trouble[c] >= r.arrived-time.Second {
			return
		}
	}
	w.fail("CAUSE", int(e.Req), "%s %d is blamed for being lost, and nothing happened to it since request %d came", roleNames[m.node.role], m.node.at, e.Req)
}

// truthG compares a gateway's counts with the ledger, and its views now and then.
func (w *World) truthG(n *node) {
	g := n.g
	running, queued, waiting := g.core.Running(), g.core.Queue().Len, 0
	if queued > 0 {
		g.core.Rooms(func(v relay.View) bool {
			if v.Phase == relay.Queued {
				waiting += v.Worth
			}
			return true
		})
	}
	if running+waiting != g.live {
		w.fail("TRUTH", 0, "gateway %d counts %d rights to run of running and %d of queued requests, the ledger %d", n.at, running, waiting, g.live)
	}
	if max := w.plan.limits; running > max.MaxRunning || queued > max.MaxQueued {
		w.fail("BOUND", 0, "gateway %d has %d rights to run taken and %d queued requests, more than %d and %d", n.at, running, queued, max.MaxRunning, max.MaxQueued)
	}
	if n.looks++; n.looks%looksEvery != 0 {
		return
	}
	for v := range g.core.Rooms {
		r := &w.reqs[v.Req]
		if !r.came || r.gw != n || r.life != n.life || r.over || r.ended != (v.Phase == relay.Closing) || v.Phase == relay.Streaming && v.Tokens != r.got {
			w.fail("TRUTH", int(v.Req), "gateway %d shows request %d as %s with %d tokens, the ledger has it otherwise (ended %v, %d tokens)", n.at, v.Req, v.Phase, v.Tokens, r.ended, r.got)
		}
	}
}

// looksEvery is how many steps of a node lie between two comparisons of all its views.
const looksEvery = 8

// truthP and truthD compare a worker's counts with what the world gave and took.
func (w *World) truthP(n *node) {
	p := n.p
	b := p.core.Blocks()
	if b.Held != p.pool.held || b.Cached != p.pool.kept || b.Free+b.Held+b.Cached != b.Total || b.Quarantined != 0 {
		w.fail("TRUTH", 0, "prefill %d counts %+v blocks, the ledger %d held and %d cached", n.at, b, p.pool.held, p.pool.kept)
	}
	w.truthPins(n, p.core.Pinned(), b, w.configP().PinnedMax, p.core.Evicted())
	if n.looks++; n.looks%looksEvery != 0 {
		return
	}
	live, legs, line := 0, 0, 0
	for v := range p.core.Rooms {
		live++
		if r := p.rooms[v.Room]; r != nil {
			legs++
			w.sticky(n, v.Room, &r.decided, v.Outcome)
		} else if !p.half[v.Room] {
			w.fail("TRUTH", w.of(v.Room), "prefill %d shows room %s, which nobody opened there", n.at, v.Room)
		}
		w.sights.phase(n, v.Phase)
		w.truthDeadline(n, &v)
	}
	for _, q := range p.core.Queues() {
		line += q.Len
	}
	if legs != len(p.rooms) || line != live || live-legs != len(p.half) {
		w.fail("TRUTH", 0, "prefill %d shows %d rooms, %d of them with a leg, %d in queues; the ledger has %d legs and %d halves", n.at, live, legs, line, len(p.rooms), len(p.half))
	}
	c := w.configP()
	if live > 2*c.QueuedMax+c.RunningMax {
		w.fail("BOUND", 0, "prefill %d holds %d rooms", n.at, live)
	}
}

// leavesPins notes that a room, or its first output, may be over and leave what it asked for.
func (w *World) leavesPins(n *node, r *request) {
	if r.pin > 0 {
		n.pinsEnd = max(n.pinsEnd, n.clock.read(w.now)+r.pin)
	}
}

// truthPins demands that no more is pinned than may be, nothing that is free, and nothing longer than
// was asked for; and that something is when a room has left that asked for it, if nothing was evicted.
func (w *World) truthPins(n *node, pinned int, b blocks.Count, most int, evicted uint64) {
	switch now := n.clock.read(w.now); {
	case n.mustPin && pinned == 0 && most > 0 && n.evicted == evicted:
		w.fail("TRUTH", 0, "%s %d has nothing pinned, although a room asked for it that succeeded just now", roleNames[n.role], n.at)
	case pinned > 0 && now >= n.pinsEnd:
		w.fail("BOUND", 0, "%s %d has %d pinned blocks, %v after the last pin was over", roleNames[n.role], n.at, pinned, now-n.pinsEnd)
	}
	n.mustPin, n.evicted = false, evicted
	if pinned > 0 {
		w.sights.see(pins)
	}
	if pinned > min(most, b.Cached+b.Held) {
		w.fail("BOUND", 0, "%s %d has %d pinned blocks, of at most %d: %+v", roleNames[n.role], n.at, pinned, most, b)
	}
}

// sticky demands that an outcome that was seen decided stays.
func (w *World) sticky(n *node, id room.ID, decided *room.Outcome, now room.Outcome) {
	if decided.Ended() && *decided != now {
		w.fail("CAUSE", w.of(id), "room %s at %s %d was %s, and is %s now", id, roleNames[n.role], n.at, *decided, now)
	}
	*decided = now
}

// truthDeadline demands that a room's deadline is the request's, by the node's clock, and that no
// room outlives it that touches nothing.
func (w *World) truthDeadline(n *node, v *room.View) {
	g := w.rooms[v.Room]
	if at := n.clock.when(v.Deadline); at > g.until[n.side()]+time.Millisecond {
		w.fail("TRUTH", g.req, "%s %d shows a deadline of room %s that is %v behind the request's", roleNames[n.role], n.at, v.Room, at-g.until[n.side()])
	}
	if v.Phase != prefill.Draining.String() && v.Deadline < n.clock.read(w.now)-10*time.Microsecond && n.thawedAt != w.now && !w.plan.weather.prompt() {
		w.fail("TERM", g.req, "room %s is %s at %s %d, %v after its deadline", v.Room, v.Phase, roleNames[n.role], n.at, n.clock.read(w.now)-v.Deadline)
	}
}

func (w *World) truthD(n *node) {
	d := n.d
	b := d.core.Blocks()
	held := d.pool.held + d.has - d.known // what is not known yet is of one room
	if b.Free+b.Held+b.Cached != b.Total || b.Quarantined != 0 || d.vague == 0 && b.Held != held {
		w.fail("TRUTH", 0, "decode %d counts %+v blocks, the ledger %d held", n.at, b, held)
	}
	w.truthPins(n, d.core.Pinned(), b, w.plan.blocks[1]/4, d.core.Evicted())
	if n.looks++; n.looks%looksEvery != 0 {
		return
	}
	live, line, running := 0, 0, 0
	for v := range d.core.Rooms {
		live++
		if v.Queue == room.Running {
			running++
		}
		if r := d.rooms[v.Room]; r == nil || r.lease != v.Lease {
			w.fail("TRUTH", w.of(v.Room), "decode %d shows room %s with lease %s, the ledger has it otherwise", n.at, v.Room, v.Lease)
		} else {
			w.sticky(n, v.Room, &r.decided, v.Outcome)
		}
		w.sights.phase(n, v.Phase)
		w.truthDeadline(n, &v)
	}
	for _, q := range d.core.Queues() {
		line += q.Len
	}
	if live != len(d.rooms) || line != live {
		w.fail("TRUTH", 0, "decode %d shows %d rooms, %d in queues; the ledger has %d", n.at, live, line, len(d.rooms))
	}
	c := w.configD(d.boot)
	if running > c.RunningMax || live > c.QueuedMax+c.RunningMax {
		w.fail("BOUND", 0, "decode %d holds %d rooms, %d of them running", n.at, live, running)
	}
}
