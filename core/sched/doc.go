// Package sched holds the rules by which a worker's rooms share its engine and its memory: who is
// served next (Line), how much of which prompt goes into one step (Budget), how much memory a room
// is let in with (Blocks), and who gives its memory back when it does not suffice (Yield).
//
// It never looks at a room: the cores walk their rooms in order of arrival and ask. Only the
// cores import it; it imports core/room.
//
// Invariants:
//
//	S1  first come, first served: once one room has been told to wait for a resource, nobody
//	    behind it gets that resource in the same round. Therefore a large room is never
//	    starved by small ones. What can never fit is refused at the door by the cores, so the
//	    head of a line always gets its turn when those before it have ended.
//	S2  a chunk is whole blocks, unless it is the last of its prompt.
//	S3  generating rooms come before chunks of prompts, and all of them are in every step: the
//	    gap between two tokens is one step, however long the prompts beside them are.
//	S4  prompts share what is left by halves: each, in order of arrival, takes half of it,
//	    rounded up to whole blocks; the last that gets a part takes all; what one does not need
//	    goes to those behind it, and what nobody there needs to the first again. Therefore a
//	    short prompt is in the next step although long ones stand before it (with b blocks in a
//	    step, up to log2 b of them), nobody gets more than one who came earlier and could use
//	    it, and a step has no block to spare while a prompt in it could fill that block.
//	S5  nobody starves. The first prompt of a step gets half of what generating rooms leave of
//	    it, and a block even if they leave nothing; so it moves in every step and is over after
//	    finitely many. Order is that of arrival, so those before a given prompt only become
//	    fewer, until it is the first. From then on whatever comes behind it at most doubles
//	    the time that it still takes.
//	S6  memory ahead. A room is let in with blocks for the tokens that it has and some of output
//	    ahead, and only if as many stay free as all that were let in before may still ask for up
//	    to the same distance from where they are. So nobody has to yield before somebody made
//	    more tokens than all were promised when the last one was let in: what is computed again
//	    is at most one room for each so many tokens of the fastest. (That room may have made none
//	    meanwhile, if its prompt is long: S7 says that this is not for ever.) Those that generate
//	    are served before those that wait. A room of several outputs gets all that they may need.
//	S7  nobody yields but for an older one. When a generating room needs a block and there is
//	    none, the youngest of those that hold blocks gives up all of its own, and waits for
//	    them again at its place by arrival; if that is the needy room itself, it does, for those
//	    before it. Therefore the oldest that holds blocks is never retracted and comes to its
//	    end, since what could not run alone was refused at the door. A given room yields at most
//	    as often as it and those before it grow, and those are finitely many and only become
//	    fewer: no livelock.
//	S8  what cannot yield now is waited for. Blocks that are promised to a sender, and those of
//	    a room of which something is under way, or of several outputs that generates, stay where
//	    they are. While a younger room is like that, or all that are older are, or somebody who
//	    leaves still holds blocks, the needy room keeps what it has and sits out; what it waits
//	    for does not wait for it.
package sched
