// Package gateway takes clients' requests in, has core/relay decide about them, drives their
// legs at the workers and answers in OpenAI's dialect. It also answers what an operator asks:
// health, metrics, where every request is.
//
// It never computes, never holds KV, never decides about a request: the one loop goroutine
// owns the core and the roster of workers, turns what happens into events and executes the
// effects in order, with no branch on a request's state. serve/fleet, cmd and tests import it.
//
//	W1  a client's body is read to its end before any leg is sent
//	W2  a client that leaves is an event at once, in every phase, also while workers are silent
//	    and while a write to it blocks
//	W3  every request gets exactly one ending, and its client one terminal event: an answer, a
//	    status with an error, or behind the first byte one error event; never [DONE] behind
//	    it. What it answers is of one attempt: until its first byte, which for an answer that is
//	    not streamed is the end of it, another attempt may take the place of one that failed
//	    The choices of one prompt (n) are of one attempt: one room, one leg at each worker, one
//	    end; they count as many in admission, and are started anew together
//	W4  what waits for a slow client is bounded; beyond it the request ends
//	W5  a room is 63 random bits and sent once to each role
//	W6  a leg's final event is the last thing that comes from it
//	W7  the loop never waits for a client, a worker or a lock that somebody holds over I/O
//	W8  a text that cannot fit is not cut into tokens, and a body counts in bytes until its
//	    tokens are there; connections, their deadlines and bodies are serve/door's (D1 to D4)
//	W9  a request's time runs from the moment its body is there: what it takes to check it and to
//	    cut it into tokens is part of it
package gateway
