package kernel

import "testing"

func TestProbeMeasures(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		for threads := range 3 {
			if v := Probe(max(1, threads), 1<<20, 3); v < 1e6 || v > 1e14 {
				t.Errorf("%d threads read %g bytes per second", threads, v)
			}
		}
	})
}
