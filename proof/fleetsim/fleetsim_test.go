package fleetsim

import (
	"testing"
)

func TestFleetKeepsItsPromises(t *testing.T) {
	r := Sweep(t.Context(), SeedsFirst, SeedsGate, DefaultSizes(), 1, nil)
	t.Logf("%d seeds, %d events, %.0f events/s", r.Seeds, r.Events, float64(r.Events)/r.Took.Seconds())
	for _, s := range r.Sights {
		t.Logf("%7d %s", s.Count, s.Name)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}
