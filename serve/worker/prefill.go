package worker

import (
	"time"

	"baton/core/blocks"
	"baton/core/prefill"
	"baton/core/room"
	"baton/engine/model"
	"baton/serve/recorder"
	"baton/transfer"
)

// prefillNode drives a prefill core: it computes prompts and sends their KV.
type prefillNode struct {
	w    *Worker
	core *prefill.Core
	link transfer.Prefill
	out  prefill.Effects
	rec  *recorder.Prefill // nil: nothing is recorded
	keys *prefixes         // nil: nothing is found
	sums []uint64          // [blocks of the pool], of what the last step that filled one left in it (W5)
	gone evictions
}

func (n *prefillNode) step(in *input) {
	ev := in.prefill
	if in.step != nil {
		ev = n.stepDone(in.step)
	}
	n.feed(ev, in.leg)
}

// feed steps the core and does what it wants, in order. leg is the payload of a Request.
func (n *prefillNode) feed(ev prefill.Event, leg *entry) {
	n.out.Reset()
	now := n.w.now()
	n.rec.Before(now, &ev, ridOf(leg))
	n.core.Step(now, ev, &n.out)
	n.rec.After(n.out.List)
	if n.w.tracing {
		n.trace(&ev)
	}
	for i := range n.out.List {
		n.do(&n.out.List[i], leg)
	}
	n.gone.note(n.w.metrics, n.core.Evicted())
}

func (n *prefillNode) do(x *prefill.Effect, leg *entry) {
	w := n.w
	switch x.Kind {
	case prefill.Accept:
		w.accept(x.Room, leg)
	case prefill.Refuse:
		w.refuse(leg, x.Outcome)
	case prefill.Step:
		w.moved()
		w.jobs <- n.job(x.Items) // one place, at most one step outstanding: never waits
	case prefill.Write:
		n.write(x)
	case prefill.Settle:
		n.link.Settle(x.Settled)
	case prefill.Freed:
		w.canary.freed(x.Blocks)
	case prefill.End:
		w.end(x.Room, x.Outcome)
	case prefill.EndHalf:
		w.ended(x.Room, "", x.Outcome, x.Began)
	default:
		panic("worker: unknown effect of the prefill core: " + x.Kind.String())
	}
}

func (n *prefillNode) job(items []prefill.StepItem) *job {
	j := &n.w.job
	j.clear(len(items))
	for i, it := range items {
		e := n.w.room(it.Room)
		if e.start(it.From) {
			n.w.found(it.From)
		}
		n.w.canary.used(it.Blocks)
		j.items[i] = model.Item{Tokens: e.tokens[it.From:it.To], Pos: int(it.From), Table: it.Blocks, Prompt: e.prompts(it.To), Want: it.Last}
		j.parts[i] = part{room: it.Room, entry: e, sums: true}
	}
	return j
}

// stepDone keeps what a step brought and makes its event.
func (n *prefillNode) stepDone(j *job) prefill.Event {
	results := make([]prefill.Result, len(j.parts))
	for i := range j.parts {
		p, it := &j.parts[i], &j.items[i]
		results[i] = prefill.Result{Room: p.room, OK: j.err == nil}
		if j.err != nil {
			p.entry.why = j.err.Error()
			continue
		}
		if p.unsound {
			results[i].OK = false
			n.w.unsound(p)
			continue
		}
		n.w.metrics.Prompt.Add(float64(len(it.Tokens)))
		for k, sum := range p.sum {
			n.sums[it.Table[it.Pos/room.BlockTokens+k]] = sum
		}
		if it.Want {
			n.w.well()
			p.entry.first = newFirst(p.entry, p.firsts)
		}
	}
	n.w.moved()
	return prefill.Event{Kind: prefill.StepDone, Results: results}
}

func (n *prefillNode) write(x *prefill.Effect) {
	e := n.w.room(x.Room)
	c := transfer.Write{Room: x.Room, Lease: x.Lease, Conn: x.Conn, Chunk: int(x.Chunk),
		FirstBlock: int(x.FirstBlock), Blocks: x.Blocks, Last: x.Last}
	c.Sums = make([]uint64, len(x.Blocks))
	for i, b := range x.Blocks {
		c.Sums[i] = n.sums[b]
	}
	if x.Last {
		c.Side = e.first.bytes()
	}
	n.link.Write(c)
}

func (n *prefillNode) request(e *entry) *input {
	e.digest = newDigest(e.req)
	ev := prefill.Event{Kind: prefill.Request, Room: e.req.Room, Tokens: len(e.tokens), Deadline: e.began + e.req.Left(), Pin: e.req.Pin()}
	ev.Keys, _ = n.keys.keys(e.req.Salt, e.tokens)
	return &input{leg: e, prefill: ev}
}

func (n *prefillNode) abort(id room.ID, c room.Cause) {
	n.feed(prefill.Event{Kind: prefill.Abort, Room: id, Cause: c}, nil)
}

func (n *prefillNode) drain() { n.feed(prefill.Event{Kind: prefill.Drain}, nil) }
func (n *prefillNode) fire(t room.Timer) {
	n.feed(prefill.Event{Kind: prefill.TimerFired, Timer: t}, nil)
}

func (n *prefillNode) over()                            { n.rec.Close() }
func (n *prefillNode) idle() bool                       { return n.core.Idle() }
func (n *prefillNode) phase(id room.ID) string          { return n.core.PhaseOf(id) }
func (n *prefillNode) sitsOut(room.ID) bool             { return false }
func (n *prefillNode) rooms(yield func(room.View) bool) { n.core.Rooms(yield) }
func (n *prefillNode) blocks() blocks.Count             { return n.core.Blocks() }
func (n *prefillNode) pinned() int                      { return n.core.PinnedAt(n.w.now()) }
func (n *prefillNode) queues() []room.QueueStat {
	q := n.core.Queues()
	return q[:]
}

// The link's handler: everything becomes an input.

func (n *prefillNode) LinkUp(peer room.Boot, conn room.Conn) {
	n.w.log.Info("link up", "worker", n.w.name, "peer", peer.String())
}

func (n *prefillNode) LinkEnd(peer room.Boot, conn room.Conn, err error) {
	n.w.metrics.LinkEnds.Inc()
	n.w.log.Info("link ended", "worker", n.w.name, "peer", peer.String(), "detail", err)
	n.w.send(&input{prefill: prefill.Event{Kind: prefill.LinkEnd, Boot: peer, Conn: conn}})
}

func (n *prefillNode) Prealloc(p room.Prealloc) {
	n.w.send(&input{prefill: prefill.Event{Kind: prefill.Prealloc, Prealloc: p}})
}

func (n *prefillNode) Cancel(c room.Cancel) {
	n.w.send(&input{prefill: prefill.Event{Kind: prefill.Cancel, Cancel: c}})
}

func (n *prefillNode) WriteDone(r room.ID, l room.Lease, chunk int, err error) {
	n.w.moved()
	n.w.send(&input{prefill: prefill.Event{Kind: prefill.WriteDone, Room: r, Lease: l, Chunk: int32(chunk), OK: err == nil}})
}

func (n *prefillNode) next() (at time.Duration, t room.Timer, ok bool) { return n.core.NextTimer() }
