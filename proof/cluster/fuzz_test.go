package cluster

import (
	"flag"
	"strings"
	"testing"

	"baton/core/room"
	"baton/proof/corpus"
	"baton/proof/explore"
)

var rewrite = flag.Bool("rewrite", false, "look for new seeds of FuzzSchedule")

// questions are what a fuzzer is asked about one cluster.
var questions = []explore.Question{explore.TERM, explore.PROMPT}

// watched says what happens in a cluster.
type watched struct {
	*System
	saw func(string)
}

// outcomes that a seed has to lead to, beside every kind of event.
var outcomes = []string{"success", "success of a second attempt", "failed", "cancelled", "failed while streaming"}

func (x watched) Apply(w *World, e Event) error {
	err := x.System.Apply(w, e)
	x.saw(sightOf(e.Kind))
	for i := range w.requests {
		r := &w.requests[i]
		for k, shown := range []bool{
			r.outcome.Kind == room.Success,
			r.outcome.Kind == room.Success && r.attempt > 1,
			r.outcome.Kind == room.Failed,
			r.outcome.Cause == room.Cancelled,
			r.outcome.Kind == room.Failed && r.forwarded > 0,
		} {
			if shown {
				x.saw(outcomes[k])
			}
		}
	}
	return err
}

func sightOf(k Kind) string { return strings.ReplaceAll(kindTable[k].name, "%d", "N") }

// choicesMax keeps one input short; everybody has ended long before.
const choicesMax = 600

func play(scope uint8, choices []byte, saw func(string)) error {
	ask, sc := questions[int(scope)%len(questions)], crowd()
	sc.Back = ask == explore.PROMPT
	r := explore.Schedule(watched{New(sc), saw}, ask, choices[:min(len(choices), choicesMax)])
	return r.Err()
}

func crowd() Scope {
	sc := scope()
	sc.Requests = 4
	return sc
}

// FuzzSchedule lets the fuzzer be everything around the cores of a gateway and four workers: its
// bytes choose among the events that are possible, and a quiet end follows.
func FuzzSchedule(f *testing.F) {
	corpus.Fuzz(f, play)
}

// TestSeedsShowAllThatMayHappen: the committed seeds lead to every kind of event and of end, so
// that the fuzzer begins where it is interesting.
func TestSeedsShowAllThatMayHappen(t *testing.T) {
	s := corpus.Seeds{Dir: "testdata/fuzz/FuzzSchedule", Scopes: len(questions), Wanted: outcomes, Play: play}
	for k := range kinds {
		s.Wanted = append(s.Wanted, sightOf(k))
	}
	s.Check(t, *rewrite)
}
