// Package observe holds what every part of Baton shows of itself: the rows of `ps`, queues,
// blocks, and the Prometheus metrics of a worker.
//
// It never decides and never holds state of a room; a part hands it a snapshot. serve, cmd and
// bench import it. Invariants:
//
//	O1  blocks: total = free + cached + held + quarantined, in every snapshot
//	O2  a queue's length equals the number of rows that stand in it
//	O3  a number is shown as it is: what could not be asked is absent, never zero
package observe
