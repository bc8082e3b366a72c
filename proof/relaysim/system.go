package relaysim

import (
	"fmt"
	"slices"
	"strings"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
	"baton/proof/life"
)

// System explores a scope.
type System struct {
	Log *life.Log // sees what the core moves; nil: nobody looks

	scope Scope
	due   []due // how a request may end in this step
}

// New returns the system of a scope.
func New(sc Scope) *System {
	if sc.Budgets == (relay.Budgets{}) {
		sc.Budgets = relay.Budgets{Queue: 1, Place: 1, Connect: 1, FirstToken: 1, Gap: 1, Total: 1}
	}
	return &System{scope: sc}
}

// Event is one choice of the scheduler.
type Event struct {
	Kind   Kind
	Req    uint8
	Leg    relay.Leg
	Cause  room.Cause
	Said   bool
	Timer  relay.TimerName
	Worker uint8 // place in the fleet
	Sure   bool  // Return: it happens
}

// Kind of choice.
type Kind uint8

const (
	Arrive  Kind = iota
	Look         // placement looks at the roster
	Choose       // placement answers with the pair that it found
	Nobody       // placement answers that nobody is there
	Accept       // a worker accepts its leg
	Work         // a worker goes on: prefill ends, decode brings a piece or its finish reason
	Deliver      // the gateway hears the next thing in a leg's line
	Late         // the gateway hears that a leg of an old attempt is closed
	Fire         // a timer
	Break        // a leg ends with a cause
	Early        // a decode leg ends without a finish reason
	Echo         // a prefill leg ends because decode did: it says cancelled, and may be heard first
	Silence      // a leg does nothing any more
	Leave        // the client is gone
	Sicken       // a worker's health is bad
	Die          // a worker's process ends
	Return       // a worker is well again, or there is another in its place
	Heard        // a worker that was blamed is heard of
	Drain
	Wait // a decode leg says that its room waits for memory
)

var _ explore.System[World, Event] = (*System)(nil)

func (s *System) Init() World          { return s.newWorld() }
func (s *System) Clone(w *World) World { return w.clone() }

// Done: every request has its one outcome, the core has forgotten all, no worker is loaded.
func (s *System) Done(w *World) bool {
	for i := range w.requests {
		r := &w.requests[i]
		if !r.ended || r.late != [2]int32{} || r.legs[0].loaded || r.legs[1].loaded || r.legs[0].posted+r.legs[1].posted > 0 {
			return false
		}
	}
	return w.core.Running() == 0 && w.core.Queue().Len == 0
}

func (s *System) Class(e Event) explore.Class {
	switch e.Kind {
	case Fire:
		return explore.Timer
	case Break, Early, Echo, Silence, Sicken, Die:
		return explore.Fault
	case Nobody:
		if e.Sure { // the roster says so
			return explore.Progress
		}
		return explore.Fault
	case Return:
		if !e.Sure {
			return explore.Environment
		}
	case Leave, Drain, Wait:
		return explore.Environment
	}
	return explore.Progress
}

func (s *System) Events(w *World, dst []Event) []Event {
	for i := range w.requests {
		r, n := &w.requests[i], uint8(i+1)
		if !r.arrived {
			dst = append(dst, Event{Kind: Arrive, Req: n})
			continue
		}
		if s.scope.Gone && !r.gone && !r.ended {
			dst = append(dst, Event{Kind: Leave, Req: n})
		}
		dst = s.placeEvents(w, r, n, dst)
		for l := range r.legs {
			dst = s.legEvents(r, n, relay.Leg(l), dst)
		}
	}
	w.core.Timers(func(t relay.Timer) bool {
		if t.Name != relay.TotalTimer || !s.scope.NoTotal {
			dst = append(dst, Event{Kind: Fire, Req: uint8(t.Req), Timer: t.Name})
		}
		return true
	})
	dst = s.rosterEvents(w, dst)
	if s.scope.Drain && !w.drained {
		dst = append(dst, Event{Kind: Drain})
	}
	return dst
}

// placeEvents are placement's: where the roster changes, looking and answering are two events.
func (s *System) placeEvents(w *World, r *request, n uint8, dst []Event) []Event {
	switch {
	case r.placing == 0:
		return dst
	case s.scope.Away > 0 && !r.looked:
		return append(dst, Event{Kind: Look, Req: n})
	}
	found := s.served(r.prefill, r.decode)
	if s.scope.Away == 0 {
		found = s.served(w.pair(s, r))
	}
	if found {
		dst = append(dst, Event{Kind: Choose, Req: n})
	}
	if !found || s.scope.NoPair {
		dst = append(dst, Event{Kind: Nobody, Req: n, Sure: !found})
	}
	return dst
}

func (s *System) legEvents(r *request, n uint8, at relay.Leg, dst []Event) []Event {
	l := &r.legs[at]
	if r.late[at] != 0 {
		dst = append(dst, Event{Kind: Late, Req: n, Leg: at})
	}
	if l.posted > 0 {
		dst = append(dst, Event{Kind: Deliver, Req: n, Leg: at})
	}
	if l.state != dialled && l.state != working || l.silent {
		return dst
	}
	if l.state == dialled {
		dst = append(dst, Event{Kind: Accept, Req: n, Leg: at})
	} else if at == relay.Prefill || r.legs[relay.Prefill].state == none || r.legs[relay.Prefill].state == finished {
		dst = append(dst, Event{Kind: Work, Req: n, Leg: at})
	}
	for _, c := range s.scope.Causes {
		dst = append(dst, Event{Kind: Break, Req: n, Leg: at, Cause: c})
		if c == room.WorkerLost || c == room.Deadline {
			dst = append(dst, Event{Kind: Break, Req: n, Leg: at, Cause: c, Said: true})
		}
	}
	if len(s.scope.Causes) > 0 && at == relay.Decode && l.state == working {
		dst = append(dst, Event{Kind: Early, Req: n, Leg: at})
	}
	if at == relay.Prefill && r.legs[relay.Decode].failed {
		dst = append(dst, Event{Kind: Echo, Req: n})
	}
	if s.scope.Waits && at == relay.Decode && l.state == working {
		dst = append(dst, Event{Kind: Wait, Req: n, Leg: at})
	}
	if s.scope.Silent {
		dst = append(dst, Event{Kind: Silence, Req: n, Leg: at})
	}
	return dst
}

func (s *System) Apply(w *World, e Event) error {
	switch e.Kind {
	case Drain:
		w.drained = true
		return s.step(w, relay.Event{Kind: relay.Drain})
	case Sicken, Die, Return, Heard:
		return s.applyRoster(w, e)
	}
	id := uint64(e.Req)
	r := w.of(id)
	l := &r.legs[e.Leg]
	switch e.Kind {
	case Arrive:
		r.arrived = true
		for i := range w.requests {
			r.order += flag(w.requests[i].arrived)
		}
		return s.step(w, relay.Event{Kind: relay.Arrive, Req: id, Budgets: s.scope.Budgets, Buffered: s.scope.Buffered, Worth: s.worth(id)})
	case Leave:
		r.gone = true
		return s.step(w, relay.Event{Kind: relay.ClientGone, Req: id})
	case Look:
		r.looked = true
		r.prefill, r.decode = w.pair(s, r)
	case Choose, Nobody:
		return s.answer(w, r, relay.Event{Kind: relay.Pair, Req: id, Attempt: r.placing, OK: e.Kind == Choose, Room: room.ID(id<<8) | room.ID(r.placing)})
	case Fire:
		return s.step(w, relay.Event{Kind: relay.TimerFired, Timer: relay.Timer{Req: id, Name: e.Timer}})
	case Deliver:
		p := l.hear()
		return s.step(w, relay.Event{Kind: p.kind, Req: id, Attempt: r.attempt, Leg: e.Leg, N: 1, Outcome: p.outcome, Finished: p.finished, Said: p.said})
	case Late:
		ev := relay.Event{Kind: relay.LegClosed, Req: id, Attempt: r.late[e.Leg], Leg: e.Leg}
		r.late[e.Leg] = 0
		return s.step(w, ev)
	case Accept:
		l.state = working
		l.say(post{kind: relay.LegOpen})
	case Work:
		s.work(l, e.Leg)
	case Break:
		l.finish(post{outcome: room.Fail(e.Cause), said: e.Said})
	case Early:
		l.finish(post{outcome: room.Done()})
	case Echo:
		l.finish(post{outcome: room.Fail(room.Cancelled), said: true})
	case Silence:
		l.silent = true
	case Wait:
		return s.step(w, relay.Event{Kind: relay.Waits, Req: id, Attempt: r.attempt})
	}
	return nil
}

// answer is placement's word.
func (s *System) answer(w *World, r *request, ev relay.Event) error {
	if s.scope.Away == 0 {
		r.prefill, r.decode = w.pair(s, r)
	}
	if ev.OK {
		ev.Prefill, ev.Decode = r.prefill, r.decode
		r.excluded, r.innocent = nil, nil
	} else { // what it may be served by is kept: it waits, and check looks for it
		ev.Outcome = room.Fail(room.WorkerLost)
		r.waited = true
	}
	r.placing, r.looked, r.prefill, r.decode = 0, false, 0, 0
	for i := range r.legs { // it ended by itself, and was closed: only LegClosed can be left
		if r.legs[i].posted > 0 {
			r.late[i] = r.attempt
		}
	}
	r.legs = [2]leg{}
	return s.step(w, ev)
}

func (l *leg) finish(p post) {
	l.state, l.failed = finished, p.outcome.Kind != room.Success
	p.kind = relay.LegEnd
	l.say(p)
}

func (s *System) work(l *leg, at relay.Leg) {
	if at == relay.Decode && l.pieces < s.scope.Tokens {
		l.pieces++
		l.say(post{kind: relay.Tokens})
		return
	}
	l.finish(post{outcome: room.Done(), finished: at == relay.Decode, said: true})
}

func (s *System) Key(w *World, b []byte) []byte {
	b = w.core.AppendState(b)
	b = append(b, flag(w.drained), byte(w.away))
	for _, x := range w.workers {
		b = append(b, byte(x.id), byte(x.state)|flag(x.suspect)<<4)
	}
	for i := range w.requests {
		r := &w.requests[i]
		b = append(b, flag(r.arrived), r.order, flag(r.gone), flag(r.ended), r.got|flag(r.anew)<<7, byte(r.of), flag(r.waited), byte(r.placing), byte(r.attempt), byte(r.late[0]), byte(r.late[1]))
		b = append(b, flag(r.looked), byte(r.prefill), byte(r.decode), byte(r.why.Cause), byte(r.gap), byte(len(r.excluded)))
		for _, x := range r.excluded {
			b = append(b, byte(x)<<1|flag(slices.Contains(r.innocent, x)))
		}
		for l := range r.legs {
			b = r.legs[l].key(b)
		}
	}
	return b
}

func (l *leg) key(b []byte) []byte {
	b = append(b, '|', byte(l.state), byte(l.worker), byte(l.pieces), flag(l.closed)|flag(l.failed)<<1, flag(l.silent), flag(l.loaded), l.posted)
	for _, p := range l.waiting[:l.posted] {
		b = append(b, byte(p.kind), byte(p.outcome.Kind), byte(p.outcome.Cause), flag(p.finished)|flag(p.said)<<1)
	}
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (s *System) Witnesses() []string {
	return []string{"success", "cancelled", "retry", "second attempt succeeds", "overload", "deadline", "failed while streaming", "crossed close", "late close",
		"waits for a worker", "served after waiting", "nobody came", "served by a next life", "started anew"}
}

func (s *System) Shows(w *World) (seen uint64) {
	for i := range w.requests {
		r := &w.requests[i]
		crossed := false
		for _, l := range r.legs {
			crossed = crossed || l.closed && l.posted > 1
		}
		for i, show := range []bool{
			r.outcome.Kind == room.Success,
			r.outcome.Cause == room.Cancelled,
			r.placing > 1,
			r.outcome.Kind == room.Success && r.attempt > 1,
			r.outcome.Cause == room.Overload,
			r.outcome.Cause == room.Deadline,
			r.outcome.Kind == room.Failed && r.got > 0,
			crossed,
			r.late != [2]int32{},
			r.waited && !r.ended,
			r.waited && r.outcome.Kind == room.Success,
			r.waited && r.outcome.Cause == room.WorkerLost && r.attempt == 0,
			r.outcome.Kind == room.Success && r.legs[relay.Decode].worker >= lifeStep,
			r.anew && r.outcome.Kind == room.Success,
		} {
			if show {
				seen |= 1 << i
			}
		}
	}
	return seen
}

func (s *System) Columns() []string {
	var c []string
	for i := range s.scope.Requests {
		c = append(c, fmt.Sprintf("request %d", i+1), "legs")
	}
	return c
}

func (s *System) Cells(w *World, dst []string) []string {
	for i := range w.requests {
		phase := ""
		w.core.Rooms(func(v relay.View) bool {
			if v.Req == uint64(i+1) {
				phase = fmt.Sprintf("%s#%d", v.Phase, v.Attempt)
			}
			return true
		})
		if r := &w.requests[i]; r.ended {
			phase = strings.TrimSpace(phase + " " + r.outcome.String())
		}
		legs := ""
		for l := range w.requests[i].legs {
			if g := &w.requests[i].legs[l]; g.loaded {
				legs += fmt.Sprintf("%s@%d ", relay.Leg(l), g.worker)
			}
		}
		dst = append(dst, phase, strings.TrimSpace(legs))
	}
	return dst
}

func (s *System) Stuck(w *World) string {
	var what []string
	w.core.Rooms(func(v relay.View) bool {
		what = append(what, fmt.Sprintf("request %d stays in %s and waits for %s", v.Req, v.Phase, v.WaitsFor))
		return true
	})
	return strings.Join(what, "; ")
}

// worth is how many rights to run a request takes.
func (s *System) worth(req uint64) int {
	if req == 2 {
		return s.scope.Many
	}
	return 0
}

func (s *System) Name(w *World, e Event) string {
	leg := fmt.Sprintf("%s leg", e.Leg)
	switch e.Kind {
	case Arrive:
		return fmt.Sprintf("client ──request %d──▶ gateway", e.Req)
	case Look:
		return "placement looks at the roster"
	case Choose:
		return "placement chooses a pair"
	case Nobody:
		return "placement finds nobody"
	case Accept:
		return leg + " is accepted"
	case Work:
		return leg + " goes on"
	case Deliver:
		return fmt.Sprintf("%s ──%s──▶ gateway", leg, w.of(uint64(e.Req)).legs[e.Leg].waiting[0])
	case Late:
		return fmt.Sprintf("%s of attempt %d ──closed──▶ gateway", leg, w.of(uint64(e.Req)).late[e.Leg])
	case Fire:
		return fmt.Sprintf("gateway: %s timer", e.Timer)
	case Break:
		return fmt.Sprintf("%s ends: %s", leg, e.Cause)
	case Early:
		return leg + " ends early"
	case Echo:
		return leg + " ends: cancelled by decode"
	case Silence:
		return leg + " falls silent"
	case Wait:
		return leg + " waits for memory"
	case Leave:
		return "client leaves"
	case Sicken:
		return fmt.Sprintf("worker %d is not healthy", w.workers[e.Worker].id)
	case Die:
		return fmt.Sprintf("WORKER %d DIES", w.workers[e.Worker].id)
	case Return:
		return fmt.Sprintf("the place of worker %d is filled again", w.workers[e.Worker].id)
	case Heard:
		return fmt.Sprintf("the health of worker %d is heard", w.workers[e.Worker].id)
	case Drain:
		return "gateway drains"
	}
	return "?"
}

func (p post) String() string {
	switch p.kind {
	case relay.LegOpen:
		return "accepted"
	case relay.Tokens:
		return "tokens"
	case relay.LegClosed:
		return "closed"
	}
	return fmt.Sprintf("end: %s", p.outcome)
}
