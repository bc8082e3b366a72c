// Package fleetsim is a whole fleet in one thread and in virtual time, from one seed: several
// gateways, prefill, decode and unified workers on the production cores (core/relay, core/prefill,
// core/decode, core/blocks), the links between them, and everything that goes wrong in a bad
// minute. A seed that breaks an invariant is made short and drawn as a sequence chart.
//
// It decides nothing for a core: every effect is done as its driver does it. It reads no clock
// and no random source of the system, so that a seed runs the same way twice; Run does run it
// twice and compares. cmd/baton (verify) and proof/gate import it, nothing else does.
//
// # What is modelled
//
// Time: every node has a clock of its own, with an offset and up to clockSkewMax of drift; its
// cores see nothing else, and its timers fire when that clock says so. Network: a direction
// between two nodes delays, stalls and heals, or stays dead for ever; a connection over it is
// ordered, as TCP is, and ends at each side when that side notices. What workers say to each other
// may, for a while, also be lost, come twice, or be overtaken: no TCP does that, and the cores do
// not need TCP. Nodes crash and come back with a new boot, freeze like a stopped process, slow
// down, drain and leave, cut or not; a worker that leaves may have its successor beside it, and
// gateways, which share the workers and know nothing of each other, hear of all that late. Pools
// are small. Clients leave, stop reading, ask for too much, bring short deadlines, come and go in
// storms, and want their answer streamed or whole.
//
// The engine is an oracle. A block holds a digest of the tokens up to it; a token is a function of
// the blocks that are really read; so one wrong, stale or missing block changes the text, and the
// right text is computed beside it. Freed
// blocks are overwritten, a step that fails leaves rubbish behind. Prompts of one kin begin alike:
// workers find what they have of them, and a poisoned prefix would be many wrong texts. Decode may
// have blocks for some of the output only: then rooms grow, yield to older ones, and compute again.
//
// Faults begin in the first half of a run. In the second all heals, but for links that a seed
// chose to leave dead.
//
// # What is judged (the invariants of core/room, as far as they can be seen here)
//
//	TERM     a request ends by its deadline on its gateway's clock, to graceGateway; a room at a
//	         worker by its own, to graceWorker for what touches memory. Freezes are added
//	PROMPT   in seeds whose faults all heal or are noticed, no timer of a core fires at all, and
//	         everything ends
//	ALONE    the same as TERM, on both sides of links that stay dead
//	RELEASE  legs are released once and only when they are over, pools and loads return to zero
//	QUIET    no block is freed while a step, write or receiver is inside; no try starts before
//	         the last one is fenced
//	OWN      a receiver goes into blocks that are its room's alone
//	STREAM   a client gets the exact text, in order, once, and one end
//	CAUSE    the first thing that was done to an attempt is its outcome, at every node that it
//	         passes and at the client (why.go), and that thing did happen there; a blame is of
//	         what was done to that worker; a client's mistake blames nobody
//	TRUTH    views, counts and queues equal the ledger of this world, after every step
//	BOUND    no table passes its limit, nor retries their share; after the last tombstone all are
//	         empty
//	SAFETY   no assertion of a core fails
//
// Sights (sights.go) are what a sweep of seeds has to meet at least once, as far as its sizes allow:
// one that never retries, never crashes a gateway or never aborts a room in some phase checks
// nothing. With the default sizes, for which all that is drawn was tuned, it fails; with others it
// says what it has not seen.
package fleetsim
