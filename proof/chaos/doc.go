// Package chaos runs the real binary as real processes, breaks it, and judges it from outside.
//
// It never looks into a process: it sees what a client and an operator see (HTTP, logs on
// standard error, /proc), sends signals only to processes that it started, and talks to
// 127.0.0.1 only. Nobody imports it; its tests are the product.
//
// Judged for every request and every run:
//
//	X1  a request ends at the client within its deadline plus one second
//	X2  it has exactly one end: a finish reason, an error, or the client's own cancel
//	X3  an answer that claims to be complete is right
//	X4  after quiet there is no request, no room, and every block is free or cached
//	X5  no block that was given back has changed (canaries)
//	X6  goroutines and descriptors are back where they were
//	X7  what the core of each process was told leads a fresh core to the same decisions, up to
//	    the last line that the process wrote, however it ended; and what processes heard of each
//	    other is what they said
package chaos
