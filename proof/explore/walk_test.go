package explore

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestWalkFindsNothingElse: a walk may miss what is wrong, but it never finds what is not.
func TestWalkFindsNothingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	found, missed := 0, 0
	for i := range 250 {
		g := randomGraph(r)
		want, got := Run(g, Options{Ask: TERM}), Walk(g, TERM, uint64(i), 30)
		switch {
		case got.Broken == "" && want.Broken == "":
		case got.Broken == "":
			missed++
		case want.Broken == "":
			t.Fatalf("graph %d holds, the walk says %s\n%s", i, got.Reason, got.Chart)
		case want.Broken == "SAFETY" && got.Broken == "SAFETY" && len(got.Trace) < len(want.Trace):
			t.Fatalf("graph %d: a way of %d events, the shortest has %d", i, len(got.Trace), len(want.Trace))
		default:
			found++
		}
	}
	if found < 60 || missed > found/2 {
		t.Errorf("%d found, %d missed", found, missed)
	}
}

// TestWalkIsItsSeed: the same seed goes the same way, another one another way.
func TestWalkIsItsSeed(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for {
		g := randomGraph(r)
		one := Walk(g, TERM, 1, 30)
		if one.Broken == "" {
			continue
		}
		if again := Walk(g, TERM, 1, 30); one.Chart != again.Chart || one.Reason != again.Reason {
			t.Fatalf("seed 1 went two ways:\n%s\n%s", one.Chart, again.Chart)
		}
		return
	}
}

// lamps are switched on one by one; a lamp that is switched on twice is broken for ever.
type lamps struct{ counter }

type lit struct {
	lamp  int
	again bool
}

func (l lamps) Events(s *uint32, dst []lit) []lit {
	for b := range l.bits {
		dst = append(dst, lit{b, *s>>b&1 == 1})
	}
	return dst
}
func (l lamps) Apply(s *uint32, e lit) error {
	if e.again && e.lamp == 7 {
		return fmt.Errorf("lamp %d is broken", e.lamp)
	}
	*s |= 1 << e.lamp
	return nil
}
func (l lamps) Class(e lit) Class {
	if e.again {
		return Fault
	}
	return Progress
}
func (l lamps) Name(_ *uint32, e lit) string { return fmt.Sprint(e.lamp) }

// TestShrinkKeepsOnlyWhatItTakes: of a hundred events two are left.
func TestShrinkKeepsOnlyWhatItTakes(t *testing.T) {
	for seed := range uint64(20) {
		r := Walk(lamps{counter{bits: 16}}, TERM, seed, 1000)
		if r.Broken != "SAFETY" || len(r.Trace) != 2 {
			t.Fatalf("seed %d: %s after %v, want lamp 7 twice", seed, r.Reason, r.Trace)
		}
	}
}

// TestScheduleGoesWhereTheBytesSay: the same bytes go the same way, some bytes find what is
// wrong, and zeros, which are a quiet day, never break lamps.
func TestScheduleGoesWhereTheBytesSay(t *testing.T) {
	sys := lamps{counter{bits: 16}}
	if r := Schedule(sys, TERM, make([]byte, 100)); r.Err() != nil {
		t.Errorf("a quiet day: %v", r.Err())
	}
	choices := make([]byte, 300)
	for i := range choices { // the seventh of all lamps, again and again
		choices[i] = 192 + 7
	}
	r := Schedule(sys, TERM, choices)
	if again := Schedule(sys, TERM, choices); r.Broken != "SAFETY" || len(r.Trace) != 2 || again.Chart != r.Chart {
		t.Errorf("%s after %v, then\n%s", r.Reason, r.Trace, again.Chart)
	}
}
