package gateway

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/leg"
	"baton/serve/recorder"
	"baton/serve/upstream/baton"
)

// input is one thing for the loop: an event with what belongs to it, or a question.
type input struct {
	event relay.Event
	line  leg.Line    // Tokens: what came
	end   leg.End     // LegEnd: how
	saw   string      // LegEnd: for the log: what the gateway saw where the worker said nothing, or what that said of another that is lost
	call  *call       // Arrive: who asks
	do    func(*loop) // not nil: a question or an order to the loop itself; the rest is unused
}

// loop owns the core, the roster and everything about live requests.
type loop struct {
	g        *Gateway
	core     *relay.Core
	rights   int // to run, of all requests together
	effects  relay.Effects
	rec      *recorder.Relay // nil: nothing is recorded
	roster   roster
	calls    map[uint64]*call
	legs     map[legKey]context.CancelFunc
	pending  []relay.Event  // events that executing effects made, oldest first
	running  sync.WaitGroup // of legs
	now      time.Duration
	idle     []chan struct{} // closed when no request is left
	answered []chan struct{} // closed when, besides, every answer is written
	pace     pace
	blames   blames
	stopping bool
}

// legKey names a leg that was opened and whose final event has not come.
type legKey struct {
	req     uint64
	attempt int32
	leg     relay.Leg
}

// call is what the gateway holds for one request of the core: one prompt of a client.
type call struct {
	req      uint64
	rid      string
	tokens   []int32
	request  *clientRequest
	first    int // of its choices in the answer
	choices  int
	arrived  time.Duration
	deadline time.Duration
	room     room.ID
	prefill  string
	decode   string
	link     string
	ends     [2]leg.End // of the newest attempt's legs, by relay.Leg; zero without one
	saw      [2]string  // of those that ended without a word, or lost another worker: what was seen, for the log
	end      leg.End    // of the leg that the outcome is of; zero when it is of none
	slow     bool       // the client did not read
	missing  string     // why no worker was there, not even for a first attempt; "" if one was
	line     leg.Line
}

// run is the loop. It ends when ctx is done, and waits for the legs it started.
func (l *loop) run(ctx context.Context) {
	defer l.rec.Close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, _, ok := l.core.NextTimer(); ok {
			timer.Reset(at - l.g.clock())
		} else {
			timer.Stop()
		}
		select {
		case in := <-l.g.inbox:
			l.take(in)
		case <-timer.C:
			l.fire()
		case <-ctx.Done():
			l.stop()
			return
		}
		l.tellIdle()
	}
}

// stop ends every request that is left and waits for the legs. Their last events find nobody.
func (l *loop) stop() {
	for len(l.g.inbox) > 0 { // the last: nothing is posted any more
		l.take(<-l.g.inbox)
	}
	l.stopping = true
	var left []uint64
	l.core.Rooms(func(v relay.View) bool {
		left = append(left, v.Req)
		return true
	})
	for _, req := range left {
		l.step(relay.Event{Kind: relay.ClientGone, Req: req})
	}
	for _, cancel := range l.legs {
		cancel()
	}
	l.running.Wait()
	l.tellBlames()
}

// tellIdle answers those who wait until no request is left.
func (l *loop) tellIdle() {
	if l.core.Running() > 0 || l.core.Queue().Len > 0 {
		return
	}
	for _, idle := range l.idle {
		close(idle)
	}
	l.idle = nil
	if l.g.answers.Load() > 0 {
		return
	}
	for _, answered := range l.answered {
		close(answered)
	}
	l.answered = nil
}

// fire fires every timer that is due.
func (l *loop) fire() {
	for {
		at, t, ok := l.core.NextTimer()
		if !ok || at > l.g.clock() {
			return
		}
		l.step(relay.Event{Kind: relay.TimerFired, Timer: t})
	}
}

func (l *loop) take(in input) {
	if in.do != nil {
		in.do(l)
		return
	}
	switch in.event.Kind {
	case relay.Arrive:
		in.call.arrived = in.call.request.arrived
		in.call.deadline = in.call.arrived + in.event.Budgets.Total
		in.event.Budgets.Total = max(in.call.deadline-l.g.clock(), 1) // 0 would be no bound
		l.calls[in.call.req] = in.call
	case relay.Tokens:
		if c := l.calls[in.event.Req]; c != nil {
			c.line = in.line
		}
	case relay.LegEnd:
		if c := l.calls[in.event.Req]; c != nil {
			if c.link != "" { // a decode worker knows the other by its address, which is no client's business
				in.end.Message = strings.ReplaceAll(in.end.Message, c.link, c.prefill)
			}
			c.ends[in.event.Leg], c.saw[in.event.Leg] = in.end, in.saw
		}
		delete(l.legs, legKey{in.event.Req, in.event.Attempt, in.event.Leg})
	case relay.LegClosed:
		delete(l.legs, legKey{in.event.Req, in.event.Attempt, in.event.Leg})
	}
	l.step(in.event)
}

// step gives the core one event and executes its effects in order, then the events that came
// of them.
func (l *loop) step(ev relay.Event) {
	l.pending = append(l.pending[:0], ev)
	for i := 0; i < len(l.pending); i++ {
		l.now = l.g.clock()
		l.effects.Reset()
		l.rec.Before(l.now, &l.pending[i], l.newcomer(&l.pending[i]))
		l.core.Step(l.now, l.pending[i], &l.effects)
		l.rec.After(l.effects.List)
		for j := range l.effects.List {
			l.execute(&l.effects.List[j])
		}
	}
}

func (l *loop) execute(e *relay.Effect) {
	switch e.Kind {
	case relay.Place:
		l.place(e)
	case relay.Open:
		l.open(e)
	case relay.Close:
		if cancel := l.legs[legKey{e.Req, e.Attempt, e.Leg}]; cancel != nil {
			cancel()
		}
	case relay.Forward:
		l.forward(e)
	case relay.Discard:
		c := l.calls[e.Req]
		c.request.inbox.anew(c.first, c.choices)
	case relay.End:
		l.end(e)
	case relay.Blame:
		l.blame(e)
	case relay.Release:
		if m := l.roster.find(e.Worker); m != nil {
			m.load--
			l.roster.sweep()
		}
	}
}

// newcomer is the rid of the request that an event brings, "" for other events.
func (l *loop) newcomer(ev *relay.Event) string {
	if ev.Kind == relay.Arrive {
		return l.rid(ev.Req)
	}
	return ""
}

func (l *loop) rid(req uint64) string {
	if c := l.calls[req]; c != nil {
		return c.rid
	}
	return ""
}

// place answers with a pair and a new room, or says that nobody is there.
func (l *loop) place(e *relay.Effect) {
	c := l.calls[e.Req]
	prefill, decode := l.roster.pair(e.Exclude, e.Innocent)
	c.missing = ""
	if decode == nil && c.room == 0 {
		c.missing = l.roster.missing()
	}
	ev := relay.Event{Kind: relay.Pair, Req: e.Req, Attempt: e.Attempt, OK: decode != nil, Prefill: relay.NoWorker}
	if decode == nil {
		ev.Outcome = room.Fail(room.WorkerLost)
		l.pending = append(l.pending, ev)
		return
	}
	c.room, c.decode, c.prefill, c.link, c.ends, c.saw = newRoom(), decode.Name, "", "", [2]leg.End{}, [2]string{}
	ev.Room, ev.Decode = c.room, decode.id
	if prefill != nil {
		ev.Prefill, c.prefill, c.link = prefill.id, prefill.Name, prefill.Link
	}
	l.g.metrics.attempts.Inc()
	l.pending = append(l.pending, ev)
}

// newRoom draws a room (W5).
func newRoom() room.ID {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails
		if id := room.ID(binary.LittleEndian.Uint64(b[:]) & room.IDMask); id != 0 {
			return id
		}
	}
}

// open dispatches a leg on a goroutine of its own.
func (l *loop) open(e *relay.Effect) {
	c, m := l.calls[e.Req], l.roster.find(e.Worker)
	m.load++
	req := &leg.Request{RID: c.rid, Room: e.Room, Tokens: c.tokens, Params: c.request.parsed.Params, Salt: c.request.parsed.CacheSalt, PinMS: c.request.parsed.CachePin.Milliseconds(),
		LeftMS: max((c.deadline - l.now).Milliseconds(), 1)}
	req.Params.Choice += uint32(c.first) // the prompts of a request draw apart, as its choices do
	if e.Leg == relay.Decode {
		req.Link = c.link
	}
	if c.choices > 1 { // both workers: the first token of each choice is made by prefill
		req.N = c.choices
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.legs[legKey{e.Req, e.Attempt, e.Leg}] = cancel
	about := relay.Event{Req: e.Req, Attempt: e.Attempt, Leg: e.Leg}
	addr := m.HTTP
	l.running.Go(func() {
		defer cancel()
		l.g.runLeg(ctx, addr, req, about)
	})
}

// runLeg drives a leg to its end. Its final event is the last that it posts (W6).
func (g *Gateway) runLeg(ctx context.Context, addr string, req *leg.Request, about relay.Event) {
	result := g.client.Run(ctx, addr, about.Leg.String(), req, func(line leg.Line) {
		ev := about
		ev.Kind, ev.N = relay.Tokens, len(line.IDs)
		switch {
		case line.Accepted:
			ev.Kind = relay.LegOpen
		case line.Waits:
			ev.Kind = relay.Waits
		}
		g.post(input{event: ev, line: line})
	})
	g.post(finalEvent(ctx, about, result, req.Choices()))
}

func finalEvent(ctx context.Context, about relay.Event, result baton.Result, choices int) input {
	if ctx.Err() != nil && !result.Said { // its end is the close that was asked for
		about.Kind = relay.LegClosed
		return input{event: about}
	}
	about.Kind, about.Outcome = relay.LegEnd, result.End.Result()
	about.Said, about.Finished = result.Said, finished(&result.End, choices)
	in := input{event: about, end: result.End}
	// Errors of sockets are no client's business: neither ours, nor those of a worker that lost another.
	if !result.Said || result.End.Cause == room.WorkerLost {
		in.saw, in.end.Message = in.end.Message, ""
	}
	return in
}

// finished says whether every choice has a finish reason.
func finished(e *leg.End, choices int) bool {
	if choices == 1 {
		return e.Finish != "" && len(e.Choices) == 0
	}
	return len(e.Choices) == choices && !slices.ContainsFunc(e.Choices, func(c leg.Choice) bool { return c.Finish == "" })
}

// forward hands what just came to the client; one that does not read is given up (W4).
func (l *loop) forward(e *relay.Effect) {
	c := l.calls[e.Req]
	if c.request.inbox.push(c.first+c.line.Choice, &c.line) {
		return
	}
	l.g.metrics.slowClients.Inc()
	c.slow = true
	l.pending = append(l.pending, relay.Event{Kind: relay.ClientGone, Req: e.Req})
}

// end is the one terminal event of a request.
func (l *loop) end(e *relay.Effect) {
	c := l.calls[e.Req]
	delete(l.calls, e.Req)
	o, stopped, saw := e.Outcome, false, ""
	if l.stopping && o.Cause == room.Cancelled { // stop's word to the core; no client asked for it
		o, stopped, saw = room.Fail(room.Overload), true, "the server was stopped"
	} else {
		c.end, saw = c.endOf(o)
	}
	if c.room != 0 {
		l.pace.ended(l.now, l.core.Queue().Len > 0)
	}
	l.g.finished(c, o, l.now-c.arrived, saw)
	c.request.inbox.end(ending{first: c.first, outcome: o, end: c.end, missing: c.missing, slow: c.slow, stopped: stopped,
		after: l.pace.wait(l.now, l.core.Queue().Len)})
}

// endOf returns the end that the client's answer is made of: counts or a message belong to the
// outcome only if its leg ended like that. Of two that did decode's is the better word. saw is
// what the gateway saw of it.
func (c *call) endOf(o room.Outcome) (end leg.End, saw string) {
	for _, l := range []relay.Leg{relay.Decode, relay.Prefill} {
		if c.ends[l].Result() == o {
			return c.ends[l], c.saw[l]
		}
	}
	return leg.End{}, ""
}

// pace estimates how long the queue will take, from how fast requests ended lately while others
// waited. The zero value knows nothing.
type pace struct {
	last time.Duration // when a request ended and others waited; 0: none waited
	mean time.Duration // between such ends, weighted towards the newest
}

// paceWeight is how much the newest gap counts: one in eight, as for round trips in TCP.
const paceWeight = 8

// ended counts the end of a request that ran; waiting says whether others wait for its place.
func (p *pace) ended(now time.Duration, waiting bool) {
	if p.last > 0 {
		gap := now - p.last
		if p.mean == 0 {
			p.mean = gap
		}
		p.mean += (gap - p.mean) / paceWeight
	}
	p.last = 0
	if waiting {
		p.last = now
	}
}

// wait is when a request that found queued others waiting may be worth while again: when these
// have had their turns. It is between retryHint and retryMax.
func (p *pace) wait(now time.Duration, queued int) time.Duration {
	gap := p.mean
	if p.last > 0 {
		gap = max(gap, now-p.last) // nothing has ended for longer than usual
	}
	if gap > retryMax {
		return retryMax
	}
	return min(max(gap*time.Duration(queued+1), retryHint), retryMax)
}
