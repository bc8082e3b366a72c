package fleetsim

import (
	"fmt"
	"time"

	"baton/core/room"
)

// World is one run of a plan.
type World struct {
	plan   *plan
	now    time.Duration // true time, which no node knows
	queue  queue
	nodes  []*node
	dirs   []direction // by from*len(nodes)+to
	reqs   []request   // by number, from 1
	rooms  map[room.ID]*ghost
	events int // performed
	hash   uint64
	sights sights
	broken string // property
	reason string
	stuck  int // the request that it is about, or 0
	conns  room.Conn
	lives  int32 // of workers, as gateways number them
	spare  []*message
	trace  *trace // nil unless a chart is wanted
	bytes  []byte
}

// role of a node.
type role uint8

const (
	gatewayRole role = iota
	prefillRole
	decodeRole
	unifiedRole // a decode core that prefills by itself
	roles
)

var roleNames = [roles]string{"gateway", "prefill", "decode", "unified"}

// side of a room at a worker: 0 where it is prefilled for another, 1 where it is decoded.
func (n *node) side() int {
	if n.role == prefillRole {
		return 0
	}
	return 1
}

// node is one process after another in the same place.
type node struct {
	id        int
	role      role
	at        int // number within its role
	life      uint32
	worker    int32 // how gateways call this life
	up        bool
	vacant    bool // nobody runs here, and nobody comes but a successor
	draining  bool
	leaving   bool          // its time to drain is over
	leaveBy   time.Duration // when that is
	followed  bool          // its successor runs in another place
	clock     clock
	frozenAt  time.Duration // 0: runs
	thawedAt  time.Duration
	held      []event       // that came while it was frozen
	slow      int           // factor; 0: none
	tickAt    time.Duration // of the earliest tick in the queue; 0: none
	rng       rng
	trouble   [causes]time.Duration // when something of the kind last was about it; never: still is
	frozen    time.Duration         // how long it stood still, together
	failStep  bool
	failWrite bool
	muted     []*node       // gateway: workers that do not see what it hangs up
	damaged   *node         // prefill: what goes to it is damaged
	looks     int           // steps since the views were compared
	pinsEnd   time.Duration // when the last pin that anybody asked for is over
	mustPin   bool          // a room left some in the step at hand
	evicted   uint64        // blocks, before that step
	g         *gateway
	p         *prefiller
	d         *decoder
}

// clock is what a node reads instead of the time.
type clock struct {
	offset time.Duration
	ppm    int64 // drift in parts per million
}

// clockSkewMax is ten times what a bad crystal drifts by: small enough that a budget means
// something, large enough that sums over two clocks come out wrong visibly.
const clockSkewMax = 10_000 // ppm

func (c clock) read(t time.Duration) time.Duration {
	return c.offset + t + time.Duration(int64(t)/1000*c.ppm/1000)
}

// when returns the first moment at which the clock reads at least at.
func (c clock) when(at time.Duration) time.Duration {
	t := time.Duration(float64(at-c.offset) / (1 + float64(c.ppm)/1e6))
	for c.read(t) < at {
		t += 1 + (at-c.read(t))/2
	}
	return t
}

// fail stops the run: a property does not hold.
func (w *World) fail(property string, req int, format string, args ...any) {
	if w.broken == "" {
		w.broken, w.reason, w.stuck = property, fmt.Sprintf(format, args...), req
	}
}

func newWorld(p *plan) *World {
	s := p.sizes
	w := &World{plan: p, rooms: map[room.ID]*ghost{}, hash: mix(p.seed)}
	n := s.first(roles)
	w.dirs = make([]direction, n*n)
	for i := range w.dirs {
		w.dirs[i].rng = rng(mix(p.seed<<16 ^ uint64(i) ^ 0xd1))
	}
	for r := range roles {
		for at := range s.places(r) {
			i := len(w.nodes)
			nd := &node{id: i, rng: rng(mix(p.seed<<16 ^ uint64(i) ^ 0x0e)), role: r, at: at, worker: noLife}
			nd.vacant = s.spare(r, at) || r == unifiedRole && !p.unified || r != gatewayRole && r != unifiedRole && p.only
			if !p.steady {
				nd.clock = clock{offset: nd.rng.span(0, time.Hour), ppm: int64(nd.rng.n(2*clockSkewMax)) - clockSkewMax}
			}
			w.nodes = append(w.nodes, nd)
		}
	}
	for _, nd := range w.nodes[s.Gateways:] {
		if !nd.vacant {
			w.boot(nd)
		}
	}
	for _, nd := range w.nodes[:s.Gateways] {
		w.boot(nd)
	}
	last := 0
	for i := range p.choices {
		last = max(last, p.choices[i].req)
		w.queue.push(event{at: p.choices[i].at, kind: strike, node: world, n: int32(i)})
	}
	w.reqs = make([]request, last+1)
	return w
}

// boot starts a process in a node's place.
func (w *World) boot(n *node) {
	n.life++
	n.up, n.vacant, n.draining, n.leaving, n.followed, n.failStep = true, false, false, false, false, false
	n.held, n.tickAt = nil, 0
	switch n.role {
	case gatewayRole:
		n.g = w.newGateway(n)
	case prefillRole:
		n.p = w.newPrefiller(n)
	default:
		n.d = w.newDecoder(n)
	}
	if n.role == gatewayRole {
		return
	}
	n.worker = w.lives
	w.lives++
	w.look(n.worker, pollAfter/4)
}

// noLife is the number of nobody, for gateways.
const noLife = -1

const (
	// eventsMax bounds a run: the longest of a million seeds needs a tenth.
	eventsMax = 1_000_000
	// checkpoint is after how many events the state of a node goes into the hash.
	checkpoint = 512
)

// run goes on until nothing is left to happen, or something is wrong.
func (w *World) run() {
	defer func() {
		if r := recover(); r != nil {
			w.fail("SAFETY", 0, "%v", r)
		}
	}()
	for len(w.queue.list) > 0 && w.broken == "" {
		e := w.queue.pop()
		w.now = max(w.now, e.at)
		w.perform(&e)
		if w.events > eventsMax {
			w.fail("TERM", 0, "after %d events something still goes on", w.events)
		}
	}
	if w.broken == "" {
		w.judgeEnd()
	}
	for _, n := range w.nodes {
		w.note(n)
	}
	w.hash = mix(w.hash ^ uint64(w.events))
}

// perform does one event, or keeps it for a process that stands still.
func (w *World) perform(e *event) {
	if e.node != world {
		n := w.nodes[e.node]
		switch {
		case e.kind == deliver || e.kind == judgeReq || e.kind == judgeRoom:
		case e.life != n.life || !n.up:
			return
		}
		if n.up && n.frozenAt != 0 && e.kind != judgeReq && e.kind != judgeRoom {
			n.held = append(n.held, *e)
			return
		}
	}
	w.events++
	w.hash = mix(w.hash ^ uint64(e.at) ^ uint64(e.kind)<<56 ^ uint64(e.node+1)<<48)
	if w.events%checkpoint == 0 {
		w.note(w.nodes[w.events/checkpoint%len(w.nodes)])
	}
	w.take(e)
}

func (w *World) take(e *event) {
	var n *node
	if e.node != world {
		n = w.nodes[e.node]
	}
	switch e.kind {
	case strike:
		w.strike(int(e.n))
	case heal:
		w.heal(int(e.n))
	case tick:
		w.tick(n)
	case deliver:
		w.deliver(n, e.m)
	case stepDone:
		if n.p != nil {
			w.stepDoneP(n)
		} else {
			w.stepDoneD(n)
		}
	case written:
		w.writtenP(n, e.link)
	case placed, leftEarly:
		w.through(n, e.link, e.n, e.kind == placed)
	case legOver:
		w.legOver(n, e.leg)
	case dialOver:
		w.dialOver(n, e.link)
	case poll:
		w.poll(n, e.n)
	case silence:
		w.silent(n, w.nodes[e.n], e.m.sentAt)
	case judgeReq:
		w.judgeRequest(n, int(e.n))
	case judgeRoom:
		w.judgeRoom(n, e)
	case judgeGone:
		w.judgeGone(n, e.m)
	case quits:
		w.clientGone(n, int(e.n))
	case waits:
		if r := n.d.rooms[e.leg.room]; r != nil && r.leg == e.leg && r.waits {
			w.sayWaits(n, e.leg.room)
		}
	case leaves:
		w.leaves(n)
	case reads:
		w.reqs[e.n].stalled = false
	}
}

// note mixes the state of a node's core into the hash.
func (w *World) note(n *node) {
	if !n.up {
		return
	}
	b := w.bytes[:0]
	switch {
	case n.g != nil:
		b = n.g.core.AppendState(b)
	case n.p != nil:
		b = n.p.core.AppendState(b)
	default:
		b = n.d.core.AppendState(b)
	}
	w.bytes = b
	h := w.hash
	for _, x := range b {
		h = (h ^ uint64(x)) * 0x100000001b3
	}
	w.hash = mix(h)
}

// rearm makes sure that a tick comes when the core's next timer is due.
func (w *World) rearm(n *node) {
	if !n.up {
		return
	}
	at, ok := n.nextTimer()
	if !ok || w.plan.weather.prompt() { // PROMPT: nothing may need a timer
		return
	}
	t := max(n.clock.when(at), w.now)
	if n.tickAt == 0 || t < n.tickAt {
		n.tickAt = t
		w.queue.push(event{at: t, kind: tick, node: int32(n.id), life: n.life})
	}
}

// cost is how long something takes at a node.
func (w *World) cost(n *node, lo, hi time.Duration) time.Duration {
	d := lo
	if !w.plan.steady {
		d = n.rng.span(lo, hi)
	}
	if n.slow > 0 {
		d *= time.Duration(n.slow)
	}
	return d
}

// message returns a message to be filled. It goes back with free.
func (w *World) message() *message {
	if k := len(w.spare); k > 0 {
		m := w.spare[k-1]
		w.spare = w.spare[:k-1]
		return m
	}
	return new(message)
}

func (w *World) free(m *message) {
	*m = message{}
	w.spare = append(w.spare, m)
}
