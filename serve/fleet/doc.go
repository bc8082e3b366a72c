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
//	F6  a worker that drains is placed nothing on and is not killed for it; when nothing is left
//	    on it, it is told to leave, and another life takes its place
//	F7  a worker that is told to leave looks at its books and blocks a last time; what it finds
//	    wrong there, which is its exit status, is Run's error
package fleet
