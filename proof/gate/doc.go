// Package gate lists every scope of every world that has to hold before a change goes in, and
// its tests explore them. proof/mutants runs single ones by name, with broken cores.
//
//	go test -v ./proof/gate                                         the gate, with figures per scope
//	BATON_SCOPE="TERM all" go test -v -run TestScope ./proof/gate   one scope
//	BATON_NIGHTLY=1 go test -v -timeout 1h ./proof/gate             the large ones too; 3 GiB
//	go test -run xxx -bench . ./proof/gate                          states per second
//
// It decides nothing about the worlds: a scope belongs to proof/sim, proof/relaysim or
// proof/fleetsim.
package gate
