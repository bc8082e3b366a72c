package relay

import (
	"bytes"
	"testing"
	"time"

	"baton/core/room"
)

// FuzzEvents feeds events that no driver would send in this order. The core may not panic as
// long as requests arrive once and pairs are whole; every request ends at most once, every
// Open is released at most once, no answer is of two attempts, and when all legs are over and all timers have fired,
// nothing is left.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0, 1, 8, 1, 16, 1, 24, 1, 32, 1})
	f.Add([]byte{0, 0, 1, 0, 3, 0, 12, 0, 4, 0, 5, 0, 9, 0})
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := New(Limits{MaxRunning: 2, MaxQueued: 2, MaxTries: 3, RetryBurst: 4})
		w := ledger{t: t, core: c, ends: map[uint64]int{}, load: map[int32]int{}, answer: map[uint64]int32{}}
		for len(choices) >= 2 {
			w.choose(choices[0], choices[1])
			choices = choices[2:]
		}
		w.finish()
	})
}

// ledger counts what the core asked for.
type ledger struct {
	t       *testing.T
	core    *Core
	now     time.Duration
	arrived uint64
	ends    map[uint64]int
	load    map[int32]int
	answer  map[uint64]int32 // attempt that the answer is of, so far
	opened  []Effect
	others  []uint64 // requests that a test adds
}

func (w *ledger) step(ev Event) {
	before := w.core.AppendState(nil)
	twin := w.core.Clone()
	var out, again Effects
	w.core.Step(w.now, ev, &out)
	if !bytes.Equal(before, twin.AppendState(nil)) {
		w.t.Fatal("a step of the core changed its clone")
	}
	twin.Step(w.now, ev, &again)
	if !bytes.Equal(w.core.AppendState(nil), twin.AppendState(nil)) || len(out.List) != len(again.List) {
		w.t.Fatal("core and clone differ after the same event")
	}
	for _, e := range out.List {
		switch e.Kind {
		case End:
			w.ends[e.Req]++
			if w.ends[e.Req] > 1 {
				w.t.Fatalf("request %d ends twice", e.Req)
			}
		case Open:
			w.load[e.Worker]++
			w.opened = append(w.opened, e)
		case Release:
			w.load[e.Worker]--
			if w.load[e.Worker] < 0 {
				w.t.Fatalf("worker %d is released twice", e.Worker)
			}
		case Forward:
			if w.ends[e.Req] > 0 {
				w.t.Fatalf("request %d is forwarded behind its end", e.Req)
			}
			if of := w.answer[e.Req]; of != 0 && of != e.Attempt {
				w.t.Fatalf("the answer of request %d is of attempts %d and %d", e.Req, of, e.Attempt)
			}
			w.answer[e.Req] = e.Attempt
		case Discard:
			if w.answer[e.Req] != e.Attempt {
				w.t.Fatalf("attempt %d of request %d is taken back, and the answer is of %d", e.Attempt, e.Req, w.answer[e.Req])
			}
			delete(w.answer, e.Req)
		}
	}
	if n := w.core.Running(); n < 0 || n > 2 {
		w.t.Fatalf("%d requests run", n)
	}
}

func (w *ledger) choose(a, b byte) {
	req := uint64(b&7) + 1
	leg, attempt := Leg(b>>3&1), int32(b>>4&3)+1
	switch EventKind(a % byte(eventKinds)) {
	case Arrive:
		w.arrived++
		w.step(Event{Kind: Arrive, Req: w.arrived, Buffered: b&2 != 0, Worth: int(b >> 2 & 3), Budgets: Budgets{Queue: 1, Place: 1, Connect: time.Duration(b & 1), Gap: 1, Total: 2}})
	case Pair:
		p := int32(b >> 6)
		if p == 3 {
			p = NoWorker
		}
		w.step(Event{Kind: Pair, Req: req, Attempt: attempt, OK: a&64 == 0, Room: room.ID(req), Prefill: p, Decode: 4 + int32(b>>3&1)})
	case LegOpen:
		w.step(Event{Kind: LegOpen, Req: req, Attempt: attempt, Leg: leg})
	case Tokens:
		w.step(Event{Kind: Tokens, Req: req, Attempt: attempt, N: 1})
	case Waits:
		w.step(Event{Kind: Waits, Req: req, Attempt: attempt})
	case LegEnd:
		all := room.Causes()
		o := room.Done()
		if cause := all[int(a>>4)%len(all)]; cause != room.NoCause {
			o = room.Fail(cause)
		}
		w.step(Event{Kind: LegEnd, Req: req, Attempt: attempt, Leg: leg, Outcome: o, Finished: b&64 != 0, Said: b&128 != 0})
	case LegClosed:
		w.step(Event{Kind: LegClosed, Req: req, Attempt: attempt, Leg: leg})
	case ClientGone:
		w.step(Event{Kind: ClientGone, Req: req})
	case TimerFired:
		w.now++
		w.step(Event{Kind: TimerFired, Timer: Timer{req, TimerName(a >> 4)}})
	case Drain:
		w.step(Event{Kind: Drain})
	case Roster:
		w.step(Event{Kind: Roster, Worker: int32(b & 7)})
	}
}

// finish does what the driver owes, then lets every timer fire.
func (w *ledger) finish() {
	for range 100 {
		at, timer, ok := w.core.NextTimer()
		if ok {
			w.now = max(w.now, at)
			w.step(Event{Kind: TimerFired, Timer: timer})
		}
		for _, e := range w.opened {
			w.step(Event{Kind: LegClosed, Req: e.Req, Attempt: e.Attempt, Leg: e.Leg})
		}
	}
	if _, timer, ok := w.core.NextTimer(); ok {
		w.t.Fatalf("%s timer of request %d never stops firing", timer.Name, timer.Req)
	}
	if w.core.Running() != 0 || w.core.Queue().Len != 0 {
		w.t.Fatalf("%d requests run and %d wait when all is over", w.core.Running(), w.core.Queue().Len)
	}
	for worker, n := range w.load {
		if n != 0 {
			w.t.Fatalf("worker %d keeps a load of %d", worker, n)
		}
	}
	for req := range w.arrived {
		if w.ends[req+1] != 1 {
			w.t.Fatalf("request %d has %d ends", req+1, w.ends[req+1])
		}
	}
}
