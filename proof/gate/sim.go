package gate

import "baton/proof/sim"

func init() { worlds["sim"] = simScopes }

// simScopes are those of the room protocol.
func simScopes() (all []Scope) {
	for _, s := range sim.Scopes() {
		all = append(all, scope(s.Name, !s.Gate, func() *sim.System { return sim.New(s.Scope) }, s.Options))
		all[len(all)-1].Rooms = s.Scope.Rooms
	}
	return all
}
