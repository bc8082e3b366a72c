package cluster

import (
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

// scope is what a small fleet is in a bad minute.
func scope() Scope {
	return Scope{
		Requests: 6, Prefills: 2, Decodes: 2, MaxNew: 3, Blocks: 6, Limits: relay.Limits{MaxRunning: 4, MaxQueued: 8, MaxTries: 3, RetryBurst: 8},
		Faults: Faults{Leaves: 2, Crashes: 1, Breaks: 2, Refuses: 2, Steps: 2},
	}
}

// walks is a number of seeds that takes a second or two.
const walks = 6000

func walk(t *testing.T, sys explore.Path[World, Event], ask explore.Question) {
	t.Helper()
	events := 0
	for seed := range uint64(walks) {
		r := explore.Walk(sys, ask, seed, 400)
		events += r.Transitions
		if r.Broken != "" {
			t.Fatalf("%s does not hold: %s\n%s", r.Broken, r.Reason, r.Chart)
		}
	}
	t.Logf("%d walks, %d events before the quiet half", walks, events)
}

// TestClusterEnds: whatever breaks and whichever timer fires, everything ends.
func TestClusterEnds(t *testing.T) { walk(t, New(scope()), explore.TERM) }

// TestClusterNeedsNoTimer: workers crash and are restarted, links break, clients leave, and yet no request waits
// for a timer: the gateway and the workers notice everything between them.
func TestClusterNeedsNoTimer(t *testing.T) {
	sc := scope()
	sc.Back = true
	walk(t, New(sc), explore.PROMPT)
}

// TestClusterTakesBack: answers that are given in one piece are of one attempt, also when several
// were begun.
func TestClusterTakesBack(t *testing.T) {
	sc := scope()
	sc.Back, sc.Whole, sc.Faults.Steps = true, sc.Requests, 4
	seen := discards{New(sc), new(int)}
	for _, ask := range []explore.Question{explore.PROMPT, explore.TERM} {
		for seed := range uint64(walks / 4) {
			if r := explore.Walk(seen, ask, seed, 400); r.Broken != "" {
				t.Fatalf("%s does not hold: %s\n%s", r.Broken, r.Reason, r.Chart)
			}
		}
	}
	if *seen.n == 0 {
		t.Fatal("no answer was ever taken back")
	}
}

// discards counts the answers that were taken back.
type discards struct {
	*System
	n *int
}

func (x discards) Apply(w *World, e Event) error {
	before := w.discards
	err := x.System.Apply(w, e)
	*x.n += w.discards - before
	return err
}

// TestClusterServes: where nothing breaks, every request is served. Without it the walks above
// could be about clusters that refuse everything.
func TestClusterServes(t *testing.T) {
	sc := scope()
	sc.Faults = Faults{}
	for seed := range uint64(200) {
		r := explore.Walk(served{New(sc)}, explore.PROMPT, seed, 200)
		if r.Broken != "" {
			t.Fatalf("%s does not hold: %s\n%s", r.Broken, r.Reason, r.Chart)
		}
	}
}

// served is a cluster that is done only if all outcomes are successes.
type served struct{ *System }

func (s served) Done(w *World) bool {
	for i := range w.requests {
		if w.requests[i].outcome.Kind != room.Success {
			return false
		}
	}
	return s.System.Done(w)
}
