package gate

import "baton/proof/poolsim"

func init() { worlds["poolsim"] = poolsimScopes }

// poolsimScopes are those of blocks that rooms share.
func poolsimScopes() (all []Scope) {
	for _, s := range poolsim.Scopes() {
		switch {
		case s.Holder != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Holders { return poolsim.NewHolders(*s.Holder) }, s.Options))
		case s.Pair != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Pairs { return poolsim.NewPairs(*s.Pair) }, s.Options))
		case s.Local != nil:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Locals { return poolsim.NewLocals(*s.Local) }, s.Options))
		default:
			all = append(all, scope(s.Name, s.Nightly, func() *poolsim.Prefills { return poolsim.NewPrefills(*s.Prefill) }, s.Options))
		}
	}
	return all
}
