// Package gate lists every scope of every world that has to hold before a change goes in, and
// its tests explore them. proof/mutants runs single ones by name, with broken cores.
//
//	go test -v ./proof/gate                                         the gate, with a table at its end
//	BATON_SCOPE="TERM all" go test -v -run TestScope ./proof/gate   one scope
//	make nightly                                                    the large ones too
//	go test -run xxx -bench . ./proof/gate                          states per second
//
// A second explorer (naive.go), too simple to be wrong in the same way, has to agree with
// proof/explore on every small scope, and on every mutant of proof/mutants that has few states.
//
// It decides nothing about the worlds: a scope belongs to its own, which is proof/sim (the room
// protocol), proof/relaysim (requests), proof/poolsim (blocks that rooms share), proof/schedsim
// (retraction), proof/cluster (a request with two real pairs) or proof/fleetsim (fleets by seed).
// Each enters by the file of its name.
package gate
