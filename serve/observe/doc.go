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
//	rid      the request, as its client or gateway names it; "" for a room without one
//	lease    boot of decode/number
//	worker   the worker that logs, or that a gateway speaks of, by name
//	peer     the other end: an address, or the boot of a decode worker
//	phase    the room's phase after the transition
//	event    a word of a fixed list: what reached a core or what it wants done
//	outcome  success, failed or aborted
//	cause    why, as an outcome's cause; on lines about a process or a link, the error
//	after    how long it took
//	detail   free text for humans, and nothing else is free
//
// Log lines of every part have a constant message and these keys, which a reader can search for:
//
//	room, lease, rid    whose line it is
//	worker, peer        who wrote it or whom it is about, and who was on the other side
//	phase, event        where a room stood and what it heard, by the cores' names
//	outcome, cause      how it ended, by room.Kind's and room.Cause's names
//	after               a time that passed or will
//	detail              free words: an error, a list, a number; nothing branches on them
package observe
