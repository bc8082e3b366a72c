package gate

import (
	"context"

	"baton/proof/explore"
	"baton/proof/fleetsim"
)

func init() { worlds["fleetsim"] = fleetsimScopes }

// fleetsimScopes are walks by seed, no exploration: of another kind, but they judge mutants like the
// others. proof/fleetsim's own test runs the same seeds in every change.
func fleetsimScopes() []Scope {
	return []Scope{{Name: "fleet seeds", Nightly: true, Run: func() explore.Report {
		r := fleetsim.Sweep(context.Background(), fleetsim.SeedsFirst, fleetsim.SeedsGate, fleetsim.DefaultSizes(), 1, nil)
		return r.Explored()
	}}}
}
