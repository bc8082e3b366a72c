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
// What an entry says must hold, in the words of the reports:
//
//	TERM     every request ends once, in time, on every part that knows it
//	REL      everything acquired is released exactly once
//	QUIESCE  memory is reusable only when nothing can read or write it any more
//	OWN      bytes written for an attempt are read by that attempt only
//	STREAM   the client gets an exact prefix of the true output, then an end or an error
//	CAUSE    an end carries its first cause, in its class
//	STALE    a message of an older attempt, room or life changes nothing
//	BLAST    the failure of one request or worker stays with it
//	PROG     nothing waits behind what can never run, clean-up needs no new work
//	BOUND    tables, queues and buffers are bounded
//	TRUTH    status, health, metrics and usage equal what the ledger says
//	ONCE     a request is generated once; no silent restart behind the first byte
//	AGREE    all parts of one worker apply the same decisions in the same order
//	COMPAT   workers whose KV is not byte-compatible never exchange a block
package scenario
