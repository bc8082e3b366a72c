package relay

import (
	"container/heap"
	"container/list"
	"fmt"
	"time"

	"baton/core/room"
)

// Core holds every request of one gateway. It is not safe for concurrent use.
type Core struct {
	limits   Limits
	byID     map[uint64]*request // for look-ups only
	all      list.List           // of *request, oldest first
	waiting  list.List           // of *request in Queued, oldest first
	due      dueHeap             // requests with an armed timer, the next to fire first
	running  int                 // rights that requests in other phases than Queued take
	arrivals uint64              // ever
	credit   int                 // retries that may still be afforded, times retryCost
	draining bool

	now time.Duration
	out *Effects
}

// request is one request from Arrive until its last leg is closed.
type request struct {
	id       uint64
	order    uint64 // of arrival
	phase    Phase
	attempt  int32
	room     room.ID
	legs     [legs]leg
	tried    []tried
	place    placing
	nobody   room.Outcome // what the last answer that nobody is there said
	worth    int          // rights to run that it takes
	buffered bool         // the client gets nothing before the end
	tokens   int          // forwarded of the current attempt
	verdict  room.Outcome // first cause of the current or last attempt; the outcome in Closing
	budgets  Budgets
	armed    [timerNames]bool
	firesAt  [timerNames]time.Duration // of armed timers
	arrived  time.Duration
	since    time.Duration
	listed   *list.Element // in all
	queued   *list.Element // in waiting; nil outside Queued
	nextAt   time.Duration // the earliest of firesAt
	next     TimerName
	heapSlot int // in due; -1 if no timer is armed
}

// placing is how far Placing is.
type placing uint8

const (
	asked    placing = iota // an answer is on its way
	outdated                // the same, and it may not know of a worker that came meanwhile
	alone                   // nobody was there
)

// tried is a worker that served an attempt.
type tried struct {
	worker int32
	guilty bool // blamed for what it would do again, and not heard of as usable since
}

// leg is one leg of the current attempt.
type leg struct {
	worker int32
	state  legState
}

type legState uint8

const (
	unused  legState = iota // not opened in this attempt
	opening                 // dispatched
	open                    // accepted
	closing                 // Close was asked for
	over                    // ended, or its close is confirmed; released
)

func (s legState) live() bool { return s == opening || s == open }

// New returns a core without requests. Limits of zero take their defaults.
func New(l Limits) *Core {
	d := DefaultLimits()
	if l.MaxRunning <= 0 {
		l.MaxRunning = d.MaxRunning
	}
	if l.MaxQueued == 0 {
		l.MaxQueued = d.MaxQueued
	}
	if l.MaxTries <= 0 {
		l.MaxTries = d.MaxTries
	}
	if l.RetryBurst == 0 {
		l.RetryBurst = d.RetryBurst
	}
	return &Core{limits: l, byID: map[uint64]*request{}, credit: l.RetryBurst * retryCost}
}

// Step takes one event at time now (monotonic, since process start) and appends what is to be
// done about it. Events of a request that is forgotten, or of an attempt that is past, do
// nothing: they crossed its end.
func (c *Core) Step(now time.Duration, ev Event, out *Effects) {
	c.now, c.out = now, out
	switch ev.Kind {
	case Arrive:
		c.arrive(ev)
		return
	case Drain:
		c.draining = true
		return
	case Roster:
		c.roster(ev.Worker)
		return
	}
	id := ev.Req
	if ev.Kind == TimerFired {
		id = ev.Timer.Req
	}
	r := c.byID[id]
	if r == nil {
		return
	}
	switch ev.Kind {
	case ClientGone:
		c.finish(r, room.Fail(room.Cancelled), false)
	case TimerFired:
		c.timer(r, ev.Timer.Name)
	case Pair:
		c.pair(r, ev)
	case LegOpen:
		c.legOpen(r, ev)
	case Tokens:
		c.tokens(r, ev)
	case Waits:
		c.waits(r, ev)
	case LegEnd:
		c.legEnd(r, ev)
	case LegClosed:
		c.legClosed(r, ev)
	default:
		panic(fmt.Sprintf("relay: unknown event kind %d", ev.Kind))
	}
	c.schedule(r)
}

// arrive admits, queues or refuses a request.
func (c *Core) arrive(ev Event) {
	c.credit = min(c.credit+1, c.limits.RetryBurst*retryCost)
	room.Assert(c.byID[ev.Req] == nil, "relay", 0, Queued, "a request arrives twice")
	worth := max(ev.Worth, 1)
	runs := c.waiting.Len() == 0 && c.running+worth <= c.limits.MaxRunning // nobody overtakes (G11)
	switch {
	case worth > c.limits.MaxRunning: // it would wait for ever
		c.out.add(Effect{Kind: End, Req: ev.Req, Outcome: room.Fail(room.ClientError)})
		return
	case c.draining || !runs && c.waiting.Len() >= c.limits.MaxQueued:
		c.out.add(Effect{Kind: End, Req: ev.Req, Outcome: room.Fail(room.Overload)})
		return
	}
	c.arrivals++
	r := &request{id: ev.Req, order: c.arrivals, budgets: ev.Budgets, worth: worth, buffered: ev.Buffered, arrived: c.now, since: c.now, heapSlot: -1}
	r.legs[Prefill].worker, r.legs[Decode].worker = NoWorker, NoWorker
	if r.budgets.Total <= 0 {
		r.budgets.Total = TotalDefault
	}
	if r.budgets.Place <= 0 {
		r.budgets.Place = PlaceDefault
	}
	c.byID[r.id] = r
	r.listed = c.all.PushBack(r)
	c.arm(r, QueueTimer, r.budgets.Queue)
	c.arm(r, TotalTimer, r.budgets.Total)
	if runs {
		c.running += worth
		c.place(r)
	} else {
		r.queued = c.waiting.PushBack(r)
	}
	c.schedule(r)
}

// finish says the outcome and closes what is still open. The first outcome stands (G1, G7).
func (c *Core) finish(r *request, o room.Outcome, finished bool) {
	if r.phase == Closing {
		return
	}
	c.closeLegs(r)
	c.out.add(Effect{Kind: End, Req: r.id, Outcome: o, Finished: finished})
	r.verdict = o
	r.armed = [timerNames]bool{}
	if r.queued != nil {
		c.waiting.Remove(r.queued)
		r.queued = nil
		c.running += r.worth // for as long as it takes to forget it, so that forget is one for all
	}
	c.enter(r, Closing)
	c.settle(r)
}

// settle goes on when the last leg of an attempt is over: to the next attempt, or to oblivion.
func (c *Core) settle(r *request) {
	for _, l := range r.legs {
		if l.state != unused && l.state != over {
			return
		}
	}
	switch r.phase {
	case Retrying:
		c.place(r)
	case Closing:
		c.forget(r)
	}
}

// forget drops a request of which nothing is left and lets in whoever waits, the oldest first (G11).
func (c *Core) forget(r *request) {
	delete(c.byID, r.id)
	c.all.Remove(r.listed)
	c.running -= r.worth
	for c.waiting.Len() > 0 {
		n := c.waiting.Front().Value.(*request)
		if c.running+n.worth > c.limits.MaxRunning {
			return
		}
		c.waiting.Remove(n.queued)
		n.queued = nil
		c.running += n.worth
		c.place(n)
		c.schedule(n)
	}
}

func (c *Core) enter(r *request, p Phase) { r.phase, r.since = p, c.now }

// arm starts a timer; a budget of zero is no bound.
func (c *Core) arm(r *request, t TimerName, after time.Duration) {
	r.armed[t] = after > 0
	r.firesAt[t] = c.now + after
}

// schedule puts the request where its next timer belongs.
func (c *Core) schedule(r *request) {
	any := false
	for t, armed := range r.armed {
		if armed && (!any || r.firesAt[t] < r.nextAt) {
			any, r.nextAt, r.next = true, r.firesAt[t], TimerName(t)
		}
	}
	switch {
	case any && r.heapSlot < 0:
		heap.Push(&c.due, r)
	case any:
		heap.Fix(&c.due, r.heapSlot)
	case r.heapSlot >= 0:
		heap.Remove(&c.due, r.heapSlot)
	}
}

// NextTimer returns the timer that fires first.
func (c *Core) NextTimer() (at time.Duration, t Timer, ok bool) {
	if len(c.due) == 0 {
		return 0, Timer{}, false
	}
	r := c.due[0]
	return r.nextAt, Timer{r.id, r.next}, true
}

// dueHeap orders requests by their next timer, then by arrival.
type dueHeap []*request

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].nextAt < h[j].nextAt || h[i].nextAt == h[j].nextAt && h[i].order < h[j].order
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapSlot, h[j].heapSlot = i, j
}
func (h *dueHeap) Push(x any) {
	r := x.(*request)
	r.heapSlot = len(*h)
	*h = append(*h, r)
}
func (h *dueHeap) Pop() any {
	r := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	r.heapSlot = -1
	return r
}
