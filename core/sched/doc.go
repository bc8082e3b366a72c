// Package sched holds the two rules by which a worker's rooms share its engine: who is served
// next (Line), and how much of which prompt goes into one step (Budget).
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
package sched
