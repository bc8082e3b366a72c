// Package fleet runs a whole Baton on one machine: it starts worker processes, watches them,
// starts them again when they end, and puts a gateway in front.
//
// It never looks into a request and never computes; what it knows of a worker is its ready
// line, its health and its end. cmd imports it.
//
//	F1  a worker that ends while the fleet serves is started again, after a pause that grows
//	    with failures in a row, and under a new boot id
//	F2  a worker whose health is not good is not placed on; after a bound it is killed
//	F3  no worker outlives the fleet: its standard input ends with our process, and on Linux
//	    the kernel kills it
//	F4  the fleet's secret is made at start, lives in memory and in the workers' environment,
//	    and is in no argument, log or file
//	F5  every goroutine and process that Run started has ended when it returns
//	F6  a worker that drains, by a signal or because it was asked to, is placed nothing on and is
//	    not killed for it; another life takes its place at once, beside it. When nothing is left
//	    on the one that drains it is told to leave, if it has not by itself
//	F7  a worker that is told to leave looks at its books and blocks a last time; what it finds
//	    wrong there, which is its exit status, is Run's error
//	F8  a first worker that refuses its configuration (ExitRefused) is not started again
package fleet
