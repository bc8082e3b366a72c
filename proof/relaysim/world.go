package relaysim

import (
	"fmt"
	"slices"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// Scope is how large the world is and what may go wrong in it.
type Scope struct {
	Requests int
	Limits   relay.Limits
	Prefills int // workers 0, 1, …; 0 makes the decode workers prefill themselves
	Decodes  int // workers decodeBase, decodeBase+1, …
	Tokens   int // pieces that a decode leg brings before its finish reason
	Causes   []room.Cause
	Gone     bool // clients may leave
	Buffered bool // clients get nothing before the end
	Many     int  // rights to run that the second request takes; 0 is 1
	Silent   bool // a leg may fall silent for ever
	Waits    bool // a decode leg may say that its room waits for memory
	NoPair   bool // placement may find nobody
	Drain    bool
	Away     int  // how often a worker may die or fall ill; 0: the roster never changes
	Back     bool // somebody brings workers back for sure; else they may stay away
	NoTotal  bool // the client has all the time in the world: phases have to bound themselves
	Echo     bool // a close is confirmed even if the leg had ended by itself: drivers may do either
	Budgets  relay.Budgets
}

// decodeBase keeps the numbers of prefill and decode workers apart.
const decodeBase = 10

// World is the core and everything around it.
type World struct {
	core     *relay.Core
	requests []request
	workers  []worker // prefill workers, then decode workers
	away     int      // how often one may still go away
	drained  bool
}

// request is what the world knows of one request.
type request struct {
	arrived  bool
	gone     bool
	order    uint8 // of arrival, from 1
	placing  int32 // attempt that waits for a pair; 0 if none
	excluded []int32
	innocent []int32
	looked   bool // placement has looked at the roster, and its answer is on its way
	prefill  int32
	decode   int32
	waited   bool  // an answer was that nobody is there
	attempt  int32 // the attempt that legs belong to
	legs     [2]leg
	late     [2]int32 // attempt whose LegClosed is still in a line of old; 0 if none
	got      uint8    // pieces in the answer; a client that streams has them
	of       int32    // attempt that they are of
	anew     bool     // pieces were taken back
	gap      int32    // ghost: attempt of which a piece was heard and not handed on; 0 if none
	ended    bool
	outcome  room.Outcome
	why      room.Outcome // ghost: the first failure of the current or last attempt that the gateway heard of
}

// leg is one dispatched leg: what the worker does, and what stands in the line to the gateway.
type leg struct {
	state   legState
	worker  int32
	pieces  int  // brought so far
	closed  bool // Close was asked for
	silent  bool
	failed  bool // the worker ended it, and not with a success
	loaded  bool // counted as load of its worker
	waiting [lineMax]post
	posted  uint8
}

// lineMax is the longest line of a leg: accepted, pieces, end, closed.
const lineMax = 6

// post is what stands in a leg's line: the part of relay.Event that differs.
type post struct {
	kind     relay.EventKind
	finished bool
	said     bool
	outcome  room.Outcome
}

// say puts something at the end of the line.
func (l *leg) say(p post) {
	l.waiting[l.posted] = p
	l.posted++
}

// hear takes the first thing out of the line.
func (l *leg) hear() post {
	p := l.waiting[0]
	copy(l.waiting[:], l.waiting[1:])
	l.posted--
	l.waiting[l.posted] = post{}
	return p
}

type legState uint8

const (
	none     legState = iota
	dialled           // dispatched, the worker has not accepted
	working           // accepted
	finished          // nothing more comes from the worker
)

func (s *System) newWorld() World {
	return World{core: relay.New(s.scope.Limits), requests: make([]request, s.scope.Requests), workers: s.newRoster(), away: s.scope.Away}
}

func (w *World) clone() World {
	c := World{core: w.core.Clone(), requests: slices.Clone(w.requests), workers: slices.Clone(w.workers), away: w.away, drained: w.drained}
	for i := range c.requests {
		r := &c.requests[i]
		r.excluded, r.innocent = slices.Clone(r.excluded), slices.Clone(r.innocent)
	}
	return c
}

func (w *World) of(req uint64) *request { return &w.requests[req-1] }

// step runs the core and does what it asks for. An error is a broken promise.
func (s *System) step(w *World, ev relay.Event) error {
	var out relay.Effects
	s.due = s.due[:0]
	if ev.Kind != relay.Drain && ev.Kind != relay.Roster {
		s.due = w.due(ev, s.due)
	}
	s.Log.Relay(w.core, ev, func() { w.core.Step(now, ev, &out) })
	if err := w.streams(ev, out.List); err != nil {
		return err
	}
	last := uint8(0)
	for _, e := range out.List {
		if err := s.perform(w, e); err != nil {
			return err
		}
		if ev.Kind == relay.Roster && e.Kind == relay.Place {
			if w.of(e.Req).order < last {
				return fmt.Errorf("G9: request %d asks again behind a younger one", e.Req)
			}
			last = w.of(e.Req).order
		}
	}
	return s.check(w, ev)
}

// streams checks that what the gateway hands on is what it has just heard, all of it and once: a
// piece that it dropped may not be followed by another.
func (w *World) streams(ev relay.Event, out []relay.Effect) error {
	forwards := 0
	for _, e := range out {
		if e.Kind == relay.Forward {
			forwards++
			if ev.Kind != relay.Tokens || e.Req != ev.Req || e.Attempt != ev.Attempt || forwards > 1 {
				return fmt.Errorf("STREAM: request %d gets tokens that did not come just now, or twice", e.Req)
			}
		}
	}
	if ev.Kind != relay.Tokens {
		return nil
	}
	r := w.of(ev.Req)
	switch {
	case forwards == 0 && !r.ended && !r.legs[relay.Decode].closed: // else the gateway had given it up
		r.gap = ev.Attempt
	case forwards > 0 && r.gap == ev.Attempt:
		return fmt.Errorf("STREAM: request %d gets tokens behind others that it did not get", ev.Req)
	}
	return nil
}

// now stands still: no core may compare clocks beyond the order of its timers.
const now = time.Second

func (s *System) perform(w *World, e relay.Effect) error {
	if e.Kind == relay.Blame {
		if e.Cause == room.ClientError || e.Cause == room.Cancelled {
			return fmt.Errorf("G7: worker %d is blamed for %s", e.Worker, e.Cause)
		}
		if s.scope.Away > 0 && e.Cause == room.WorkerLost {
			w.suspect(e.Worker)
		}
		return nil
	}
	r := w.of(e.Req)
	switch e.Kind {
	case relay.Place:
		if r.ended || r.placing != 0 || r.got > 0 && !s.scope.Buffered {
			return fmt.Errorf("G5: request %d is placed again too late", e.Req)
		}
		for _, l := range r.legs {
			if l.state != none && (!l.closed && l.state != finished || l.loaded) {
				return fmt.Errorf("G5: request %d is placed while a leg of its last attempt is open", e.Req)
			}
		}
		r.placing, r.excluded, r.innocent = e.Attempt, slices.Clone(e.Exclude), slices.Clone(e.Innocent)
	case relay.Open:
		l := &r.legs[e.Leg]
		*l = leg{state: dialled, worker: e.Worker, loaded: true}
		if !w.alive(e.Worker) {
			l.finish(post{outcome: room.Fail(room.WorkerLost)})
		}
		r.attempt = e.Attempt
	case relay.Close:
		l := &r.legs[e.Leg]
		if l.state == none || l.closed {
			return fmt.Errorf("the %s leg of request %d is closed without being open", e.Leg, e.Req)
		}
		if l.state != finished || s.scope.Echo {
			l.say(post{kind: relay.LegClosed})
		}
		l.closed, l.state = true, finished
	case relay.Forward:
		if r.ended || r.gone {
			return fmt.Errorf("G1: tokens of request %d are forwarded behind its end", e.Req)
		}
		if e.Attempt != r.attempt {
			return fmt.Errorf("STREAM: tokens of an old attempt of request %d are forwarded", e.Req)
		}
		if r.got > 0 && r.of != e.Attempt {
			return fmt.Errorf("STREAM: tokens of two attempts are in the answer of request %d", e.Req)
		}
		r.got, r.of = r.got+1, e.Attempt
	case relay.Discard:
		if !s.scope.Buffered || r.ended || r.got == 0 || r.of != e.Attempt {
			return fmt.Errorf("STREAM: %d pieces of attempt %d of request %d are taken back as of attempt %d", r.got, r.of, e.Req, e.Attempt)
		}
		r.got, r.of, r.anew = 0, 0, true
	case relay.End:
		if r.ended {
			return fmt.Errorf("G1: request %d ends twice, %s after %s", e.Req, e.Outcome, r.outcome)
		}
		r.ended, r.outcome, r.why, r.gap = true, e.Outcome, room.Outcome{}, 0
		if !slices.Contains(s.due, due{e.Req, e.Outcome}) {
			return fmt.Errorf("CAUSE: request %d ends as %s, and the first cause that it may have is %v", e.Req, e.Outcome, s.due)
		}
		if e.Outcome.Cause == room.Cancelled && !r.gone {
			return fmt.Errorf("CAUSE: request %d ends as cancelled, and nobody cancelled it", e.Req)
		}
		if e.Outcome.Kind == room.Success && !e.Finished || !e.Outcome.Ended() {
			return fmt.Errorf("STREAM: request %d ends as %s without a finish reason", e.Req, e.Outcome)
		}
		if e.Outcome.Kind == room.Success && int(r.got) != s.scope.Tokens {
			return fmt.Errorf("STREAM: the answer of request %d has %d pieces of %d", e.Req, r.got, s.scope.Tokens)
		}
		r.placing, r.excluded, r.innocent = 0, nil, nil
		r.looked, r.prefill, r.decode = false, 0, 0
	case relay.Release:
		for i := range r.legs {
			if l := &r.legs[i]; l.worker == e.Worker && l.state != none && l.loaded {
				l.loaded = false
				return nil
			}
		}
		return fmt.Errorf("G4: worker %d is released twice or for nothing", e.Worker)
	}
	return nil
}

// check looks at what has to hold after every step.
func (s *System) check(w *World, ev relay.Event) error {
	for i := range w.requests {
		r := &w.requests[i]
		open, through := 0, 0
		for _, l := range r.legs {
			if l.state != none && !l.closed && l.loaded {
				open++
			}
			if l.state != none && !l.loaded {
				through++
			}
		}
		if r.gone && (!r.ended || open > 0) && r.arrived {
			return fmt.Errorf("G3: the client of request %d left, and %d legs are open", i+1, open)
		}
		if r.ended && open > 0 {
			return fmt.Errorf("G2: request %d has ended as %s, and %d legs are open", i+1, r.outcome, open)
		}
	}
	if ev.Kind == relay.LegEnd && ev.Outcome.Kind != room.Success && ev.Outcome.Cause != room.Cancelled {
		r := w.of(ev.Req)
		peer := &r.legs[ev.Leg.Peer()]
		if r.got == 0 && r.attempt == ev.Attempt && r.placing == 0 && peer.state != none && peer.loaded && !peer.closed {
			return fmt.Errorf("G2: the %s leg of request %d failed, and its peer goes on", ev.Leg, ev.Req)
		}
	}
	running, lonely, overtook, first := 0, uint64(0), uint64(0), relay.View{}
	w.core.Rooms(func(v relay.View) bool {
		switch {
		case v.Phase != relay.Queued:
			running += v.Worth
			if first.Req != 0 {
				overtook = v.Req
			}
		case first.Req == 0:
			first = v
		}
		if r := w.of(v.Req); !s.scope.NoPair && v.Phase == relay.Placing && r.placing == 0 && s.served(w.pair(s, r)) {
			lonely = v.Req
		}
		return true
	})
	if overtook != 0 {
		return fmt.Errorf("G11: request %d runs, and request %d, which is older, waits", overtook, first.Req)
	}
	if first.Req != 0 && running+first.Worth <= s.scope.Limits.MaxRunning {
		return fmt.Errorf("G11: request %d waits for %d rights to run, and %d of %d are taken", first.Req, first.Worth, running, s.scope.Limits.MaxRunning)
	}
	if lonely != 0 {
		return fmt.Errorf("G9: request %d waits for a worker although a pair is there", lonely)
	}
	if running != w.core.Running() || running > s.scope.Limits.MaxRunning {
		return fmt.Errorf("BOUND: %d rights to run are taken, the core counts %d, at most %d may be", running, w.core.Running(), s.scope.Limits.MaxRunning)
	}
	return nil
}
