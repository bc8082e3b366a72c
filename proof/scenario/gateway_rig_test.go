package scenario

import (
	"fmt"
	"slices"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// ask has a client send a request of so many prompt tokens for so many of output.
func (r *rig) ask(name string, prompt, out int) *request {
	return r.askWithin(name, prompt, out, relay.Budgets{Total: deadline})
}

// about has a client ask with a prompt that begins like all others of its topic, in all complete
// blocks but the last; prefill gets the keys of them.
func (r *rig) about(topic, name string, prompt, out int) *request {
	q := r.askWithin(name, prompt, out, relay.Budgets{Total: deadline})
	q.topic = topic
	return q
}

// holds says what block i of a request's prompt holds.
func (at *attempt) holds(i int32) stamp {
	if at.topic != "" && int(i) < at.prompt/room.BlockTokens-1 {
		return stamp{topic: at.topic, i: i}
	}
	return stamp{room: at.id, i: i}
}

// keys are those of the complete blocks of a request's prompt, if it has a topic.
func (at *attempt) keys() (all []blocks.Key) {
	for i := range int32(at.prompt / room.BlockTokens) {
		if at.topic != "" {
			var k blocks.Key
			copy(k[:], fmt.Sprint(at.holds(i)))
			all = append(all, k)
		}
	}
	return all
}

func (r *rig) askWithin(name string, prompt, out int, b relay.Budgets) *request {
	q := &request{name: name, id: uint64(len(r.requests) + 1), prompt: prompt, out: out, budgets: b, arrived: r.now}
	r.requests = append(r.requests, q)
	r.gateway(relay.Event{Kind: relay.Arrive, Req: q.id, Budgets: b})
	return q
}

// leave has a client go.
func (r *rig) leave(q *request) { r.gateway(relay.Event{Kind: relay.ClientGone, Req: q.id}) }

// gateway gives the gateway's core an event and does what it says.
func (r *rig) gateway(ev relay.Event) {
	var out relay.Effects
	r.relay.Step(r.now, ev, &out)
	for _, e := range out.List {
		switch e.Kind {
		case relay.Place:
			e.Exclude, e.Innocent = slices.Clone(e.Exclude), slices.Clone(e.Innocent)
			r.push(&item{name: "pair " + r.requests[e.Req-1].name, do: func() { r.place(e) }})
		case relay.Open:
			r.open(e)
		case relay.Close:
			r.close(e)
		case relay.Forward:
			for _, t := range r.tokens {
				if q := t.at.request; q.ends > 0 || t.n != q.got {
					r.Fatalf("STREAM: token %d of %s reaches a client that has %d and %d ends", t.n, t.at.name, q.got, q.ends)
				}
				t.at.request.got++
			}
		case relay.End:
			q := r.requests[e.Req-1]
			if q.ends++; q.ends > 1 {
				r.Fatalf("TERM: %s ends a second time, in %v behind %v", q.name, e.Outcome, q.outcome)
			}
			q.outcome = e.Outcome
		case relay.Blame:
			if n := r.worker(e.Worker); n != nil && e.Cause == room.WorkerLost {
				n.suspect = true
			}
		case relay.Release:
			if n := r.worker(e.Worker); n != nil {
				if n.load--; n.load < 0 {
					r.Fatalf("RELEASE: %s has a load of %d", n.name, n.load)
				}
			}
		}
	}
}

// worker finds the living node with a worker id.
func (r *rig) worker(id int32) *node {
	for _, n := range r.prefills {
		if n.id == id {
			return &n.node
		}
	}
	for _, n := range r.decodes {
		if n.id == id {
			return &n.node
		}
	}
	return nil
}

// place chooses the least loaded worker of each role that was not tried, like serve/gateway.
func (r *rig) place(e relay.Effect) {
	least := func(all []*node) *node {
		var best *node
		for _, again := range []bool{false, true} {
			for _, n := range all {
				tried, innocent := slices.Contains(e.Exclude, n.id), slices.Contains(e.Innocent, n.id)
				if n.up && !n.suspect && !n.away && (!tried || again && innocent) && (best == nil || n.load < best.load) {
					best = n
				}
			}
			if best != nil {
				break
			}
		}
		return best
	}
	var ps, ds []*node
	for _, n := range r.prefills {
		ps = append(ps, &n.node)
	}
	for _, n := range r.decodes {
		ds = append(ds, &n.node)
	}
	ev := relay.Event{Kind: relay.Pair, Req: e.Req, Attempt: e.Attempt, Outcome: room.Fail(room.WorkerLost)}
	if p, d := least(ps), least(ds); p != nil && d != nil {
		q := r.requests[e.Req-1]
		ev.OK, ev.Room, ev.Prefill, ev.Decode = true, room.ID(e.Req)<<8|room.ID(e.Attempt), p.id, d.id
		r.attempts[ev.Room] = &attempt{request: q, name: fmt.Sprintf("%s.%d", q.name, e.Attempt), id: ev.Room, worker: [2]int32{p.id, d.id}}
	}
	r.gateway(ev)
}

// open dispatches a leg. A worker that is gone by then refuses the connection.
func (r *rig) open(e relay.Effect) {
	at, n := r.attempts[e.Room], r.worker(e.Worker)
	n.load++
	r.push(&item{name: fmt.Sprintf("open %s %s", e.Leg, at.name), lane: at.name + e.Leg.String(), do: func() {
		if !n.up || n.id != e.Worker {
			r.say(at, e.Leg, "gone", relay.Event{Kind: relay.LegEnd, Outcome: room.Fail(room.WorkerLost)})
			return
		}
		until := at.arrived + at.budgets.Total
		if e.Leg == relay.Prefill {
			r.prefillOf(n).event(prefill.Event{Kind: prefill.Request, Room: at.id, Tokens: at.prompt, Keys: at.keys(), Deadline: until})
			return
		}
		peer := slices.IndexFunc(r.prefills, func(p *prefillNode) bool { return p.id == at.worker[relay.Prefill] })
		if peer < 0 { // it has another life by now, at the same address
			peer = 0
		}
		r.decodeOf(n).event(decode.Event{Kind: decode.Request, Room: at.id, Peer: int32(peer), Tokens: at.prompt, MaxNew: at.out, Deadline: until})
	}})
}

func (r *rig) prefillOf(n *node) *prefillNode {
	return r.prefills[slices.IndexFunc(r.prefills, func(p *prefillNode) bool { return &p.node == n })]
}

func (r *rig) decodeOf(n *node) *decodeNode {
	return r.decodes[slices.IndexFunc(r.decodes, func(d *decodeNode) bool { return &d.node == n })]
}

// close ends a leg: the worker hears it as an abort, and what it said before still comes, then
// that it is closed.
func (r *rig) close(e relay.Effect) {
	at := r.attempts[room.ID(e.Req)<<8|room.ID(e.Attempt)]
	at.closed[e.Leg] = true
	n, id := r.worker(at.worker[e.Leg]), at.worker[e.Leg]
	r.push(&item{name: fmt.Sprintf("abort %s %s", e.Leg, at.name), lane: at.name + e.Leg.String(), do: func() {
		switch {
		case n == nil || !n.up || n.id != id:
		case e.Leg == relay.Prefill:
			r.prefillOf(n).event(prefill.Event{Kind: prefill.Abort, Room: at.id})
		default:
			r.decodeOf(n).event(decode.Event{Kind: decode.Abort, Room: at.id})
		}
	}})
	r.push(&item{name: fmt.Sprintf("closed %s %s", e.Leg, at.name), lane: "say" + at.name + e.Leg.String(), do: func() {
		r.gateway(relay.Event{Kind: relay.LegClosed, Req: e.Req, Attempt: e.Attempt, Leg: e.Leg})
	}})
}

// say brings one line of a leg to the gateway, in order.
func (r *rig) say(at *attempt, l relay.Leg, what string, ev relay.Event, tokens ...token) {
	if at.closed[l] {
		return // nobody listens
	}
	ev.Req, ev.Attempt, ev.Leg = at.request.id, int32(at.id&255), l
	r.push(&item{name: fmt.Sprintf("say %s %s %s", l, at.name, what), lane: "say" + at.name + l.String(), do: func() {
		r.tokens = tokens
		r.gateway(ev)
	}})
}

// ended says a core's end of a leg to the gateway.
func (r *rig) ended(at *attempt, l relay.Leg, o room.Outcome) {
	if at.ends[l]++; at.ends[l] > 1 {
		r.Fatalf("RELEASE: the %s leg of %s ends twice", l, at.name)
	}
	at.how[l] = o
	r.say(at, l, "end", relay.Event{Kind: relay.LegEnd, Outcome: o, Finished: o == room.Done(), Said: true})
}

// refused is a leg that was not taken. A worker that drains says nothing of the room: to the
// gateway it is as good as gone (serve/worker refuse).
func (r *rig) refused(n *node, at *attempt, l relay.Leg, o room.Outcome) {
	if n.drains && (o.Cause == room.Overload || o.Cause == room.WorkerLost) {
		at.ends[l]++
		at.how[l] = o
		r.say(at, l, "end", relay.Event{Kind: relay.LegEnd, Outcome: room.Fail(room.WorkerLost)})
		return
	}
	r.ended(at, l, o)
}

// healthy says that a worker's health is good: nothing is held against it any more.
func (r *rig) healthy(n *node) {
	n.suspect, n.away = false, false
	r.gateway(relay.Event{Kind: relay.Roster, Worker: n.id})
}

// want compares how a request ended; NoCause is a success with all of its tokens.
func (r *rig) want(cause room.Cause, all ...*request) {
	r.Helper()
	for _, q := range all {
		o := room.Done()
		if cause != room.NoCause {
			o = room.Fail(cause)
		}
		if q.outcome != o {
			r.Errorf("%s ended in %v, want %v", q.name, q.outcome, o)
		}
		if cause == room.NoCause && q.got != q.out {
			r.Errorf("%s has %d of %d tokens", q.name, q.got, q.out)
		}
	}
}

// quiet runs until nothing moves and is the Q-check: every request has one end, nobody holds
// anything, no timer is armed, and gateway, prefill and decode agree.
func (r *rig) quiet() {
	r.Helper()
	r.run()
	if len(r.items) > 0 || r.relay.Running() > 0 || r.relay.Queue().Len > 0 {
		r.Fatalf("TERM: not at rest at %v:%s", r.now, r.left())
	}
	if at, t, ok := r.relay.NextTimer(); ok {
		r.Fatalf("the gateway waits until %v for %v", at, t)
	}
	for _, n := range r.prefills {
		n.quiet(n.core.Idle(), n.core.Blocks(), n.core.Timers)
	}
	for _, n := range r.decodes {
		n.quiet(n.core.Idle(), n.core.Blocks(), n.core.Timers)
	}
	for _, q := range r.requests {
		if q.ends != 1 {
			r.Errorf("TERM: %s has %d ends", q.name, q.ends)
		}
	}
	for _, at := range r.attempts {
		if at.outcome == room.Done() && at.how[relay.Decode] == room.Done() && at.how[relay.Prefill] != room.Done() && at.ends[relay.Prefill] > 0 {
			r.Errorf("AGREE: %s succeeded, but prefill says %v", at.name, at.how[relay.Prefill])
		}
	}
}
