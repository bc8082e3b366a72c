package cluster

import (
	"encoding/binary"
	"slices"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

// Named is a cluster that is small enough to be explored: one request, and two pairs that may serve
// it.
type Named struct {
	Name    string
	Nightly bool // too large for every change
	Scope   Scope
	Options explore.Options
}

// Scopes of the gate. One request, a prompt of one block, one token: what is looked at is what
// three kinds of cores make of each other's ends. A worker that crashes is back for sure. What does
// not fit into a night, and is walked through: two requests at once, three kinds of faults at once,
// any timer at any moment (with those, proof/relaysim explores the gateway's core alone).
func Scopes() []Named {
	with := func(f func(*Scope)) Scope {
		sc := Scope{
			Requests: 1, Prefills: 2, Decodes: 2, MaxNew: 1, Blocks: 1, Short: true, Back: true,
			Limits: relay.Limits{MaxRunning: 1, MaxQueued: 1, MaxTries: 2, RetryBurst: 2},
		}
		f(&sc)
		return sc
	}
	faults := func(f Faults) Scope { return with(func(sc *Scope) { sc.Faults = f }) }
	prompt := func(must ...string) explore.Options {
		return explore.Options{Ask: explore.PROMPT, Must: append([]string{"success"}, must...)}
	}
	retried := []string{"prefill drains", "retry", "second attempt succeeds"}
	const night = true
	return []Named{
		{"cluster PROMPT client leaves", false, faults(Faults{Leaves: 1}), prompt("cancelled", "prefill drains", "decode drains")},
		{"cluster PROMPT step fails", false, faults(Faults{Steps: 1}), prompt("retry", "second attempt succeeds")},
		{"cluster PROMPT wrong bytes", false, faults(Faults{Refuses: 1}), prompt(retried...)},
		{"cluster PROMPT link breaks", false, faults(Faults{Breaks: 1}), prompt(append(retried, "decode drains")...)},
		{"cluster PROMPT worker crashes", false, faults(Faults{Crashes: 1}), prompt(append(retried, "decode drains")...)},
		{"cluster PROMPT two chunks", night, with(func(sc *Scope) { sc.Short, sc.Blocks, sc.Faults = false, 2, Faults{Crashes: 1} }), prompt(append(retried, "decode drains")...)},
		{"cluster PROMPT client leaves, worker crashes", night, faults(Faults{Leaves: 1, Crashes: 1}), prompt(append(retried, "decode drains", "cancelled")...)},
	}
}

// Clone copies a world.
func (s *System) Clone(w *World) World {
	c := *w
	c.gate = w.gate.Clone()
	c.requests = slices.Clone(w.requests)
	c.suspects = slices.Clone(w.suspects)
	c.legs, c.prefills, c.decodes, c.links = nil, nil, nil, nil
	for _, l := range w.legs {
		n := *l
		n.posts = slices.Clone(l.posts)
		c.legs = append(c.legs, &n)
	}
	for _, p := range w.prefills {
		n := *p
		if p.core != nil {
			n.core = p.core.Clone()
		}
		n.writes = slices.Clone(p.writes)
		c.prefills = append(c.prefills, &n)
	}
	for _, d := range w.decodes {
		n := *d
		if d.core != nil {
			n.core = d.core.Clone()
		}
		n.begin, n.dialing = slices.Clone(d.begin), slices.Clone(d.dialing)
		n.filled = map[int32]room.Lease{}
		for b, l := range d.filled {
			n.filled[b] = l
		}
		c.decodes = append(c.decodes, &n)
	}
	for _, k := range w.links {
		n := *k
		n.toP, n.toD, n.wire = slices.Clone(k.toP), slices.Clone(k.toD), slices.Clone(k.wire)
		c.links = append(c.links, &n)
	}
	return c
}

// key collects what makes a state differ from others.
type key []byte

func (b *key) add(all ...int) {
	for _, x := range all {
		*b = binary.AppendVarint(*b, int64(x))
	}
}

func (b *key) flags(all ...bool) {
	for _, x := range all {
		b.add(bad(x))
	}
}

func (b *key) lease(l room.Lease) { b.add(int(l.Boot), int(l.Seq)) }

func (b *key) chunk(x *chunk) {
	b.add(int(x.room), int(x.conn), int(x.n), int(x.first), int(x.many))
	b.lease(x.lease)
}

// outcomes adds why rooms ended or are about to. Cores leave causes out of their own account,
// because no decision of theirs depends on them; the gateway's does.
func (b *key) outcomes(each ...func(func(room.View) bool)) {
	for _, rooms := range each {
		for v := range rooms {
			b.add(int(v.Room), int(v.Outcome.Kind), int(v.Outcome.Cause))
		}
	}
}

// Key appends what the future depends on. Numbers of blocks do not count.
func (s *System) Key(w *World, dst []byte) []byte {
	b := key(w.gate.AppendState(dst))
	b.flags(w.hurt)
	b.add(int(w.conns), int(w.rooms), w.left.Leaves, w.left.Crashes, w.left.Breaks, w.left.Refuses, w.left.Steps, len(w.suspects))
	for _, id := range w.suspects {
		b.add(int(id))
	}
	for i := range w.requests {
		r := &w.requests[i]
		b.flags(r.arrived, r.gone, r.ended)
		b.add(int(r.placing), r.forwarded, int(r.attempt), int(r.outcome.Kind), int(r.outcome.Cause), len(r.exclude))
		for _, x := range r.exclude {
			b.add(int(x))
			b.flags(slices.Contains(r.innocent, x))
		}
	}
	b.add(len(w.legs))
	for _, l := range w.legs {
		b.add(int(l.req), int(l.attempt), int(l.side), l.worker, int(l.peer), int(l.room), int(l.state), l.made, len(l.posts))
		b.flags(l.closed, l.loaded)
		for _, p := range l.posts {
			b.add(int(p.kind), int(p.outcome.Kind), int(p.outcome.Cause), p.token)
			b.flags(p.finished, p.said)
		}
	}
	for _, p := range w.prefills {
		b.prefiller(p)
	}
	for _, d := range w.decodes {
		b.decoder(d)
	}
	b.add(len(w.links))
	for _, k := range w.links {
		b.link(k)
	}
	return b
}

func (b *key) prefiller(p *prefiller) {
	b.flags(p.core != nil)
	if p.core != nil {
		*b = p.core.AppendState(*b)
		b.outcomes(p.core.Rooms, p.core.Ended)
	}
	b.add(len(p.step), len(p.writes))
	for _, it := range p.step {
		b.add(int(it.Room), int(it.From), int(it.To))
	}
	for i := range p.writes {
		b.chunk(&p.writes[i].piece)
	}
}

func (b *key) decoder(d *decoder) {
	b.flags(d.core != nil)
	b.add(int(d.boot))
	if d.core != nil {
		*b = d.core.AppendState(*b)
		b.outcomes(d.core.Rooms, d.core.Ended)
	}
	b.add(len(d.step), len(d.begin), len(d.dialing))
	for _, it := range d.step {
		b.add(int(it.Room), int(it.From), int(it.To))
	}
	for _, id := range d.begin {
		b.add(int(id))
	}
	for _, peer := range d.dialing {
		b.add(int(peer))
	}
	var under []room.Lease // of every filled block; which block it is does not count
	for _, l := range d.filled {
		under = append(under, l)
	}
	slices.SortFunc(under, func(x, y room.Lease) int { return int(x.Seq) - int(y.Seq) })
	b.add(len(under))
	for _, l := range under {
		b.lease(l)
	}
}

func (b *key) link(k *link) {
	b.add(int(k.conn), int(k.boot), k.decode, k.prefill, len(k.toP), len(k.toD), len(k.wire))
	b.flags(k.dUp, k.pUp, k.inside != nil, k.table != nil)
	for _, x := range k.toP {
		if x.prealloc != nil {
			b.add(0, int(x.prealloc.Room), int(x.prealloc.Conn))
			b.lease(x.prealloc.Lease)
		} else {
			b.add(1, int(x.cancel.Room), int(x.cancel.Cause))
			b.lease(x.cancel.Lease)
		}
	}
	for _, x := range k.toD {
		b.add(int(x.settled.Room), int(x.settled.Outcome.Kind), int(x.settled.Outcome.Cause), x.settled.Chunks)
		b.lease(x.settled.Lease)
	}
	for i := range k.wire {
		b.chunk(&k.wire[i])
	}
	if k.inside != nil {
		b.chunk(k.inside)
	}
}

// Witnesses names what may be seen.
func (s *System) Witnesses() []string {
	return []string{"success", "cancelled", "retry", "second attempt succeeds", "failed", "prefill drains", "decode drains"}
}

// Shows says what is to be seen in a state.
func (s *System) Shows(w *World) (seen uint64) {
	drains := func(rooms func(func(room.View) bool)) (any bool) {
		for v := range rooms {
			any = any || v.Outcome.Ended()
		}
		return any
	}
	drainP := slices.ContainsFunc(w.prefills, func(p *prefiller) bool { return p.core != nil && drains(p.core.Rooms) })
	drainD := slices.ContainsFunc(w.decodes, func(d *decoder) bool { return d.core != nil && drains(d.core.Rooms) })
	for i := range w.requests {
		r := &w.requests[i]
		for bit, show := range []bool{
			r.outcome.Kind == room.Success, r.outcome.Cause == room.Cancelled, r.placing > 1,
			r.outcome.Kind == room.Success && r.attempt > 1, r.outcome.Kind == room.Failed, drainP, drainD,
		} {
			if show {
				seen |= 1 << bit
			}
		}
	}
	return seen
}

var (
	_ explore.System[World, Event] = (*System)(nil)
	_ explore.Witness[World]       = (*System)(nil)
)
