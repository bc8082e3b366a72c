package relay

import (
	"fmt"
	"strings"
	"testing"

	"baton/core/room"
)

func arrive(req uint64) Event {
	return Event{Kind: Arrive, Req: req, Budgets: Budgets{Queue: 1, Place: 1, Connect: 1, FirstToken: 1, Gap: 1, Total: 2}}
}

func paired(attempt int32) Event {
	return Event{Kind: Pair, Req: 1, Attempt: attempt, OK: true, Room: room.ID(attempt), Prefill: 2 * attempt, Decode: 10 + attempt}
}

func of(k EventKind, attempt int32, l Leg) Event {
	return Event{Kind: k, Req: 1, Attempt: attempt, Leg: l, N: 1, Outcome: room.Fail(room.Overload)}
}

// ways leads request 1 into each phase. Request 9 has the only right to run where it is to queue.
var ways = [phases][]Event{
	Queued:     {arrive(9), arrive(1)},
	Placing:    {arrive(1)},
	Connecting: {arrive(1), paired(1)},
	Prefilling: {arrive(1), paired(1), of(LegOpen, 1, Prefill), of(LegOpen, 1, Decode)},
	Streaming:  {arrive(1), paired(1), of(LegOpen, 1, Prefill), of(Tokens, 1, Decode)},
	Retrying:   {arrive(1), paired(1), of(LegEnd, 1, Prefill)},
	Closing:    {arrive(1), paired(1), {Kind: ClientGone, Req: 1}},
}

// inPhase returns a gateway's core in which request 1 is in phase p, and an account of it.
func inPhase(t *testing.T, p Phase) *ledger {
	t.Helper()
	c := New(Limits{MaxRunning: 1, MaxQueued: 2, MaxTries: 3, RetryBurst: 4})
	w := &ledger{t: t, core: c, ends: map[uint64]int{}, load: map[int32]int{}, answer: map[uint64]int32{}}
	for _, ev := range ways[p] {
		w.step(ev)
	}
	if r := c.byID[1]; r == nil || r.phase != p {
		t.Fatalf("the way to %s leads to %+v", p, r)
	}
	return w
}

// TestEveryPhaseTakesEveryEvent steps every event in every phase, of the right and of wrong
// attempts, legs and timers. It either is taken, and then everything can still be brought to its
// end, or is an assertion about a driver that says what it must not.
func TestEveryPhaseTakesEveryEvent(t *testing.T) {
	all := []Event{
		arrive(1), arrive(3), {Kind: Pair, Req: 1, Attempt: 1, OK: true}, {Kind: Pair, Req: 1, Attempt: 1, Outcome: room.Fail(room.WorkerLost)},
		{Kind: Pair, Req: 3, Attempt: 1, OK: true, Room: 3, Decode: 5}, {Kind: ClientGone, Req: 1}, {Kind: ClientGone, Req: 3},
		{Kind: Drain}, {Kind: Roster, Worker: 2}, {Kind: Roster, Worker: 77}, {Kind: TimerFired, Timer: Timer{Req: 3}},
		{Kind: LegEnd, Req: 1, Attempt: 1, Leg: Decode, Outcome: room.Done(), Finished: true, Said: true}, {Kind: LegEnd, Req: 1, Attempt: 1, Leg: Decode, Outcome: room.Done()},
		{Kind: LegEnd, Req: 1, Attempt: 1, Leg: Prefill, Outcome: room.Done(), Said: true}, {Kind: LegEnd, Req: 1, Attempt: 1, Leg: Prefill}, {Kind: LegOpen, Req: 1, Attempt: 1, Leg: legs},
	}
	for attempt := range int32(3) {
		all = append(all, paired(attempt))
		for l := range legs {
			for _, k := range []EventKind{LegOpen, Tokens, Waits, LegEnd, LegClosed} {
				all = append(all, of(k, attempt, l))
			}
		}
	}
	for _, c := range room.Causes()[1:] {
		for l := range legs {
			for _, said := range []bool{false, true} {
				all = append(all, Event{Kind: LegEnd, Req: 1, Attempt: 1, Leg: l, Outcome: room.Fail(c), Said: said})
			}
		}
	}
	for name := range timerNames + 1 {
		all = append(all, Event{Kind: TimerFired, Timer: Timer{Req: 1, Name: name}})
	}
	kinds := map[EventKind]bool{}
	for p := range phases {
		for _, ev := range all {
			kinds[ev.Kind] = true
			w := inPhase(t, p)
			what := fmt.Sprintf("%+v in %s", ev, p)
			if ev.Kind == Arrive && ev.Req != 1 {
				w.others = append(w.others, ev.Req)
			}
			if said := w.tries(ev); said != "" {
				// A request that arrives twice, a pair without a worker or without a room.
				if ev.Kind != Arrive && ev.Kind != Pair || !strings.Contains(said, "impossible in room") {
					t.Errorf("%s: %s", what, said)
				}
				continue
			}
			w.over(what)
		}
	}
	if len(kinds) != int(eventKinds) {
		t.Errorf("%d kinds of events were tried, there are %d", len(kinds), eventKinds)
	}
}

// tries steps one event and returns what a panic said.
func (w *ledger) tries(ev Event) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	w.step(ev)
	return ""
}

// over has the client of every request leave, does what the driver owes, and looks whether
// anything is left: each request has ended once, no worker has a load, no timer runs.
func (w *ledger) over(what string) {
	for range 2 { // whoever waited begins when the first are gone
		for _, req := range append([]uint64{1, 9}, w.others...) {
			w.step(Event{Kind: ClientGone, Req: req})
		}
		for _, e := range w.opened {
			w.step(Event{Kind: LegClosed, Req: e.Req, Attempt: e.Attempt, Leg: e.Leg})
		}
	}
	if len(w.core.byID) != 0 || w.core.all.Len() != 0 || w.core.waiting.Len() != 0 || w.core.running != 0 || len(w.core.due) != 0 {
		w.t.Errorf("after %s: %d requests, %d in a row, %d waiting, %d running, %d with timers", what,
			len(w.core.byID), w.core.all.Len(), w.core.waiting.Len(), w.core.running, len(w.core.due))
	}
	for worker, n := range w.load {
		if n != 0 {
			w.t.Errorf("after %s: worker %d keeps a load of %d", what, worker, n)
		}
	}
	for req, n := range w.ends {
		if n != 1 {
			w.t.Errorf("after %s: request %d has %d ends", what, req, n)
		}
	}
	if w.ends[1] != 1 {
		w.t.Errorf("after %s: request 1 has %d ends", what, w.ends[1])
	}
}
