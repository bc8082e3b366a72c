package prefill

import (
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// EventKind says what happened.
type EventKind uint8

const (
	NoEvent EventKind = iota

	// Request: the gateway opens the leg of a room. Room, Tokens (length of the prompt),
	// Deadline (absolute, in the core's clock), Keys (of the prompt's complete blocks; fewer or
	// none if it shall not use the prefix cache). Exactly one Accept or Refuse answers it.
	Request
	// Abort: the gateway ends the leg, for Cause. It may overtake its Request.
	Abort
	// Prealloc: decode reserved blocks. Prealloc. It may come before the Request.
	Prealloc
	// Cancel: decode gave its lease up. Cancel.
	Cancel
	// StepDone: the engine step came home. Results, one for each item of the Step.
	StepDone
	// WriteDone: a write returned, its source is no longer read. Room, Lease, Chunk, OK.
	// Exactly one answers each Write, in any order.
	WriteDone
	// LinkEnd: a data connection is gone, and with it every control message that was on its
	// way. Boot (of the decode worker), Conn.
	LinkEnd
	// TimerFired: the moment of an armed timer has come. Timer.
	TimerFired
	// Drain: refuse every room that is not here yet. It cannot be undone.
	Drain

	events
)

var eventNames = [events]string{"none", "request", "abort", "prealloc", "cancel", "step_done", "write_done", "link_end", "timer", "drain"}

func (k EventKind) String() string { return eventNames[k] }

// Event is one input of the core. Which fields count depends on Kind.
type Event struct {
	Kind     EventKind
	Room     room.ID
	Tokens   int           // Request: length of the prompt
	Keys     []blocks.Key  // Request: Keys[i] names tokens 0 to (i+1)·BlockTokens; never written again
	Deadline time.Duration // Request: when the request's time is over
	Pin      time.Duration // Request: how long after its end its blocks are evicted last, at most room.PinMax; 0: not at all
	Cause    room.Cause    // Abort
	Lease    room.Lease    // WriteDone
	Chunk    int32         // WriteDone
	OK       bool          // WriteDone
	Boot     room.Boot     // LinkEnd: life of decode that dialled the connection
	Conn     room.Conn     // LinkEnd: unique within that life
	Timer    room.Timer    // TimerFired
	Prealloc room.Prealloc // Prealloc
	Cancel   room.Cancel   // Cancel
	Results  []Result      // StepDone
}

// Result is how one item of a step ended.
type Result struct {
	Room room.ID
	OK   bool
}

// EffectKind says what the driver must do.
type EffectKind uint8

const (
	NoEffect EffectKind = iota

	// Accept: the Request just stepped has become a leg. Room. One End will follow.
	Accept
	// Refuse: the Request just stepped has not become a leg and no End will follow. Room,
	// Outcome. (If the room is already here, that one is not touched.)
	Refuse
	// Step: run one engine step with Items; answer with one StepDone. At most one Step is
	// outstanding.
	Step
	// Write: move one chunk. Room, Lease, Conn, Chunk, FirstBlock, Blocks, Last. Answer with
	// one WriteDone, also when there is no such connection. The last chunk carries the side
	// data (first token, log-probabilities).
	Write
	// Settle: send Settled to the decode worker whose boot is Settled.Lease.Boot; drop it if
	// that worker is not linked.
	Settle
	// Freed: these blocks of a room have just become free. Room, Blocks. Those that went to the
	// prefix cache, or that another room reads, are not among them.
	Freed
	// End: an accepted leg is over, nothing of it is in flight. Room, Outcome.
	End
	// EndHalf: a room is over for which no leg was accepted here: its Prealloc had opened it,
	// or was turned away. Nobody waits for an answer; it is said so that no room ends without
	// a word. Room, Lease, Outcome, Began.
	EndHalf

	effects
)

var effectNames = [effects]string{"none", "accept", "refuse", "step", "write", "settle", "freed", "end", "end_half"}

func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing that the driver must do. Slices are never written again: the driver may
// keep them and must not change them.
type Effect struct {
	Kind       EffectKind
	Room       room.ID
	Lease      room.Lease    // Write, EndHalf
	Conn       room.Conn     // Write
	Chunk      int32         // Write: counts from 0 within the lease
	FirstBlock int32         // Write: logical number of Blocks[0] within the prompt
	Last       bool          // Write: no chunk follows
	Blocks     []int32       // Write, Freed: numbers of blocks in the pool
	Outcome    room.Outcome  // Refuse, End, EndHalf
	Began      time.Duration // EndHalf: when the room was first heard of
	Settled    room.Settled  // Settle
	Items      []StepItem    // Step
}

// StepItem is the part of one room in an engine step: compute KV and, in the last chunk, the
// logits of the last token, for the prompt's tokens From to To (exclusive).
type StepItem struct {
	Room     room.ID
	Chunk    int32 // number of the write that will carry it, -1 when decode has these tokens already
	From, To int32
	Last     bool    // To is the end of the prompt
	Blocks   []int32 // the room's whole block table, from token 0
	Cached   int32   // tokens that the room found here, all before From of its first item; their blocks are read only
}

// Effects is a list of effects in the order in which they must be done.
type Effects struct{ List []Effect }

// Reset empties the list and keeps its memory.
func (e *Effects) Reset() { e.List = e.List[:0] }

func (e *Effects) add(x Effect) { e.List = append(e.List, x) }
