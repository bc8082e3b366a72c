package gate

import (
	"context"

	"baton/proof/cluster"
	"baton/proof/explore"
	"baton/proof/fleetsim"
	"baton/proof/poolsim"
	"baton/proof/relaysim"
	"baton/proof/schedsim"
	"baton/proof/sim"
)

// Scope is one exploration, by name.
type Scope struct {
	Name    string
	Nightly bool // too large for every change
	Must    []string
	Rooms   int // or requests, that a world has; 0 where a bound for each of them says nothing
	Run     func() explore.Report

	// Check explores a second time by other means (see naive), if there are not too many states,
	// and says where the two differ. It is nil for what is no exploration.
	Check func(statesMax int) (compared bool, err error)
	// Without explores what is left where events of some classes never happen, and says how many
	// did not.
	Without func(...explore.Class) (r explore.Report, taken int)
}

// audited is of how many states per scope the key is doubted: a tenth of a second of work.
const audited = 1000

// scope makes a scope of a system, which is made anew for every run.
func scope[Y explore.System[S, E], S any, E comparable](name string, nightly bool, sys func() Y, o explore.Options) Scope {
	o.Audit = audited
	return Scope{
		Name: name, Nightly: nightly, Must: o.Must,
		Run:   func() explore.Report { return explore.Run(sys(), o) },
		Check: func(statesMax int) (bool, error) { return agree(sys(), o, statesMax) },
		Without: func(gone ...explore.Class) (r explore.Report, taken int) {
			r = explore.Run(thinned[S, E]{sys(), gone, &taken}, o)
			return r, taken
		},
	}
}

// Scopes lists all, those of the room protocol first.
func Scopes() []Scope {
	var all []Scope
	for _, s := range sim.Scopes() {
		all = append(all, scope(s.Name, !s.Gate, func() *sim.System { return sim.New(s.Scope) }, s.Options))
		all[len(all)-1].Rooms = s.Scope.Rooms
	}
	for _, s := range relaysim.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *relaysim.System { return relaysim.New(s.Scope) }, s.Options))
		all[len(all)-1].Rooms = s.Scope.Requests
	}
	for _, s := range poolsim.Scopes() {
		switch {
		case s.Crowd != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Holders { return poolsim.NewHolders(*s.Crowd) }, s.Options))
		case s.Pair != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Pairs { return poolsim.NewPairs(*s.Pair) }, s.Options))
		case s.House != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Locals { return poolsim.NewLocals(*s.House) }, s.Options))
		default:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Rooms { return poolsim.NewRooms(*s.Rooms) }, s.Options))
		}
	}
	for _, s := range schedsim.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *schedsim.System { return schedsim.New(s.Scope) }, s.Options))
	}
	for _, s := range cluster.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *cluster.System { return cluster.New(s.Scope) }, s.Options))
	}
	// Walks by seed, not an exploration: of another kind, but it judges mutants like the others.
	// proof/fleetsim's own test runs the same seeds in every change.
	return append(all, Scope{Name: "fleet seeds", Nightly: true, Run: func() explore.Report {
		r := fleetsim.Sweep(context.Background(), fleetsim.SeedsFirst, fleetsim.SeedsGate, fleetsim.DefaultSizes(), 1, nil)
		return r.Explored()
	}})
}
