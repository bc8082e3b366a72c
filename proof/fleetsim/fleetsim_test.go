package fleetsim

import (
	"testing"
)

// seeds is what fits into ten seconds of one core.
const seeds = 2000

func TestFleetKeepsItsPromises(t *testing.T) {
	r := Sweep(t.Context(), 1, seeds, DefaultSizes(), 1, nil)
	t.Logf("%d seeds, %d events, %.0f events/s", r.Seeds, r.Events, float64(r.Events)/r.Took.Seconds())
	for _, s := range r.Sights {
		t.Logf("%7d %s", s.Count, s.Name)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}
