package gate

import "baton/proof/schedsim"

func init() { worlds["schedsim"] = schedsimScopes }

// schedsimScopes are those of the scheduler.
func schedsimScopes() (all []Scope) {
	for _, s := range schedsim.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *schedsim.System { return schedsim.New(s.Scope) }, s.Options))
	}
	return all
}
