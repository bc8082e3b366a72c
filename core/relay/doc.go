// Package relay is the gateway's request: what happens between a client that asks and the one
// terminal event that it gets. It places an attempt on a pair of workers, watches both legs,
// ends the other leg when one fails, tries again where that is safe, and says the outcome once.
//
// It never starts a goroutine, reads a clock, does I/O or looks into tokens: events go in,
// effects come out as data, in order, and everything that takes time comes back as an event.
// serve/gateway drives it and proof explores it; nobody else imports it.
//
// What may be relied on (labels are cited in code and tests):
//
//	G1  exactly one End per Arrive; nothing is forwarded behind it
//	G2  a leg that fails before the first token closes its peer in the same step. Two ends of a
//	    prefill leg fail nothing: one behind the first token, because nothing is left to do,
//	    and "cancelled" where nobody cancelled, because it echoes decode, whose own end, on
//	    its way, has the cause
//	G3  a client that leaves closes both legs in the same step, in every phase
//	G4  every leg that was opened is released exactly once, when it has ended or its close is
//	    confirmed; the request is forgotten only then
//	G5  an attempt starts only when both legs of the one before are closed (fenced), has a new
//	    room, excludes every worker that was tried, and only before the client's first byte:
//	    before the first forwarded token, or, of a buffered answer, at any time before its end.
//	    If there is no other, a worker may serve again that was not blamed, or only for a
//	    transfer, or was heard of as usable since
//	G6  tries per request are bounded, and so is the share of retries over all requests
//	G7  the outcome is the first cause of the attempt that decided it; a client error, a
//	    cancellation or the client's own deadline blames no worker
//	G8  every phase has a timer, or waits for a confirmation that the driver owes
//	G9  a request that nobody can serve waits, within its place budget, and asks again at every
//	    Roster; none waits although a pair that may serve it is there
//	G10 an answer is of one attempt. What was forwarded of a buffered request's attempt is taken
//	    back (Discard) in the step that gives the attempt up, and nothing of it is forwarded
//	    behind that. Removed: 16 events to an answer that begins twice
//	G11 a request runs when all rights that it takes are free at once, and whoever came first runs
//	    first: one that takes many is not starved by those behind it that take few
//
// The driver owes: one Pair per Place; a Roster for every worker that may be placed on and could
// not before; per Open any number of LegOpen and Tokens, then a LegEnd, or, if Close was asked
// for, a LegClosed (a LegEnd that crosses it does no harm).
package relay
