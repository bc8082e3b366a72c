package sim

import (
	"flag"
	"testing"

	"baton/proof/corpus"
	"baton/proof/explore"
)

var rewrite = flag.Bool("rewrite", false, "look for new seeds of FuzzSchedule")

// schedules are what a fuzzer may schedule: the crowded world, and what is asked of it.
func schedules() []Named {
	with := func(f func(*Scope)) Scope { sc := Crowd(); f(&sc); return sc }
	steady := func(sc *Scope) { sc.CrashP, sc.CrashD = 0, 0 }
	heard := func(sc *Scope) { sc.Lose, sc.Tied, sc.Forget = false, true, 0 } // nothing breaks that nobody hears of
	local := func(sc *Scope) { sc.Local, sc.BlocksP, sc.CrashP, sc.Breaks, sc.Silent = true, 1, 0, 0, false }
	kept := func(sc *Scope) { sc.Keys, sc.KnownD, sc.KnownP = true, 1, 1 }
	term, prompt := explore.Options{Ask: explore.TERM}, explore.Options{Ask: explore.PROMPT}
	return []Named{
		{Name: "TERM", Scope: Crowd(), Options: term},
		{Name: "TERM steady", Scope: with(steady), Options: term},
		{Name: "PROMPT", Scope: with(heard), Options: prompt},
		{Name: "PROMPT steady", Scope: with(func(sc *Scope) { steady(sc); heard(sc) }), Options: prompt},
		{Name: "TERM found", Scope: with(kept), Options: term},
		{Name: "PROMPT found", Scope: with(func(sc *Scope) { kept(sc); heard(sc) }), Options: prompt},
		{Name: "TERM unified", Scope: with(local), Options: term},
	}
}

// watched says what happens in a world.
type watched struct {
	*System
	saw func(string)
}

func (x watched) Apply(w *world, e Event) error {
	err := x.System.Apply(w, e)
	x.saw(sightOf(e.Kind))
	for i, name := range x.Witnesses() {
		if w.shows>>i&1 == 1 {
			x.saw(name)
		}
	}
	return err
}

// sightOf names a kind of event that a seed leads to; what needs a message is named after it.
func sightOf(k Kind) string {
	if name := kindTable[k].name; name != "" {
		return name
	}
	return map[Kind]string{deliver: "a message", arrive: "a chunk", twice: "a message twice", lose: "a message lost"}[k]
}

// choicesMax keeps one input short; everybody has ended long before.
const choicesMax = 400

func play(scope uint8, choices []byte, saw func(string)) error {
	all := schedules()
	one := all[int(scope)%len(all)]
	r := explore.Schedule(watched{New(one.Scope), saw}, one.Options.Ask, choices[:min(len(choices), choicesMax)])
	return r.Err()
}

// FuzzSchedule lets the fuzzer be the scheduler of the two real cores and the network between
// them: its bytes choose among the events that are possible, and a quiet end follows.
func FuzzSchedule(f *testing.F) {
	corpus.Fuzz(f, play)
}

// TestSeedsShowAllThatMayHappen: the committed seeds lead to every kind of event and to
// everything that has a name, so that the fuzzer begins where it is interesting.
func TestSeedsShowAllThatMayHappen(t *testing.T) {
	s := corpus.Seeds{Dir: "testdata/fuzz/FuzzSchedule", Scopes: len(schedules()), Wanted: (&System{}).Witnesses(), Play: play}
	for k := range kinds {
		s.Wanted = append(s.Wanted, sightOf(k))
	}
	s.Check(t, *rewrite)
}
