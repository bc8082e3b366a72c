// Package conformance judges planes: Run puts two ends of one plane against each other and
// checks the invariants T1 to T9 of package transfer, with blocks that are given away the
// moment they are released and canaries in all that nobody owns.
//
// It looks at a plane from outside: through its handlers, its blocks, its goroutines and, for
// planes that speak package wire over TCP, through a meddler on the line that cuts, stalls,
// flips, repeats and loses. It knows nothing of rooms beyond their names. Only tests import it.
package conformance
