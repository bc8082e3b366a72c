package relaysim

import (
	"slices"
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

// TestWalksOfManyRequests goes random ways through a world that is far too large to explore:
// eight requests, three rights to run, five workers that come and go, every fault.
func TestWalksOfManyRequests(t *testing.T) {
	scope := Scope{
		Requests: 8, Limits: relay.Limits{MaxRunning: 3, MaxQueued: 2, MaxTries: 3, RetryBurst: 3}, Prefills: 2, Decodes: 3, Tokens: 2,
		Causes: slices.DeleteFunc(room.Causes()[1:], func(c room.Cause) bool { return c == room.Cancelled }), Gone: true, Silent: true, Echo: true, Away: 3, Many: 3,
	}
	streams := New(scope)
	scope.Buffered = true
	buffered := New(scope)
	events := 0
	for seed := range uint64(5000) {
		sys := streams
		if seed%2 == 1 {
			sys = buffered
		}
		r := explore.Walk(sys, explore.TERM, seed, 150)
		events += r.Transitions
		if r.Broken != "" {
			t.Fatalf("%s does not hold: %s\n%s", r.Broken, r.Reason, r.Chart)
		}
	}
	if events < 100_000 {
		t.Errorf("only %d events in all walks", events)
	}
}
