package fleetsim

import (
	"slices"
	"testing"
)

// fleets are sizes that a person asks for, with what they cannot meet.
var fleets = []struct {
	sizes      Sizes
	impossible int
}{
	{DefaultSizes(), 0},
	{Sizes{Gateways: 2, Prefills: 3, Decodes: 5}, 4},
	{Sizes{Gateways: 1, Prefills: 1, Decodes: 1}, 4},
	{Sizes{Gateways: 1, Prefills: 1, Decodes: 1, Unified: 1}, 0},
	{Sizes{Gateways: NodesMax, Prefills: 3, Decodes: 5, Unified: 1}, 0},
	{Sizes{Gateways: 2, Prefills: 3, Decodes: 5, Unified: NodesMax}, 0},
	{Sizes{Gateways: 2, Prefills: 3, Decodes: 5, Unified: 1, Hard: true}, 0},
}

// TestNothingImpossibleIsDemanded: where all is met that the sizes allow, nothing is missing, and
// what they do not allow is not even listed.
func TestNothingImpossibleIsDemanded(t *testing.T) {
	every := len(new(sights).list(DefaultSizes()))
	for _, f := range fleets {
		var all sights
		for x := range all {
			if f.sizes.Unified > 0 || !sight(x).needsUnified() {
				all[x] = 1
			}
		}
		r := Report{Seeds: SeedsEnough}
		r.met(&all, f.sizes)
		if err := r.Err(); err != nil || len(r.Unseen) > 0 || len(r.Sights) != every-f.impossible {
			t.Errorf("%+v: %v, unseen %q, %d sights of %d, want %d fewer", f.sizes, err, r.Unseen, len(r.Sights), every, f.impossible)
		}
	}
}

// TestRareIsAWarningExceptForTheDefaultSizes: a sight that is possible and was not met makes seeds
// of the default sizes vacuous; of others it is told. With few seeds, luck decides.
func TestRareIsAWarningExceptForTheDefaultSizes(t *testing.T) {
	for _, f := range fleets {
		var all sights
		for x := range all {
			all[x] = 1
		}
		all[gatewayFull] = 0
		want := []string{"a gateway is full"}
		r := Report{Seeds: SeedsEnough}
		r.met(&all, f.sizes)
		if f.sizes == DefaultSizes() {
			if r.Err() == nil || !slices.Equal(r.Missing, want) || r.Unseen != nil {
				t.Errorf("%+v: %v, missing %q, unseen %q", f.sizes, r.Err(), r.Missing, r.Unseen)
			}
		} else if r.Err() != nil || r.Missing != nil || !slices.Equal(r.Unseen, want) {
			t.Errorf("%+v: %v, missing %q, unseen %q", f.sizes, r.Err(), r.Missing, r.Unseen)
		}
		few := Report{Seeds: SeedsEnough - 1}
		if few.met(&all, f.sizes); few.Missing != nil || few.Unseen != nil {
			t.Errorf("%+v, few seeds: missing %q, unseen %q", f.sizes, few.Missing, few.Unseen)
		}
	}
}

// TestNeedsAreReal: a fleet without unified workers never meets what is said to need one, and one
// with them meets it.
func TestNeedsAreReal(t *testing.T) {
	with, without := sights{}, sights{}
	for seed := range uint64(100) {
		a := Run(seed+1, Sizes{Gateways: 1, Prefills: 1, Decodes: 1, Unified: 1})
		b := Run(seed+1, Sizes{Gateways: 1, Prefills: 1, Decodes: 1})
		if a.Broken != "" || b.Broken != "" {
			t.Fatalf("seed %d: %s, %s", seed+1, a.Reason, b.Reason)
		}
		for x := range with {
			with[x] += a.sights[x]
			without[x] += b.sights[x]
		}
	}
	for x := range sight(sightsMax) {
		if x.needsUnified() && (without[x] > 0 || with[x] == 0) {
			t.Errorf("sight %d: %d times without unified workers, %d times with them", x, without[x], with[x])
		}
	}
}
