package gate

import "baton/proof/poolsim"

func init() { worlds["poolsim"] = poolsimScopes }

// poolsimScopes are those of blocks that rooms share.
func poolsimScopes() (all []Scope) {
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
	return all
}
