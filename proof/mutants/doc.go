// Package mutants breaks the production cores on purpose and demands that the explorer notices.
//
// A mutant is a patch: some lines of comment that say what mistake it is, which property must
// break (or "SAFETY" with a piece of what is said), and the smallest scope of proof/gate that
// kills it. Patches are applied by this package to copies in a temporary folder, and reach the
// compiler by "go test -overlay", so that the files in the tree never change and no external
// tool is needed.
//
// Where the mistake is one of a driver, the header names the test that must fail instead of a
// scope ("# test: baton/serve/gateway TestX"); or, where it names what is said, a core of the driver
// may panic under that test: that is how cores refuse what a driver must not tell them.
//
// A mutant that survives is a missing invariant or a missing scope: it is never removed for
// that, but its header says that it is open, and why ("# open: …"), and the test fails when it
// begins to die. A patch that no longer applies fails too: somebody has changed what it is about, and has
// to say what the mistake looks like now. Only tests of proof use this package.
package mutants
