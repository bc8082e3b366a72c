// Package sim is the world around the two cores of a pair: the explorer runs the production
// code of core/prefill and core/decode in it, in every order that the scope allows.
//
// The world keeps what the cores do not own: messages and chunks in flight, outstanding
// writes and engine steps, receivers inside decode's memory, connections as each side sees
// them, and what every block really holds. It answers effects as a driver would and never
// looks into a core to decide what may happen next. Only proof and tests may import it.
//
// What is modelled, and how:
//
//	wire         a set of messages: deliver, deliver and keep (any number of times), lose
//	data plane   a write returns, its chunk's header is read, its body is placed, or it is
//	             lost: four events, ordered by nothing but cause. A write may fail cleanly, or
//	             be reported failed and arrive all the same. Bytes may be wrong. In one scope
//	             a chunk comes twice, as on no stream that we have (Again).
//	connections  numbered; each side notices an end by itself; a silent one may be ended by
//	             each side; decode dials the next one
//	engines      one step at a time, which may fail; prompts are cut by the budget, and in
//	             prefill's second life by another one (Recut)
//	time         any armed timer may fire at any moment; there is no clock
//	caches       in scopes with Keys all rooms have one prompt, of which each side's first life
//	             may have the beginning in its prefix cache before the world begins, and what a
//	             room leaves there the next one finds: Prealloc names the first block wanted
//	processes    each side may crash and may restart, with a new boot
//	gateway      sends both Requests and, if the client leaves, both Aborts, all of which
//	             overtake each other; in scopes with Gateway it ends the other leg when one
//	             fails, as core/relay does (its own machine is explored in proof/relaysim)
//
// In scopes that are Tied, control messages travel on a link and are lost with it, as they
// are on TCP. In the others they outlive links and even processes, which is worse than what
// can be: safety is checked against that.
//
// Checked at every step, from outside, with ghosts that nobody in the world knows:
//
//	OWN      no receiver is let into a block that is filled, in use or another receiver's; a
//	         start and every step read blocks that hold this room's prompt, from one pass,
//	         under the lease that the room holds
//	         with Keys a block counts that was found under its key, if it holds what that says
//	         (POISON) and no receiver was let into it
//	QUIET    no block is freed that a write, a receiver or an engine step still uses
//	RELEASE  a leg ends once; an idle core holds no block; the pool's counts add up
//	TERM     an idle core owes no End; every Request has one answer, every chunk one; no room
//	         goes that an End or EndHalf does not name, and none that it names stays
//	STREAM   tokens only while the leg is open; a success has all of its tokens
//	CAUSE    an outcome that is decided does not change
//	and      nothing is written under a lease after its final word, or before it is computed
//
// The causes of failures and the numbers of blocks are no part of a state: no decision
// depends on them. Where two rooms are alike, runs in which decode hears of the second first are
// left out (Alike): they are mirror images.
//
// What the scopes do not reach: more than two rooms; more than one pair (proof/cluster has two, and
// the gateway's core with them); more than two chunks where a side crashes; crashes of both sides
// together with wrong bytes, failed steps or clients that leave; two rooms with a lossy network;
// and what drivers do wrong.
package sim
