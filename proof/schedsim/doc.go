// Package schedsim is the world around the scheduler of a decode worker: a pool that is too small
// for all rooms at their full length, few slots, one engine. The explorer runs the production code
// of core/decode and core/sched in it, in every order that a scope allows, and asks whether rooms
// make progress: through growth and retraction, with clients that leave, steps that fail, deadlines,
// and KV that comes over a link.
//
// The world plays the driver and the engine. It never decides what a core should do next, and
// believes nothing that the core says of itself but its phases. What goes wrong between the two
// cores of a pair is explored in proof/sim; here prefill is one peer that keeps its word or is gone.
// Only proof and tests may import it.
//
// A token is a function of its room and its position, and so is its KV: of a block the world knows
// whose it is, which block of that room, and how many of its tokens are there. Checked from outside,
// at every event:
//
//	STREAM   every token that the engine made is emitted, once, in the same step; a success has all
//	         of its tokens; nothing begins twice, and no position is fed twice
//	OWN      whatever reads KV finds exactly the tokens before it, of its own room; a block has one
//	         writer
//	QUIET    no block is freed that a step or a receiver uses
//	RELEASE  a leg ends once; a room that is retracted or over holds no block; an idle core none
//	TERM     every room that is not decided has a deadline
//	CAUSE    a room to which nothing was done ends well: its client stayed, its steps and its
//	         link held, its deadline did not fire; and nobody is refused
//	S6       nobody is retracted before somebody made more tokens than all were promised when the
//	         last one was let in
//	S1       nobody gets blocks before an older room that waits for them
//	S7       whoever is retracted is younger than somebody who holds blocks, and nobody younger that
//	         could yield keeps its own
//	S8       nobody gives its own blocks back for itself while somebody who leaves still holds some
//	and      nothing that fits waits: no slot is free while somebody waits for one, the engine does
//	         not rest while somebody can compute, and when nothing is under way the oldest that
//	         waits for blocks does not fit
//
// S1, S7 and S8 are not asked in scopes with Endless rooms, where liveness has to see by itself that
// the order is wrong.
//
// What is left is liveness, the explorer's own question: with PROMPT, where no timer ever fires,
// every room comes to its end, so rooms do not take their blocks from each other for ever; in scopes
// with Endless rooms, which come again and again, the others do all the same, so nobody starves.
package schedsim
