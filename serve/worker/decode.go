package worker

import (
	"errors"
	"fmt"
	"time"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/room"
	"baton/engine/model"
	"baton/engine/sample"
	"baton/serve/leg"
	"baton/serve/recorder"
	"baton/transfer"
)

// decodeNode drives a decode core: it receives KV, or computes it itself, and generates.
type decodeNode struct {
	w     *Worker
	core  *decode.Core
	link  transfer.Decode // nil for a unified worker
	peers peers
	out   decode.Effects
	todo  []decode.Event   // that effects of the step before made
	rec   *recorder.Decode // nil: nothing is recorded
	keys  *prefixes        // nil: nothing is found
	gone  evictions
}

func (n *decodeNode) step(in *input) {
	ev := in.decode
	switch {
	case in.step != nil:
		ev = n.stepDone(in.step)
	case in.leg != nil:
		if ok := n.peers.take(in.leg); !ok {
			n.w.refuse(in.leg, room.Fail(room.Overload))
			return
		}
		ev.Peer = in.leg.peer
	case in.side != nil:
		n.keep(ev.Room, in.side)
	case ev.Kind == decode.ChunkRefused:
		if e := n.w.rooms[ev.Room]; e != nil && e.why == "" { // it may have ended while its receiver left
			e.why = in.why
		}
	}
	n.feed(ev, in)
	n.rest()
}

// rest feeds what effects made, after them.
func (n *decodeNode) rest() {
	for len(n.todo) > 0 {
		ev := n.todo[0]
		n.todo = append(n.todo[:0], n.todo[1:]...)
		n.feed(ev, nil)
	}
}

// feed steps the core and does what it wants, in order. in is what the event came with.
func (n *decodeNode) feed(ev decode.Event, in *input) {
	n.peers.note(&ev, in)
	n.out.Reset()
	now := n.w.now()
	n.rec.Before(now, &ev, in.rid())
	n.core.Step(now, ev, &n.out)
	n.rec.After(n.out.List)
	if n.w.tracing {
		n.trace(&ev)
	}
	for i := range n.out.List {
		n.do(&n.out.List[i], in)
	}
	n.gone.note(n.w.metrics, n.core.Evicted())
}

func (n *decodeNode) do(x *decode.Effect, in *input) {
	w := n.w
	switch x.Kind {
	case decode.Accept:
		w.accept(x.Room, in.leg)
	case decode.Refuse:
		n.peers.drop(in.leg)
		w.refuse(in.leg, x.Outcome)
	case decode.Dial:
		n.link.Dial(x.Peer, n.peers.dial(x.Peer))
	case decode.SendPrealloc:
		w.room(x.Prealloc.Room).spare(w.metrics, x.Prealloc.From)
		n.link.Prealloc(x.Conn, x.Prealloc)
	case decode.SendCancel:
		n.link.Cancel(x.Conn, x.Cancel)
	case decode.Place:
		w.canary.used(x.Blocks)
		in.place <- spot{x.Blocks, x.OK}
	case decode.Step:
		w.moved()
		w.jobs <- n.job(x) // one place, at most one step outstanding: never waits
	case decode.Begin:
		n.begin(x.Room, x.Branch)
	case decode.Emit:
		n.emit(x.Room, x.Branch)
	case decode.Retract:
		n.retract(x.Room)
	case decode.Freed:
		w.canary.freed(x.Blocks)
	case decode.End:
		n.end(x.Room, x.Outcome)
	default:
		panic("worker: unknown effect of the decode core: " + x.Kind.String())
	}
}

func (n *decodeNode) job(x *decode.Effect) *job {
	j := &n.w.job
	j.clear(len(x.Items))
	j.copies = x.Copies
	for i := range x.Items {
		it := &x.Items[i]
		e := n.w.room(it.Room)
		if e.start(it.From) {
			n.w.found(it.From)
		}
		n.w.canary.used(it.Blocks)
		j.items[i] = model.Item{Tokens: e.feed(it.Branch, it.From, it.To), Pos: int(it.From), Table: it.Blocks, Prompt: it.Prefill && e.prompts(it.To), Want: it.Last || !it.Prefill}
		j.parts[i] = part{room: it.Room, entry: e, branch: it.Branch, generate: !it.Prefill, again: it.Again}
	}
	return j
}

// stepDone keeps what a step brought and makes its event.
func (n *decodeNode) stepDone(j *job) decode.Event {
	if n.rec != nil {
		j.results = nil // a recorder writes later what it is given
	}
	for i := range j.parts {
		p, it := &j.parts[i], &j.items[i]
		r := decode.Result{Room: p.room, Branch: p.branch, OK: j.err == nil && !p.dead, Finished: p.piece.Finished}
		switch {
		case j.err != nil:
			p.entry.why = j.err.Error()
		case p.unsound:
			r.OK = false
			n.w.unsound(p)
		case p.dead:
			r.Cause = room.ClientError
			p.entry.dead()
		case p.generate:
			n.w.well()
			n.w.metrics.Output.Inc()
			p.entry.push(p.branch, p.id, p.piece)
			if p.branch == 0 {
				r.Key = p.entry.chain.next(p.entry.tokens, it.Pos+1)
			}
		default:
			computed := n.w.metrics.Prompt
			if p.again {
				computed = n.w.metrics.Recomputed
			}
			computed.Add(float64(len(it.Tokens)))
			if it.Want {
				n.w.well()
				p.entry.first = newFirst(p.entry, p.firsts)
			}
		}
		j.results = append(j.results, r)
	}
	n.w.moved()
	return decode.Event{Kind: decode.StepDone, Results: j.results}
}

// whyDead is said of a room whose next token may be none.
const whyDead = "no token may follow: what the parameters allow (allowed_token_ids, logit_bias, bad_words, min_tokens) and the grammar leave none"

// dead notes that no token may follow, and by which field first of all.
func (e *entry) dead() {
	p := &e.req.Params
	e.why = whyDead
	switch {
	case p.Grammar != nil:
		e.param = paramGrammar
	case len(p.AllowedIDs) > 0:
		e.param = "allowed_token_ids"
	case len(p.Bad) > 0:
		e.param = "bad_words"
	case len(p.LogitBias) > 0:
		e.param = "logit_bias"
	default:
		e.param = "min_tokens"
	}
}

// keep takes the side data of a room's last chunk. What is wrong with it shows in begin.
func (n *decodeNode) keep(id room.ID, side []byte) {
	e := n.w.room(id) // a receiver is inside its blocks, so it has not ended
	f, err := parseFirst(side, e, n.w.served.Vocab)
	if err != nil {
		e.why = err.Error()
		if errors.Is(err, errLegsDiffer) {
			e.fault = room.Internal
		}
		return
	}
	e.first, e.cached = f, f.Cached
}

// begin feeds the first token of a choice to its output.
func (n *decodeNode) begin(id room.ID, choice int32) {
	e := n.w.room(id)
	ev := decode.Event{Kind: decode.Begun, Room: id, Branch: choice, Cause: e.fault}
	if e.first != nil {
		c := e.first.Choices[choice].choice()
		if c.ID == sample.NoToken {
			ev.Cause = room.ClientError
			e.dead()
		} else if p, ok := e.branches[choice].seq.Push(c); ok {
			n.w.metrics.Output.Inc()
			e.push(choice, c.ID, p)
			ev.OK, ev.Finished = true, p.Finished
		} else {
			ev.Cause, e.why = room.Internal, fmt.Sprintf("the grammar does not allow the first token, %d, that prefill chose", c.ID)
		}
	}
	n.todo = append(n.todo, ev)
}

// emit sends the newest piece of a choice to the gateway; one that does not read loses its room (W3).
func (n *decodeNode) emit(id room.ID, choice int32) {
	e := n.w.room(id)
	p := &e.branches[choice].piece
	l := leg.Line{Text: p.Text, IDs: p.IDs, Logprobs: p.Logprobs, Choice: int(choice)}
	if p.Finished && len(e.branches) > 1 { // of one choice the end says it, which comes at once
		l.Finish, l.Matched = p.Reason, p.Matched
	}
	for i := range l.Logprobs {
		p := &l.Logprobs[i]
		p.Logprob = sample.Clamp(p.Logprob)
		for k := range p.Top {
			p.Top[k].Logprob = sample.Clamp(p.Top[k].Logprob)
		}
	}
	n.say(id, e, l)
}

// say puts a line into the answer of a room.
func (n *decodeNode) say(id room.ID, e *entry, l leg.Line) {
	if !e.answer.put(l) {
		n.w.metrics.SlowReaders.Inc()
		e.why = "the gateway did not read its answer, whose buffer is full"
		n.todo = append(n.todo, decode.Event{Kind: decode.Abort, Room: id, Cause: room.Overload})
	}
}

// retract says that a room waits for memory again, to the gateway too, which would else take it for
// stuck. Its tokens, the state of its sampling and what it said stay where they are: the room is
// computed again from them, and goes on.
func (n *decodeNode) retract(id room.ID) {
	e := n.w.room(id)
	n.say(id, e, leg.Line{Waits: true})
	n.w.metrics.Retractions.Inc()
	n.w.log.Info("room retracted", "room", id, "rid", e.req.RID, "worker", n.w.name, "after", n.w.now()-e.began,
		"detail", fmt.Sprintf("%d tokens of prompt and %d of output will be computed again", len(e.req.Tokens), len(e.tokens)-len(e.req.Tokens)))
}

func (n *decodeNode) end(id room.ID, o room.Outcome) {
	e := n.w.room(id)
	if e.why == "" && o.Kind == room.Failed {
		e.why = n.peers.why(e.peer)
	}
	n.peers.drop(e)
	n.w.end(id, o)
}

func (n *decodeNode) request(e *entry) *input {
	if e.req.Link != "" {
		e.digest = newDigest(e.req)
	}
	ev := decode.Event{Kind: decode.Request, Room: e.req.Room, Tokens: len(e.req.Tokens), Branches: e.req.Choices(),
		MaxNew: e.req.Params.MaxTokens - e.req.Generated, Deadline: e.began + e.req.Left(), Pin: e.req.Pin()}
	ev.Keys, e.chain = n.keys.keys(e.req.Salt, e.req.Tokens)
	return &input{leg: e, decode: ev}
}

func (n *decodeNode) abort(id room.ID, c room.Cause) {
	n.feed(decode.Event{Kind: decode.Abort, Room: id, Cause: c}, nil)
	n.rest()
}

func (n *decodeNode) drain() {
	n.feed(decode.Event{Kind: decode.Drain}, nil)
	n.rest()
}

func (n *decodeNode) fire(t room.Timer) {
	n.feed(decode.Event{Kind: decode.TimerFired, Timer: t}, nil)
	n.rest()
}

func (n *decodeNode) next() (at time.Duration, t room.Timer, ok bool) { return n.core.NextTimer() }
func (n *decodeNode) over()                                           { n.rec.Close() }
func (n *decodeNode) idle() bool                                      { return n.core.Idle() }
func (n *decodeNode) phase(id room.ID) string                         { return n.core.PhaseOf(id) }
func (n *decodeNode) sitsOut(id room.ID) bool                         { return n.core.SitsOut(id) }
func (n *decodeNode) rooms(yield func(room.View) bool)                { n.core.Rooms(yield) }
func (n *decodeNode) blocks() blocks.Count                            { return n.core.Blocks() }
func (n *decodeNode) pinned() int                                     { return n.core.PinnedAt(n.w.now()) }
func (n *decodeNode) queues() []room.QueueStat {
	q := n.core.Queues()
	return q[:]
}

// The link's handler: everything becomes an input.

func (n *decodeNode) LinkUp(peer int32, _ room.Boot, conn room.Conn) {
	n.w.send(&input{decode: decode.Event{Kind: decode.LinkUp, Peer: peer, Conn: conn}})
}

func (n *decodeNode) LinkFailed(peer int32, err error) {
	cause := room.WorkerLost
	var refusal *transfer.Refusal
	if errors.As(err, &refusal) && (refusal.Reason == transfer.ReasonManifest || refusal.Reason == transfer.ReasonSecret || refusal.Reason == transfer.ReasonVersion) {
		cause = room.Internal // these two will never agree: a mistake of whoever set the fleet up
	}
	n.w.send(&input{why: differing(refusal) + err.Error(), decode: decode.Event{Kind: decode.LinkFailed, Peer: peer, Cause: cause}})
}

// differing says what differs between the manifests of a refusal, to stand before them: they
// are long, and much alike. Manifests that are not of package model are left to speak.
func differing(r *transfer.Refusal) string {
	if r == nil || r.Reason != transfer.ReasonManifest {
		return ""
	}
	ours, err := model.ParseManifest(r.Ours)
	if err != nil {
		return ""
	}
	theirs, err := model.ParseManifest(r.Theirs)
	if err != nil {
		return ""
	}
	return "the two workers differ in " + ours.Diff(theirs) + ": "
}

func (n *decodeNode) LinkEnd(peer int32, conn room.Conn, err error) {
	n.w.metrics.LinkEnds.Inc()
	why := "the link ended"
	if err != nil {
		why = err.Error()
	}
	n.w.send(&input{why: why, decode: decode.Event{Kind: decode.LinkEnd, Peer: peer, Conn: conn}})
}

func (n *decodeNode) Settled(_ int32, s room.Settled) {
	n.w.send(&input{decode: decode.Event{Kind: decode.Settled, Settled: s}})
}

func (n *decodeNode) Arrived(c transfer.Chunk) ([]int32, bool) {
	place := make(chan spot, 1)
	ev := decode.Event{Kind: decode.ChunkArrived, Room: c.Room, Lease: c.Lease, Conn: c.Conn, Chunk: int32(c.Chunk),
		FirstBlock: int32(c.FirstBlock), N: int32(c.N), Last: c.Last}
	if !n.w.send(&input{place: place, decode: ev}) {
		return nil, false
	}
	select {
	case s := <-place:
		return s.blocks, s.ok
	case <-n.w.over:
		return nil, false
	}
}

func (n *decodeNode) Placed(c transfer.Chunk, side []byte) {
	n.w.moved()
	in := &input{decode: decode.Event{Kind: decode.ChunkPlaced, Room: c.Room, Lease: c.Lease, Chunk: int32(c.Chunk)}}
	if c.Last {
		in.side = append([]byte{}, side...) // never nil: an empty one is wrong, not absent
	}
	n.w.send(in)
}

func (n *decodeNode) Off(c transfer.Chunk) {
	n.w.send(&input{decode: decode.Event{Kind: decode.ChunkOff, Room: c.Room, Lease: c.Lease, Chunk: int32(c.Chunk)}})
}

func (n *decodeNode) Refused(c transfer.Chunk) {
	why := fmt.Sprintf("chunk %d (blocks %d to %d) came with a wrong sum: its bytes changed on the way", c.Chunk, c.FirstBlock, c.FirstBlock+c.N-1)
	n.w.log.Warn("chunk refused", "worker", n.w.name, "room", c.Room, "lease", c.Lease.String(), "cause", room.TransferFailed.String(), "detail", why)
	n.w.send(&input{why: why, decode: decode.Event{Kind: decode.ChunkRefused, Room: c.Room, Lease: c.Lease, Chunk: int32(c.Chunk)}})
}
