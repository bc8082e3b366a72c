package schedsim

import (
	"flag"
	"testing"

	"baton/proof/corpus"
	"baton/proof/explore"
)

var rewrite = flag.Bool("rewrite", false, "look for new seeds of FuzzSchedule")

// schedules are what a fuzzer may schedule: crowds with room for few of them, and what is asked.
func schedules() []Named {
	with := func(f func(*Scope)) Scope {
		sc := Crowd()
		sc.Rooms = append([]Room(nil), sc.Rooms...)
		f(&sc)
		return sc
	}
	ends := func(sc *Scope) { sc.Rooms[2].Endless = false } // then order is judged too
	one := func(sc *Scope) { ends(sc); sc.Ahead = 1 }
	steady := func(sc *Scope) {
		one(sc)
		sc.Abort, sc.Early, sc.StepFails, sc.BegunFails, sc.Breaks = false, false, false, false, 0
	}
	term, prompt := explore.Options{Ask: explore.TERM}, explore.Options{Ask: explore.PROMPT}
	return []Named{
		{Name: "TERM", Scope: Crowd(), Options: term}, {Name: "TERM that ends", Scope: with(ends), Options: term},
		{Name: "PROMPT, a token ahead", Scope: with(one), Options: prompt}, {Name: "PROMPT steady", Scope: with(steady), Options: prompt},
	}
}

// watched says what happens in a world.
type watched struct {
	*System
	saw func(string)
}

func (x watched) Apply(w *World, e Event) error {
	err := x.System.Apply(w, e)
	x.saw(kindTable[e.Kind].name)
	for i, name := range x.Witnesses() {
		if w.shows>>i&1 == 1 {
			x.saw(name)
		}
	}
	return err
}

// choicesMax keeps one input short.
const choicesMax = 400

func play(scope uint8, choices []byte, saw func(string)) error {
	all := schedules()
	one := all[int(scope)%len(all)]
	r := explore.Schedule(watched{New(one.Scope), saw}, one.Options.Ask, choices[:min(len(choices), choicesMax)])
	return r.Err()
}

// FuzzSchedule lets the fuzzer be clients, the link, the engine and the clock of a decode worker
// that has blocks for few of its rooms.
func FuzzSchedule(f *testing.F) {
	corpus.Fuzz(f, play)
}

// TestSeedsShowAllThatMayHappen: the committed seeds lead to every kind of event and to
// everything that has a name, so that the fuzzer begins where it is interesting.
func TestSeedsShowAllThatMayHappen(t *testing.T) {
	s := corpus.Seeds{Dir: "testdata/fuzz/FuzzSchedule", Scopes: len(schedules()), Wanted: (&System{}).Witnesses(), Play: play}
	for k := range kinds {
		s.Wanted = append(s.Wanted, kindTable[k].name)
	}
	s.Check(t, *rewrite)
}
