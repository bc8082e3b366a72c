// Package prefill decides everything that a prefill worker does with its rooms: which are
// accepted, which compute next, what is written where, what decode is told, and when memory
// is free again.
//
// It never blocks, reads a clock, starts a goroutine, does I/O or looks at a token or a byte
// of KV. The driver (serve/worker) feeds it events and does its effects in order; it has no
// opinion of its own about rooms. proof/sim runs this package, unchanged, in every order.
// Drivers and proof may import it; other cores and the engine may not.
//
// # Life of a room
//
// ARCHITECTURE.md draws it, under "Life of a room": which phases the production code was seen to
// move a room between, and by which events. In short: a room needs its Request and its Prealloc,
// waits in line, computes, and waits for its last writes.
//
// Whatever ends a room early (Abort, Cancel, deadline, a failed step or write) goes through
// Draining, which is left at once if nothing of the room is under way. phase.go says of each
// phase whose move it is and what ends it otherwise.
//
// # Invariants
//
// Code and tests cite these labels. "Removed" is the shortest way in which things break
// without the rule: what the explorer finds when exactly this is taken out of this package.
//
//	P1  One word. A live room says its final word in settle alone, once, and nothing is
//	    written under its lease afterwards: Settled is a promise, not a status. Whatever asks
//	    again gets the same word from the tombstone. A write that is done says nothing about
//	    whether the chunk arrived, so a success says how many chunks there were.
//	P2  Drain before release. Blocks are freed, and the word is said, only when the engine
//	    step and every write of the room have come home. Removed: 6 events to a block that is
//	    freed while the engine writes it, 8 to one that a write still reads.
//	P3  Sticky. The first decision is the outcome; Draining and the end are never left
//	    backwards. Removed: the bug that this project began with, in 8 events.
//	P4  One release. Blocks are released and legs end in settle alone. Every room that was here
//	    ends with one effect, End for a leg, EndHalf for a room whose leg never came.
//	P5  A tombstone answers what comes after the end, or before the beginning when an Abort or
//	    Cancel overtakes it. Removed: 5 events to a room that only a timer ends.
//	P6  A lease is served once. When a tombstone goes it leaves a floor for the boot of its
//	    lease, and no lease at or below it is served. A word said on a lease that no tombstone
//	    keeps raises the floor at once. Removed: 8 events to a write after the final word. The
//	    price is that a Prealloc which is later than TombstonesMax other rooms is refused, and
//	    the gateway tries again.
//	P7  One lease per room, and one connection per lease: the one that Prealloc named. If it
//	    is gone, the write fails; it never goes elsewhere. The end of a connection ends every
//	    room that is bound to it: decode's Cancel may have gone down with it. Removed: 7
//	    events to a half room that only a timer ends.
//	P8  A deadline in every phase but the drain, which waits for things that touch memory:
//	    the engine returns, and the transport bounds every write (QUIET: a timer is no proof).
//	P9  First come, first served (sched.S1): blocks are taken when a room enters its first
//	    step, in order of arrival. A prompt that can never fit is refused as a client's error.
//	    The engine is shared: every step has the first prompts of the line in it, by halves,
//	    so that a short one does not wait for the whole of a long one (sched.S4, S5).
//	P10 Bounded. QueuedMax rooms wait and as many half rooms, whose Request is missing;
//	    RunningMax are in flight; tombstones and floors have limits in core/room.
//	P11 No poisoned prefix. A block is published when the step that filled it came home well,
//	    and its room was not given up; what is published is never written again (blocks.B4,
//	    B7). A room that enters takes what it finds, except that its last token is always
//	    computed, for its logits; what it found moves as the first chunks, without a step.
//	    The price: a long beginning that is found goes out in one burst, in the order of its
//	    data connection, and a short prompt's chunks wait behind it. Removed (the step came
//	    home): 1 event to a block that is found and holds nothing; (well): 2; (not given up):
//	    3; (what is found is not computed): 4 to a write into a block that others read.
//
//	P12 Nothing is computed twice at a time. A room does not enter while an older one computes
//	    blocks that it begins with, too: it finds them then. It holds nothing while it waits and
//	    waits for older ones alone, which do not wait for it, so it is not for ever; and those
//	    behind it may pass, for it is no resource that it waits for.
//	P13 Pins (blocks.B9). A room that asks for it leaves what can be found of its prompt pinned, for
//	    a time from its end; no more of the pool than PinnedMax is at a time.
//
// A driver owes the core: one StepDone for each Step, one WriteDone for each Write, whatever
// becomes of the link, and the LinkEnd of every connection; anything else it may lose, repeat
// or reorder.
package prefill
