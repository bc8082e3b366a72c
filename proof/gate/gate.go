package gate

import (
	"baton/proof/explore"
	"baton/proof/relaysim"
	"baton/proof/sim"
)

// Scope is one exploration, by name.
type Scope struct {
	Name    string
	Nightly bool // too large for every change
	Run     func() explore.Report
}

// Scopes lists all, those of the room protocol first.
func Scopes() []Scope {
	var all []Scope
	for _, s := range sim.Scopes() {
		all = append(all, Scope{Name: s.Name, Nightly: !s.Gate, Run: s.Run})
	}
	for _, s := range relaysim.Scopes() {
		all = append(all, Scope{Name: s.Name, Nightly: s.Nightly, Run: s.Run})
	}
	return all
}
