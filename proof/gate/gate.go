package gate

import (
	"context"

	"baton/proof/explore"
	"baton/proof/fleetsim"
	"baton/proof/relaysim"
	"baton/proof/sim"
)

// Scope is one exploration, by name.
type Scope struct {
	Name    string
	Nightly bool // too large for every change
	Run     func() explore.Report
}

// audited is of how many states per scope the key is doubted: a tenth of a second of work.
const audited = 1000

// Scopes lists all, those of the room protocol first.
func Scopes() []Scope {
	var all []Scope
	for _, s := range sim.Scopes() {
		s.Options.Audit = audited
		all = append(all, Scope{Name: s.Name, Nightly: !s.Gate, Run: s.Run})
	}
	for _, s := range relaysim.Scopes() {
		s.Options.Audit = audited
		all = append(all, Scope{Name: s.Name, Nightly: s.Nightly, Run: s.Run})
	}
	// Walks by seed, not an exploration: of another kind, but it judges mutants like the others.
	// proof/fleetsim's own test runs the same seeds in every change.
	return append(all, Scope{Name: "fleet seeds", Nightly: true, Run: func() explore.Report {
		r := fleetsim.Sweep(context.Background(), fleetsim.SeedsFirst, fleetsim.SeedsGate, fleetsim.DefaultSizes(), 1, nil)
		return r.Explored()
	}})
}
