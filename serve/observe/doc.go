// Package observe holds what every part of Baton shows of itself: the rows of `ps`, queues,
// blocks, and the Prometheus metrics of a worker.
//
// It never decides and never holds state of a room; a part hands it a snapshot. serve, cmd and
// bench import it. Invariants:
//
//	O1  blocks: total = free + cached + held + quarantined, in every snapshot
//	O2  a queue's length equals the number of rows that stand in it
//	O3  a number is shown as it is: what could not be asked is absent, never zero
//
// # Log lines
//
// Everything is logged by slog with a constant message and these keys, no other; a test holds
// the list. A line at Info for each room at its end, on every part, for each leg or request that
// was refused, and for each change of a process or link; transitions at Debug.
//
//	room     a room's 16 digits
//	rid      the request, as its client or gateway names it
//	lease    boot of decode/number
//	worker   the worker that logs, or that a gateway speaks of, by name
//	peer     the other end: an address, or the boot of a decode worker
//	phase    the room's phase after the transition
//	event    a word of a fixed list: what reached a core or what it wants done
//	outcome  success, failed or aborted
//	cause    why, by the name of a room.Cause
//	after    how long it took
//	detail   free words: an error, a list, a number; nothing branches on them, and nothing else is free
//
// A key without a value is left out (Known): a success has no cause, a room of which only a
// Prealloc came no rid.
package observe
