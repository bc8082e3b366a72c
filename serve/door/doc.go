// Package door is what stands between a network and an HTTP handler of ours: a listener that
// bounds connections, connections on which a client's leaving is always seen, deadlines around
// every request, and request bodies that are bounded in bytes and in time.
//
// It never looks into a request and never decides what an answer says. serve/gateway and
// serve/worker import it.
//
//	D1  every read and every write on a connection has a deadline, but the wait of a request
//	    that was read to its end for its own handler
//	D2  while a handler runs, the client's leaving ends the request's context, also when bytes
//	    came behind the request
//	D3  bytes of bodies count against a bound as they arrive, until they are given back; a body
//	    that comes slower than RateMin is not waited for
//	D4  a request whose body was not read gets its answer and its connection is closed
//	D5  a handler that panics costs its connection alone, and is an error in the log
package door
