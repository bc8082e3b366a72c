package gate

import "baton/proof/cluster"

func init() { worlds["cluster"] = clusterScopes }

// clusterScopes are those of a gateway's request with two real pairs.
func clusterScopes() (all []Scope) {
	for _, s := range cluster.Scopes() {
		all = append(all, scope(s.Name, s.Nightly, func() *cluster.System { return cluster.New(s.Scope) }, s.Options))
	}
	return all
}
