// Package scenario holds one named test for each failure of disaggregated serving that somebody
// met in public: the report, turned into a script that runs against Baton. README.md lists them
// with the place of each proof; it is printed by a test.
//
// A failure whose mechanism lives in a core is played on the production cores of a gateway and
// its workers, by a rig that holds, releases, loses, repeats and reorders what is on its way,
// and owns the clock. One that lives in a driver or in HTTP is played on a real gateway with
// workers that speak by a script, or on real workers with an engine whose tokens are a function
// of the bytes that it reads, all in this process. proof/chaos has the tests that need processes.
//
// It decides nothing and is imported by nobody. Its tests wait for no clock: what must not need
// a timer runs while time stands still, and what must end by one is given the time.
//
// What an entry says must hold. Nine words are those of core/room, which defines them in full:
//
//	TERM     every request ends once, in time, on every part that knows it
//	PROMPT   no timer is needed for that: nothing waits behind what can never run, and clean-up
//	         needs no new work
//	RELEASE  everything acquired is released exactly once
//	QUIET    memory is reusable only when nothing can read or write it any more
//	OWN      bytes written for an attempt are read by it or, once published, by those whose prompt
//	         begins alike
//	STREAM   the client gets an exact prefix of the true output, then an end or an error
//	CAUSE    an end carries its first cause, in its class
//	TRUTH    status, health, metrics and usage equal what the ledger says
//	BOUND    tables, queues and buffers are bounded
//
// The others are words of the reports alone:
//
//	STALE    a message of an older attempt, room or life changes nothing
//	BLAST    the failure of one request or worker stays with it
//	ONCE     a request is generated once; no silent restart behind the first byte
//	AGREE    all parts of one worker apply the same decisions in the same order
//	COMPAT   workers whose KV is not byte-compatible never exchange a block
package scenario
