package relaysim

import (
	flags "flag"
	"slices"
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/corpus"
	"baton/proof/explore"
)

var rewrite = flags.Bool("rewrite", false, "look for new seeds of FuzzSchedule")

// schedules are what a fuzzer may schedule: four requests, two rights to run, five workers that
// come and go; and what is asked.
func schedules() []Named {
	all := Scope{
		Requests: 4, Limits: relay.Limits{MaxRunning: 2, MaxQueued: 1, MaxTries: 3, RetryBurst: 3}, Prefills: 2, Decodes: 3, Tokens: 2,
		Causes: slices.DeleteFunc(room.Causes()[1:], func(c room.Cause) bool { return c == room.Cancelled }),
		Gone:   true, Silent: true, Waits: true, Echo: true, Drain: true, NoPair: true, Away: 3,
	}
	with := func(f func(*Scope)) Scope { sc := all; f(&sc); return sc }
	heard := func(sc *Scope) { sc.Silent, sc.NoPair, sc.Back = false, false, true } // nothing breaks that nobody hears of
	term, prompt := explore.Options{Ask: explore.TERM}, explore.Options{Ask: explore.PROMPT}
	return []Named{
		{Name: "TERM", Scope: all, Options: term},
		{Name: "TERM buffered", Scope: with(func(sc *Scope) { sc.Buffered = true }), Options: term},
		{Name: "PROMPT", Scope: with(heard), Options: prompt},
		{Name: "PROMPT buffered", Scope: with(func(sc *Scope) { heard(sc); sc.Buffered = true }), Options: prompt},
		{Name: "TERM unified", Scope: with(func(sc *Scope) { sc.Prefills, sc.Decodes = 0, 2 }), Options: term},
	}
}

// watched says what happens in a world.
type watched struct {
	*System
	saw func(string)
}

// sights are the kinds of choices that a seed has to lead to, beside what the world shows.
var sights = [...]string{
	Arrive: "a request", Look: "placement looks", Choose: "a pair", Nobody: "no pair", Accept: "a leg accepted", Work: "a leg goes on",
	Deliver: "a leg heard", Late: "a late close", Fire: "a timer", Break: "a leg broken", Early: "a leg that ends early", Echo: "an echo",
	Silence: "a silent leg", Leave: "a client leaves", Sicken: "a worker ill", Die: "a worker dies", Return: "a worker back",
	Heard: "a blamed worker heard of", Drain: "a drain", Wait: "a leg that waits",
}

func (x watched) Apply(w *World, e Event) error {
	err := x.System.Apply(w, e)
	x.saw(sights[e.Kind])
	seen := x.Shows(w)
	for i, name := range x.Witnesses() {
		if seen>>i&1 == 1 {
			x.saw(name)
		}
	}
	return err
}

// choicesMax keeps one input short; everybody has ended long before.
const choicesMax = 400

func play(scope uint8, choices []byte, saw func(string)) error {
	all := schedules()
	one := all[int(scope)%len(all)]
	r := explore.Schedule(watched{New(one.Scope), saw}, one.Options.Ask, choices[:min(len(choices), choicesMax)])
	return r.Err()
}

// FuzzSchedule lets the fuzzer be clients, placement, workers and the clock of the gateway's
// core: its bytes choose among the events that are possible, and a quiet end follows.
func FuzzSchedule(f *testing.F) {
	corpus.Fuzz(f, play)
}

// TestSeedsShowAllThatMayHappen: the committed seeds lead to every kind of event and to
// everything that has a name, so that the fuzzer begins where it is interesting.
func TestSeedsShowAllThatMayHappen(t *testing.T) {
	corpus.Seeds{Dir: "testdata/fuzz/FuzzSchedule", Scopes: len(schedules()), Wanted: append((&System{}).Witnesses(), sights[:]...), Play: play}.Check(t, *rewrite)
}
