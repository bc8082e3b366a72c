package fleetsim

import "slices"

// shrinkRuns bounds the search for a shorter plan: a few seconds.
const shrinkRuns = 1500

// shrink takes choices out of a plan, halves first, and makes what is left smaller, for as long
// as the same property stays broken. Without its choices a fleet is quiet, so that what remains
// is what matters.
func shrink(p *plan, property string) *plan {
	best, runs := p, 0
	try := func(q *plan) bool {
		if runs++; runs > shrinkRuns {
			return false
		}
		w := newWorld(q)
		w.run()
		if w.broken != property {
			return false
		}
		best = q
		return true
	}
	steady := *p
	steady.steady = true
	try(&steady)
	for size := (len(best.choices) + 1) / 2; size > 0; {
		less := false
		for at := 0; at < len(best.choices); {
			q := *best
			q.choices = slices.Concat(best.choices[:at], best.choices[min(at+size, len(best.choices)):])
			if len(q.choices) > 0 && try(&q) {
				less = true
			} else {
				at += size
			}
		}
		if !less || size > len(best.choices) {
			size /= 2
		}
	}
	if !best.steady {
		q := *best
		q.steady = true
		try(&q)
	}
	for i := range best.choices {
		for _, smaller := range []func(*choice){
			func(c *choice) { c.size = min(c.size, 15) },
			func(c *choice) { c.more = min(c.more, 2) },
			func(c *choice) { c.more = min(c.more, 1) },
		} {
			if best.choices[i].kind != arrive {
				continue
			}
			q := *best
			q.choices = slices.Clone(best.choices)
			smaller(&q.choices[i])
			if q.choices[i] != best.choices[i] {
				try(&q)
			}
		}
	}
	return best
}
