package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Walk goes one random way through a system that is too large to explore: first anything may
// happen, for that many events, then nothing breaks any more and everything has to end. The
// same seed goes the same way. If something is wrong, the way is made as short as possible
// before it is drawn, and Report.Trace has what is left.
//
// It is evidence, not proof: what a walk does not meet may still be there.
//
// In a walk that asks PROMPT no timer fires; every other one asks TERM.
func Walk[S any, E comparable](sys Path[S, E], ask Question, seed uint64, events int) Report {
	w := newWalker(sys, ask)
	r := rand.New(rand.NewPCG(seed, 0))
	return w.report(events, func(_ int, possible []E) E { return w.draw(r, possible) }, fmt.Sprintf("seed %d, ", seed))
}

func newWalker[S any, E comparable](sys Path[S, E], ask Question) walker[S, E] {
	if ask != PROMPT {
		ask = TERM
	}
	return walker[S, E]{sys: sys, ask: ask}
}

// report goes the way that next chooses, for at most that many events, finishes, and says what
// was wrong. from says where the choices came from.
func (w walker[S, E]) report(events int, next func(n int, possible []E) E, from string) Report {
	s := w.sys.Init()
	var choices, possible []E
	broken := ""
	for n := range events {
		if possible = w.possible(&s, possible); len(possible) == 0 {
			break
		}
		e := next(n, possible)
		choices = append(choices, e)
		if err := attempt(w.sys, &s, e); err != nil {
			broken = "SAFETY"
			break
		}
	}
	if broken == "" {
		_, broken, _ = w.finish(&s)
	}
	report := Report{Transitions: len(choices)}
	if broken == "" {
		report.Done = 1
		return report
	}
	trace := w.shrink(choices, broken)
	trace, broken, reason := w.play(trace) // what the shortened walk breaks, which is the same kind
	report.Broken = broken
	report.Reason = fmt.Sprintf("%s (%s%d events of %d)", reason, from, len(trace), len(choices))
	report.Trace, report.Chart = draw(w.sys, trace, report.Broken+": "+reason)
	return report
}

type walker[S any, E comparable] struct {
	sys Path[S, E]
	ask Question
}

// possible lists what may happen in a walk of this kind.
func (w walker[S, E]) possible(s *S, dst []E) []E {
	dst = w.sys.Events(s, dst[:0])
	if w.ask != PROMPT {
		return dst
	}
	return slices.DeleteFunc(dst, func(e E) bool {
		c := w.sys.Class(e)
		return c == Timer || c == Retry
	})
}

// draw takes three times in four something that goes on by itself: where everything breaks at
// once, nothing gets far enough to break in an interesting state.
func (w walker[S, E]) draw(r *rand.Rand, possible []E) E {
	if r.IntN(4) > 0 {
		possible = w.steady(possible)
	}
	return possible[r.IntN(len(possible))]
}

// steady is what goes on by itself, or all if nothing does.
func (w walker[S, E]) steady(possible []E) []E {
	var steady []E
	for _, e := range possible {
		if c := w.sys.Class(e); c == Progress || c == Delivery {
			steady = append(steady, e)
		}
	}
	if len(steady) == 0 {
		return possible
	}
	return steady
}

// quietMax bounds the quiet half: far more than any world needs that ends at all.
const quietMax = 10_000

// timersWait is for how many events a timer stands back behind progress that never stops.
const timersWait = 200

// finish lets the system come to its end: what has been possible for longest happens first,
// timers only when nothing else is left. A random finisher would trip over what it looks for.
func (w walker[S, E]) finish(s *S) (trace []E, broken, reason string) {
	since := map[E]int{}
	var possible []E
	for n := range quietMax {
		if w.sys.Done(s) {
			return trace, "", ""
		}
		possible = w.possible(s, possible)
		best, ok := w.oldest(possible, since, n)
		if !ok {
			break
		}
		trace = append(trace, best)
		delete(since, best)
		if err := attempt(w.sys, s, best); err != nil {
			return trace, "SAFETY", err.Error()
		}
	}
	if w.sys.Done(s) {
		return trace, "", ""
	}
	return trace, w.ask.String(), neverEnds
}

// oldest chooses among what happens by itself, and forgets what is not possible any more.
func (w walker[S, E]) oldest(possible []E, since map[E]int, now int) (best E, ok bool) {
	still := map[E]int{}
	bestAge, bestTimer := 0, false
	for _, e := range possible {
		c := w.sys.Class(e)
		if !w.ask.fair(c) {
			continue
		}
		age, known := since[e]
		if !known {
			age = now
		}
		still[e] = age
		timer := (c == Timer || c == Retry) && now-age < timersWait
		if !ok || bestTimer && !timer || bestTimer == timer && age < bestAge {
			best, bestAge, bestTimer, ok = e, age, timer, true
		}
	}
	clear(since)
	for e, age := range still {
		since[e] = age
	}
	return best, ok
}

// play performs the choices that are possible where they stand, then finishes.
func (w walker[S, E]) play(choices []E) (trace []E, broken, reason string) {
	s := w.sys.Init()
	var possible []E
	for _, e := range choices {
		if possible = w.possible(&s, possible); !slices.Contains(possible, e) {
			continue
		}
		trace = append(trace, e)
		if err := attempt(w.sys, &s, e); err != nil {
			return trace, "SAFETY", err.Error()
		}
	}
	rest, broken, reason := w.finish(&s)
	return append(trace, rest...), broken, reason
}

// shrink takes pieces out of the choices, halves first, for as long as the same property
// stays broken.
func (w walker[S, E]) shrink(choices []E, broken string) []E {
	for size := len(choices) / 2; size > 0; {
		less := false
		for at := 0; at+size <= len(choices); {
			tried := slices.Concat(choices[:at], choices[at+size:])
			if _, b, _ := w.play(tried); b == broken {
				choices, less = tried, true
			} else {
				at += size
			}
		}
		if !less || size > len(choices) {
			size /= 2
		}
	}
	return choices
}
