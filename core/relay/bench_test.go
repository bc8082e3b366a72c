package relay

import (
	"testing"
	"time"

	"baton/core/room"
)

// BenchmarkRequest is one whole request of a hundred pieces among a thousand that stream.
func BenchmarkRequest(b *testing.B) {
	c := New(Limits{})
	budgets := Budgets{Queue: time.Second, Connect: time.Second, FirstToken: time.Minute, Gap: time.Minute, Total: time.Hour}
	var out Effects
	step := func(ev Event) {
		out.Reset()
		c.Step(time.Second, ev, &out)
	}
	start := func(req uint64) {
		step(Event{Kind: Arrive, Req: req, Budgets: budgets})
		step(Event{Kind: Pair, Req: req, Attempt: 1, OK: true, Room: room.ID(req), Prefill: 0, Decode: 1})
		step(Event{Kind: LegOpen, Req: req, Attempt: 1, Leg: Prefill})
		step(Event{Kind: LegOpen, Req: req, Attempt: 1, Leg: Decode})
		step(Event{Kind: LegEnd, Req: req, Attempt: 1, Leg: Prefill, Outcome: room.Done()})
	}
	req := uint64(0)
	for range 1000 {
		req++
		start(req)
	}
	b.ReportAllocs()
	for b.Loop() {
		req++
		start(req)
		for range 100 {
			step(Event{Kind: Tokens, Req: req, Attempt: 1, N: 1})
		}
		step(Event{Kind: LegEnd, Req: req, Attempt: 1, Leg: Decode, Outcome: room.Done(), Finished: true})
	}
}
