// Package baton drives one leg at a Baton worker: it sends the leg's request, hands over what
// comes back and says how it ended.
//
// It never retries, never knows the other leg or the request's state, never sends the same
// room twice. serve/gateway imports it.
//
//	U1  Run returns exactly one End, whatever the worker or the network does: a failure of any
//	    kind (dial, status, malformed line, early end) is an End with a cause
//	U2  a leg is sent at most once: no header that would let net/http repeat it, no redirect
//	U3  Said is true only for what the worker itself said in a well-formed last line or refusal
//	U4  after Run has returned nothing of the leg is handed over any more
//
// Silence is not judged here: the gateway's core has a named budget for every phase and ends
// the leg through its context.
package baton
