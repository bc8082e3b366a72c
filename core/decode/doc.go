// Package decode decides everything that a decode worker does with its rooms: which are
// accepted, who gets blocks and a lease, which bytes may go where, who generates, and when
// memory is free again. A worker of the unified role is this core with rooms whose peer is
// Local: they prefill here.
//
// It never blocks, reads a clock, starts a goroutine, does I/O or looks at a token or a byte
// of KV. The driver (serve/worker) feeds it events and does its effects in order; it has no
// opinion of its own about rooms. proof/sim runs this package, unchanged, in every order.
// Drivers and proof may import it; other cores and the engine may not.
//
// # Life of a room
//
// ARCHITECTURE.md draws it, under "Life of a room": which phases the production code was seen to
// move a room between, and by which events. In short: a room waits for a link, for blocks, for the
// bytes and for a slot, or computes its prompt here, and generates; one that gave its blocks back
// is let in again and goes on where it was.
//
// Whatever ends a room early goes through Draining, which is left at once if nothing of the
// room is under way. The leg ends only then: its End says that no receiver, step or first
// token of it is left. phase.go says of each phase whose move it is and what ends it
// otherwise.
//
// Blocks for the whole prompt and for Config.AheadTokens of output are reserved before Prealloc is
// sent; while the room generates it grows, block by block. If the pool has none left the youngest
// room that can gives all of its own back (retract.go), also one whose KV came over a link: its
// prompt and its output so far are computed again, here, when there is room. With AheadTokens 0 the
// whole output is reserved and nothing is ever retracted; then the pool bounds how many rooms are
// let in by the longest output that they may have, which few of them reach.
//
// # Invariants
//
// Code and tests cite these labels. "Removed" is the shortest way in which things break
// without the rule: what the explorer finds when exactly this is taken out of this package.
//
//	D1  Every word and chunk names its lease and counts only under the lease that the room
//	    holds. A chunk is let in only while that lease waits, on the connection that it is
//	    bound to, within the prompt, and into blocks that no chunk was let into before.
//	    Removed (the lease): 16 events to a start on KV of another lease; (each chunk once): 7
//	    events to two receivers in one block.
//	D2  A room is Ready only with prefill's word and every chunk that the word counts, and
//	    with every block filled. Removed: 9 events to incomplete KV, without any fault.
//	D3  A block that a receiver is inside of, or that the engine or the first token uses, is
//	    pinned. An end meanwhile tells prefill at once and waits for it. Removed: 7 events to
//	    a block that is freed with a receiver inside.
//	D4  A chunk that cannot come any more is an event: the link that ended (after its
//	    receivers are off), or bytes that were refused. Every waiting lease on that link is
//	    given up. Removed: 11 and 13 events to a room that only its deadline ends.
//	D5  Sticky. The first decision is the outcome, nothing revives after it, and tokens go to
//	    the client only before it.
//	D6  One release. Blocks and slots are released in release, which end and retract call, and
//	    before that in leave what one of several outputs had for itself; legs end in end alone.
//	D7  A lease never repeats: it is the boot of this process and a counter. It keeps words,
//	    floors and log lines of two lives apart. Removed (the boot): 16 events to a room that
//	    only its deadline ends.
//	D8  A deadline in every phase but the drain, which waits for things that touch memory: the
//	    engine returns, and the transport bounds every read (QUIET: a timer is no proof).
//	D9  First come, first served (sched.S1), for blocks among the rooms whose link stands, and
//	    for slots among those that are ready. What can never fit is refused as a client's
//	    error. The engine is shared: a step has a token of every generating room, and the
//	    first local prompts by halves (sched.S3 to S5).
//	D10 Bounded. A room is taken while fewer than QueuedMax have no slot; at most RunningMax slots
//	    are given, one for each output, so QueuedMax and RunningMax rooms together are here. Peers and tombstones have limits in
//	    core/room.
//	D11 Retraction loses nothing and repeats nothing. What a room made stays counted, its tokens
//	    stay with the driver, its deadline runs on; it computes exactly the tokens that had KV and
//	    goes on with the same decode item. It begins a second time only if it never had begun.
//	D12 Only what nothing touches is retracted: between steps, with no receiver inside, no first
//	    token under way, no lease that waits (the pins of D3).
//	D13 It comes to an end (sched.S6 to S8): nobody yields before somebody made more than
//	    AheadTokens since the last one was let in, nobody yields but for an older one, and what
//	    is waited for never waits for the one who waits.
//	D14 No poisoned prefix (blocks.B7). Blocks of a prompt are published when the step that filled
//	    them came home well and its room was not given up; those that came over a link when the
//	    first token has shown that both legs are of one prompt. A room takes what it finds, also
//	    one that was retracted, and computes the rest, at least one token; or its Prealloc says
//	    which token is the first that it wants, and no chunk is let in before that. Removed
//	    (both): 13 events to a chunk in a block that another room reads. Blocks of the first or
//	    only output follow as they are filled, each under the key that its step brought home.
//	D15 Branches. The outputs of a room share the full blocks of its prompt, which the room holds
//	    once and nobody writes to; behind them each has blocks of its own, all that it may ever
//	    need, so that it never asks for more and is not retracted once it speaks. (Before that
//	    it is: it may wait for slots that others have who wait for its blocks.) The end of the
//	    prompt that fills no block is the first output's; the others copy it in the room's first
//	    step, which all take together, and before which it belongs to the room: it is kept until
//	    all are over. Slots are given for all at once, and given back one by one.
//	D16 Nothing is computed twice at a time. A room that computes here gets no blocks while an older
//	    one computes blocks that it begins with, too: it finds them then. It holds nothing while it
//	    waits and waits for older ones alone, which do not wait for it, so it is not for ever; and
//	    those behind it may pass, for it is no resource that it waits for. Views say so
//	    (room.OlderPrefix).
//	D17 Pins (blocks.B9). A room that asks for it leaves what can be found of its prompt and of its
//	    first output pinned, for a time from its end; no more of the pool than PinnedMax is at a
//	    time.
//
// The tombstone answers a Request that its Abort overtook. Cancel and the repeated Prealloc
// are there for speed: the explorer finds nothing that breaks without them.
//
// A driver owes the core: one answer for each Dial, Step and Begin, one ChunkPlaced or
// ChunkOff for each receiver let in, and LinkEnd after the receivers of the link are off;
// anything else it may lose, repeat or reorder.
package decode
