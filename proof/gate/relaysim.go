package gate

import "baton/proof/relaysim"

func init() { worlds["relaysim"] = relaysimScopes }

// relaysimScopes are those of the gateway's requests.
func relaysimScopes() (all []Scope) {
	for _, s := range relaysim.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *relaysim.System { return relaysim.New(s.Scope) }, s.Options))
		all[len(all)-1].Rooms = s.Scope.Requests
	}
	return all
}
