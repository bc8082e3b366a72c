package fleetsim

import (
	"time"

	"baton/core/blocks"
	"baton/core/relay"
	"baton/core/room"
)

// request is the ledger's row of one client.
type request struct {
	gw       *node
	life     uint32        // of the gateway that took it
	arrived  time.Duration // true time; the deadline is on the gateway's clock
	deadline time.Duration
	total    time.Duration
	tokens   int
	most     int
	prompt   prompt
	keys     []blocks.Key
	pin      time.Duration // how long it asks workers to keep its prefix
	n        int           // outputs
	text     [][]uint64    // the right ones; nil if no decode pool holds them
	whole    bool          // the answer is given at the end, in one piece
	got      int
	outs     [outputsMax]int // of these, by output
	of       int32           // attempt that these are of
	unread   int             // tokens that the gateway keeps for the client
	came     bool
	ended    bool
	lost     bool // the gateway died
	gone     bool // the client left, or was given up
	stalled  bool
	quits    bool         // leaves at the first failure
	refused  bool         // somebody full turned it away
	late     bool         // a worker said that its time is over
	nobody   bool         // nobody was there to serve the current attempt
	why      room.Outcome // what ended the current attempt first
	outcome  room.Outcome
	legs     []*leg
	over     bool // forgotten by the gateway
}

// outputsMax bounds the outputs of a request.
const outputsMax = 3

// blocks is how many blocks decode reserves for all outputs at their longest.
func (r *request) blocks() int {
	full := r.tokens / room.BlockTokens
	return full + r.n*(room.BlocksFor(r.tokens+r.most)-full)
}

// texts counts the tokens of all outputs.
func (r *request) texts() (n int) {
	for _, x := range r.text {
		n += len(x)
	}
	return n
}

func (r *request) finished(token uint64, made int) bool { return made == r.most || stops(token) }

// fits says that the pool of a worker of this role holds the request.
func (w *World) fits(r *request, x role) bool {
	if x == prefillRole {
		return room.BlocksFor(r.tokens) <= w.plan.blocks[0]
	}
	return r.n <= w.plan.slots && r.blocks() <= w.plan.blocks[1]
}

// arrive lets a client come.
func (w *World) arrive(n *node, c *choice) {
	r := &w.reqs[c.req]
	if !n.up {
		return // connection refused: nobody accepted it
	}
	budgets := w.plan.budgets
	budgets.Total = c.total
	r.quits = c.b == 1
	r.came, r.gw, r.life, r.arrived, r.deadline, r.total = true, n, n.life, w.now, n.clock.read(w.now)+c.total, c.total
	r.tokens, r.most, r.n, r.whole = c.size, c.more, max(c.outputs, 1), c.whole
	r.prompt = prompt{own: mix(w.plan.seed + uint64(c.req)<<32), kin: mix(w.plan.seed ^ uint64(c.kin)), alike: c.alike}
	if last := &w.reqs[c.turn]; c.turn > 0 && last.text != nil { // it answers what was said, if that came to its client or not
		r.prompt.turn = &turn{last.prompt, last.tokens, last.text[0]}
		r.tokens = last.tokens + len(last.text[0]) + 1 + c.size%turnTokens
	}
	if r.pin = 0; c.req%4 == 0 {
		r.pin = time.Duration(c.size) * 20 * time.Millisecond
	}
	if !w.plan.keyless {
		r.keys = r.prompt.keys(r.tokens)
	}
	if w.fits(r, decodeRole) {
		for i := range r.n {
			r.text = append(r.text, text(r.prompt, r.tokens, r.most, i))
		}
	}
	if r.text == nil || !w.fits(r, prefillRole) {
		w.sights.see(tooLarge)
	}
	g, max := n.g, w.plan.limits
	queued := g.core.Queue().Len
	full := (queued > 0 || g.core.Running()+r.n > max.MaxRunning) && queued >= max.MaxQueued
	if full {
		w.sights.see(gatewayFull)
	}
	if full || n.draining {
		r.refused, r.why = true, room.Fail(room.Overload)
	}
	g.live += r.n
	g.came++
	g.credit = min(g.credit+1, max.RetryBurst*retryCost)
	if w.trace != nil {
		w.say(c.req, n, "request %d arrives: %d tokens, %v", c.req, c.size, c.total)
	}
	if !w.plan.weather.prompt() {
		w.queue.push(event{at: n.clock.when(r.deadline) + graceGateway, kind: judgeReq, node: int32(n.id), n: int32(c.req)})
	}
	w.stepG(n, relay.Event{Kind: relay.Arrive, Req: uint64(c.req), Budgets: budgets, Buffered: r.whole, Worth: r.n})
}

// clientGone lets a client leave, or be given up.
func (w *World) clientGone(n *node, req int) {
	r := &w.reqs[req]
	switch {
	case r.lost || r.gone || !r.came || !n.up || n.life != r.life:
		return
	case r.ended: // its answer was on the way: the core hears of it all the same
		r.gone = true
		w.stepG(n, relay.Event{Kind: relay.ClientGone, Req: uint64(req)})
		return
	}
	w.sights.left(n, uint64(req))
	r.gone = true
	if w.trace != nil {
		w.say(req, n, "the client of request %d leaves", req)
	}
	w.stepG(n, relay.Event{Kind: relay.ClientGone, Req: uint64(req)})
	if !r.ended {
		w.fail("PROMPT", req, "request %d goes on although its client left", req)
	}
}

// clientGets judges one token that goes to a client.
func (w *World) clientGets(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	switch {
	case r.ended || r.lost:
		w.fail("STREAM", int(e.Req), "request %d gets a token after its end", e.Req)
	case int(n.g.k) != r.outs[n.g.output]:
		w.fail("STREAM", int(e.Req), "request %d gets token %d of output %d of try %d, after %d tokens", e.Req, n.g.k, n.g.output, e.Attempt, r.outs[n.g.output])
	case r.got > 0 && e.Attempt != r.of:
		w.fail("STREAM", int(e.Req), "the answer of request %d goes on with try %d behind %d tokens of try %d", e.Req, e.Attempt, r.got, r.of)
	case int(n.g.k) >= len(r.text[n.g.output]) || n.g.token != r.text[n.g.output][n.g.k]:
		w.fail("STREAM", int(e.Req), "token %d of output %d of request %d is wrong: decode read other KV than the prompt's", n.g.k, n.g.output, e.Req)
	}
	r.got++
	r.outs[n.g.output]++
	r.of = e.Attempt
	if w.trace != nil && (r.got == 1 || r.got == r.texts()) {
		w.say(int(e.Req), n, "token %d of %d to the client", r.got, r.texts())
	}
	if !r.stalled || r.whole { // what is put together is memory of the request, and bounded as it is
		r.unread = 0
		return
	}
	if r.unread++; r.unread > clientUnread && !r.gone {
		w.sights.see(slowClient)
		r.gone = true
		n.g.todo = append(n.g.todo, relay.Event{Kind: relay.ClientGone, Req: e.Req})
	}
}

// clientLoses takes back what a client has not seen yet.
func (w *World) clientLoses(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	w.sights.see(discarded)
	if !r.whole || r.ended || r.got == 0 || r.of != e.Attempt {
		w.fail("STREAM", int(e.Req), "%d tokens of try %d are taken back from request %d, whose client has %d of try %d", r.got, e.Attempt, e.Req, r.got, r.of)
	}
	if w.trace != nil {
		w.say(int(e.Req), n, "%d tokens of try %d are taken back", r.got, e.Attempt)
	}
	r.got, r.outs = 0, [outputsMax]int{}
}

// clientEnds judges the one end of a request.
func (w *World) clientEnds(n *node, e *relay.Effect) {
	r := &w.reqs[e.Req]
	if r.ended || r.lost {
		w.fail("STREAM", int(e.Req), "request %d ends twice", e.Req)
		return
	}
	o := e.Outcome
	if n.g.stopped && o.Cause == room.Cancelled { // the gateway's own word to its core; no client asked for it
		o = room.Fail(room.Overload)
		r.refused = true
	}
	r.ended, r.outcome = true, o
	for _, l := range r.legs {
		if !l.final && !l.closed {
			w.fail("PROMPT", int(e.Req), "request %d ends, and its %s leg of try %d is left open", e.Req, l.side, l.attempt)
		}
	}
	if w.trace != nil {
		w.say(int(e.Req), n, "the client of request %d reads %s", e.Req, o)
	}
	w.judgeCause(n, r, int(e.Req), e.Outcome)
	w.judgeOutcome(r, int(e.Req))
	r.forgotten(n)
}

// forgotten counts a request that the gateway's core has to have forgotten now.
func (r *request) forgotten(n *node) {
	if !r.ended || r.over {
		return
	}
	for _, l := range r.legs {
		if !l.released {
			return
		}
	}
	r.over = true
	n.g.live -= r.n
}

// heardOf notes what a worker said, for the causes that it explains.
func (w *World) heardOf(l *leg, o room.Outcome) {
	r := &w.reqs[l.req]
	r.refused = r.refused || o.Cause == room.Overload
	r.late = r.late || o.Cause == room.Deadline
}
