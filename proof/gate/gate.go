package gate

import "baton/proof/explore"

// Scope is one exploration, by name.
type Scope struct {
	Name    string
	Package string // below proof, of its world: the file of this name enters it
	Nightly bool   // too large for every change
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

// worlds has the scopes of every world. Each enters by a file of its own, the only one that imports
// it: who judges a mutant by one scope leaves the other files out, and half the time that it takes
// to build the rest.
var worlds = map[string]func() []Scope{}

// order is that of Scopes: the room protocol first, the largest worlds last.
var order = []string{"sim", "relaysim", "poolsim", "schedsim", "cluster", "fleetsim"}

// Scopes lists all.
func Scopes() []Scope {
	var all []Scope
	for _, world := range order {
		list, ok := worlds[world]
		if !ok {
			continue
		}
		for _, s := range list() {
			s.Package = world
			all = append(all, s)
		}
	}
	return all
}
