// Package explore visits every reachable state of a small system and says what is wrong with
// it, with a shortest trace. It knows nothing of Baton: a System is anything with a first
// state, the events that are possible in a state, and what an event does to it.
//
// It checks safety (Apply returns an error, or panics) and liveness under weak fairness: no
// run that always takes what stays possible may avoid Done for ever. Both are exact for the
// system given, however long a run is; nothing is sampled. It never reads a clock to decide,
// never starts a goroutine, and never draws a random number that a result depends on.
//
// Three questions about liveness (in Baton they are invariants of core/room):
//
//	TERM    everything ends, if compute, transport and timers keep working
//	ALONE   everything ends although no message is delivered any more
//	PROMPT  everything ends although no timer fires
//
// TERM and ALONE share one graph. PROMPT needs a graph of its own, in which timers never fire.
//
// What may be relied on:
//
//	X1  a violation of safety has a shortest trace: the search is breadth first
//	X2  a trap is a strongly connected set of states that are not done, in which every event
//	    that is possible in all of its states is also taken inside it: necessary and
//	    sufficient for a weakly fair run that stays in it for ever
//	X3  the deadline bound is the greatest number of Timer events on any fair path to Done;
//	    -1 if there is none
//	X4  two states are the same if and only if their keys are: a key is kept as 128 bits, so a
//	    wrong "the same" has a probability below 10⁻²⁰ at 10⁹ states. That a key leaves nothing
//	    out is up to the system; Options.Audit doubts it
//
// The packages of proof may import it, worlds for the search and others for its charts; production
// code may not.
package explore
