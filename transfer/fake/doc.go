// Package fake is a plane inside one process, for tests: the same two ends and promises (T1 to
// T9 of package transfer) without a network, and with faults that a test chooses: words that
// are lost or come twice, pieces that come late, bytes that change on the way, links that break.
//
// It opens no socket and knows no time: it has no silence bound, as nothing here goes silent
// that a test did not silence. Only tests import it.
package fake
