package fleetsim

import (
	"fmt"
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/relay"
	"baton/core/room"
)

// gateway drives one relay core as serve/gateway does.
type gateway struct {
	core    *relay.Core
	out     relay.Effects
	todo    []relay.Event
	members []member // in order of their lives
	choices uint64
	token   uint64 // of the Tokens event being stepped
	k       int32  // its place in the output
	output  int32
	live    int // ghost: rights to run that requests take or wait for, of those that are not forgotten
	rooms   int
	came    int // ghost: arrivals
	retries int // ghost
	credit  int // ghost: what arrivals have earned and retries have not spent
	stopped bool
}

// member is one life of a worker on a gateway's roster.
type member struct {
	worker  int32
	node    *node
	load    int
	used    uint64
	suspect bool // blamed for being lost, and not heard of since
	down    bool // its health did not answer
	retired bool // it drains
	gone    bool
}

func (m *member) usable() bool { return !m.suspect && !m.down && !m.retired && !m.gone }

// retryCost is what a retry costs in arrivals (core/relay).
const retryCost = 5

const (
	pollAfter    = time.Second      // between two looks at a worker
	downAfter    = 2 * time.Second  // without an answer of its health, nothing is placed on a worker
	pollsUntil   = 90 * time.Second // when every request is long over
	clientUnread = 6                // tokens that a gateway keeps for a client that does not read
)

func (w *World) newGateway(n *node) *gateway {
	g := &gateway{core: relay.New(w.plan.limits), credit: w.plan.limits.RetryBurst * retryCost}
	for _, x := range w.nodes[w.plan.sizes.Gateways:] {
		if x.up {
			g.members = append(g.members, member{worker: x.worker, node: x})
		}
	}
	return g
}

// stepG gives a gateway's core one event and does its effects, then what came of them.
func (w *World) stepG(n *node, ev relay.Event) {
	g := n.g
	g.todo = append(g.todo[:0], ev)
	for i := 0; i < len(g.todo); i++ {
		g.out.Reset()
		w.events++
		w.whyG(n, &g.todo[i])
		g.core.Step(n.clock.read(w.now), g.todo[i], &g.out)
		for j := range g.out.List {
			w.doG(n, &g.out.List[j])
		}
	}
	w.truthG(n)
	w.rearm(n)
}

func (w *World) doG(n *node, e *relay.Effect) {
	g := n.g
	switch e.Kind {
	case relay.Place:
		w.place(n, e)
	case relay.Open:
		w.open(n, e)
	case relay.Close:
		r := &w.reqs[e.Req]
		for _, l := range r.legs {
			if l.attempt == e.Attempt && l.side == e.Leg && !l.final {
				l.closed = true
				w.queue.push(event{at: w.now + w.cost(n, 5*time.Microsecond, 50*time.Microsecond), kind: legOver, node: int32(n.id), life: n.life, leg: l})
				w.hangUp(l)
			}
		}
	case relay.Forward:
		w.clientGets(n, e)
	case relay.Discard:
		w.clientLoses(n, e)
	case relay.End:
		w.clientEnds(n, e)
	case relay.Blame:
		w.judgeBlame(n, e)
		if m := g.member(e.Worker); m != nil && e.Cause == room.WorkerLost && !m.suspect {
			m.suspect = true
			w.queue.push(event{at: w.now + pollAfter, kind: poll, node: int32(n.id), life: n.life, n: m.worker})
		}
	case relay.Release:
		w.release(n, e)
	default:
		panic(fmt.Sprintf("fleetsim: effect %v of the relay core is unknown: teach the driver", e.Kind))
	}
}

func (g *gateway) member(worker int32) *member {
	if i := slices.IndexFunc(g.members, func(m member) bool { return m.worker == worker }); i >= 0 {
		return &g.members[i]
	}
	return nil
}

// place answers with the least loaded pair and a new room.
func (w *World) place(n *node, e *relay.Effect) {
	g := n.g
	ev := relay.Event{Kind: relay.Pair, Req: e.Req, Attempt: e.Attempt, Prefill: relay.NoWorker, Outcome: room.Fail(room.WorkerLost)}
	p, d := g.pair(e)
	if d == nil {
		w.sights.see(waitsForWorker)
		g.todo = append(g.todo, ev)
		return
	}
	g.rooms++
	id := room.ID(mix(mix(w.plan.seed+uint64(n.id))+uint64(n.life)<<32+uint64(g.rooms))&room.IDMask | 1)
	ev.OK, ev.Room, ev.Decode = true, id, d.worker
	x := &ghost{req: int(e.Req), decode: d.node}
	if p != nil {
		ev.Prefill, x.prefill = p.worker, p.node
	} else {
		w.sights.see(unifiedServes)
	}
	w.rooms[id] = x
	if e.Attempt > 1 {
		w.retried(n, int(e.Req))
	}
	w.reqs[e.Req].why, w.reqs[e.Req].nobody = room.Outcome{}, false
	g.todo = append(g.todo, ev)
}

// retried judges the share of retries: behind the burst one in retryCost arrivals (relay.G6).
func (w *World) retried(n *node, req int) {
	g := n.g
	g.retries++
	if w.sights.see(retried); g.retries*retryCost > w.plan.limits.RetryBurst*retryCost+g.came {
		w.fail("BOUND", req, "gateway %d has tried %d times again, of %d requests", n.at, g.retries, g.came)
	}
	g.credit -= retryCost
}

// pair chooses workers: a prefill and a decode worker, or a unified one.
func (g *gateway) pair(e *relay.Effect) (prefill, decode *member) {
	if decode = g.choose(decodeRole, e); decode != nil {
		if prefill = g.choose(prefillRole, e); prefill != nil {
			return prefill, decode
		}
	}
	return nil, g.choose(unifiedRole, e)
}

// choose is the gateway's roster: usable, not tried, least load, longest unused.
func (g *gateway) choose(r role, e *relay.Effect) *member {
	var best *member
	for _, again := range []bool{false, true} {
		for i := range g.members {
			m := &g.members[i]
			if m.node.role != r || !m.usable() || again && !slices.Contains(e.Innocent, m.worker) || !again && slices.Contains(e.Exclude, m.worker) {
				continue
			}
			if best == nil || m.load < best.load || m.load == best.load && m.used < best.used {
				best = m
			}
		}
		if best != nil {
			g.choices++
			best.used = g.choices
			return best
		}
	}
	return nil
}

// open dispatches a leg.
func (w *World) open(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	for _, l := range r.legs {
		if l.attempt < e.Attempt && !l.final {
			w.fail("QUIET", int(e.Req), "try %d of request %d starts while the %s leg of try %d is not fenced", e.Attempt, e.Req, l.side, l.attempt)
		}
	}
	m := n.g.member(e.Worker)
	m.load++
	l := &leg{req: int(e.Req), attempt: e.Attempt, side: e.Leg, room: e.Room, gw: n, gwLife: n.life, worker: m.node, member: m.worker, peer: decode.Local}
	if p := w.rooms[e.Room].prefill; p != nil {
		l.peer = int32(p.at)
	}
	l.left = max((r.deadline - n.clock.read(w.now)).Truncate(time.Millisecond), time.Millisecond) // on the wire in whole ones
	l.until = max(n.clock.when(r.deadline), w.now+time.Millisecond)
	r.legs = append(r.legs, l)
	x := w.message()
	x.kind, x.from, x.to, x.leg = legRequest, int32(n.id), int32(m.node.id), l
	w.send(&l.out, x)
}

// release takes a leg off its worker's load.
func (w *World) release(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	var early *leg
	for _, l := range r.legs {
		switch {
		case l.member != e.Worker || l.released:
		case !l.final:
			early = l
		default:
			l.released = true
			n.g.member(e.Worker).load--
			r.forgotten(n)
			return
		}
	}
	if early != nil {
		w.fail("RELEASE", int(e.Req), "worker %d is released while the %s leg of request %d is still open there", e.Worker, early.side, e.Req)
		return
	}
	w.fail("RELEASE", int(e.Req), "worker %d is released of request %d, which it does not serve", e.Worker, e.Req)
}

// poll asks a worker how it is, as whoever keeps the fleet does.
func (w *World) poll(n *node, worker int32) {
	g := n.g
	i := slices.IndexFunc(w.nodes, func(x *node) bool { return x.role != gatewayRole && x.worker == worker })
	if i < 0 { // another life is there, or comes
		if m := g.member(worker); m != nil {
			m.gone = true
		}
		return
	}
	x, m := w.nodes[i], g.member(worker)
	if x.frozenAt != 0 || w.dir(n.id, x.id).dead > 0 || w.dir(x.id, n.id).dead > 0 {
		if m != nil && !m.down {
			m.down = true
			w.sights.see(workerDown)
		}
		if w.now < pollsUntil {
			w.queue.push(event{at: w.now + pollAfter, kind: poll, node: int32(n.id), life: n.life, n: worker})
		}
		return
	}
	before := m != nil && m.usable()
	if m == nil {
		for k := range g.members {
			g.members[k].gone = g.members[k].gone || g.members[k].node == x
		}
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.gone && m.load == 0 })
		g.members = append(g.members, member{worker: worker, node: x})
		m = &g.members[len(g.members)-1]
	}
	if m.retired = x.draining; !m.retired {
		m.suspect = false
	}
	if m.down = false; m.usable() && !before {
		w.stepG(n, relay.Event{Kind: relay.Roster, Worker: worker})
	}
}

// look has every gateway ask a worker how it is, after about that time.
func (w *World) look(worker int32, after time.Duration) {
	for _, g := range w.nodes[:w.plan.sizes.Gateways] {
		if g.up {
			w.queue.push(event{at: w.now + after, kind: poll, node: int32(g.id), life: g.life, n: worker})
		}
	}
}
