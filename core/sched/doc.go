// Package sched holds the two rules by which a worker's rooms share its engine: who is served
// next (Line), and how much of a prompt goes into one step (Budget).
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
//	S3  generating rooms come before chunks of prompts, which keeps the gap between tokens
//	    short; and the oldest prompt gets at least one block per step, so it cannot starve.
package sched
