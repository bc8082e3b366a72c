package decode

import (
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// Local is the peer of a room that is prefilled on this worker (the unified role).
const Local int32 = -1

// EventKind says what happened.
type EventKind uint8

const (
	NoEvent EventKind = iota

	// Request: the gateway opens the leg of a room. Room, Peer (the driver's handle of the
	// prefill worker, or Local), Tokens (length of the prompt), Branches, MaxNew (most tokens of
	// output of each), Deadline (absolute, in the core's clock). Exactly one Accept or Refuse answers.
	Request
	// Abort: the gateway ends the leg, for Cause. It may overtake its Request.
	Abort
	// Settled: prefill's final word on a lease. Settled.
	Settled
	// LinkUp: a Dial succeeded, both connections stand and the manifests agree. Peer, Conn.
	LinkUp
	// LinkFailed: a Dial failed. Peer, Cause (WorkerLost, or Internal if manifests differ).
	LinkFailed
	// LinkEnd: a link is gone and every receiver of it is off (its ChunkOff came before). Conn.
	LinkEnd
	// ChunkArrived: a chunk's header was read. Room, Lease, Conn, Chunk, FirstBlock, N, Last.
	// Exactly one Place answers it, before the receiver touches any memory.
	ChunkArrived
	// ChunkPlaced: the receiver that was let in has placed the chunk and left. Room, Lease, Chunk.
	ChunkPlaced
	// ChunkOff: the receiver that was let in has left without placing it. Room, Lease, Chunk.
	ChunkOff
	// ChunkRefused: a chunk's bytes had a wrong sum; comes after its ChunkOff. Room, Lease, Chunk.
	ChunkRefused
	// StepDone: the engine step came home. Results, one for each item of the Step.
	StepDone
	// Begun: the driver fed the first token of a branch that was begun. Room, Branch, OK, Finished;
	// not OK: Cause, if it is known to be another than side data that makes no sense.
	Begun
	// TimerFired: the moment of an armed timer has come. Timer.
	TimerFired
	// Drain: refuse every room that is not here yet. It cannot be undone.
	Drain

	events
)

var eventNames = [events]string{"none", "request", "abort", "settled", "link_up", "link_failed", "link_end",
	"chunk_arrived", "chunk_placed", "chunk_off", "chunk_refused", "step_done", "begun", "timer", "drain"}

func (k EventKind) String() string { return eventNames[k] }

// Event is one input of the core. Which fields count depends on Kind.
type Event struct {
	Kind       EventKind
	Room       room.ID
	Peer       int32         // Request, LinkUp, LinkFailed; LinkEnd for traces alone
	Tokens     int           // Request: length of the prompt
	Keys       []blocks.Key  // Request: Keys[i] names tokens 0 to (i+1)·BlockTokens of it; never written again
	Branches   int           // Request: outputs of the prompt, at most room.BranchesMax; 0 is 1
	MaxNew     int           // Request: most tokens of output of each branch, at least 1
	Deadline   time.Duration // Request: when the request's time is over
	Pin        time.Duration // Request: how long after its end the blocks of its prompt and first output are evicted last, at most room.PinMax; 0: not at all
	Cause      room.Cause    // Abort, LinkFailed, Begun
	Lease      room.Lease    // Chunk*
	Conn       room.Conn     // LinkUp, LinkEnd, ChunkArrived
	Chunk      int32         // Chunk*: counts from 0 within the lease
	FirstBlock int32         // ChunkArrived: logical number of its first block in the prompt
	N          int32         // ChunkArrived: number of blocks
	Last       bool          // ChunkArrived
	Branch     int32         // Begun: counts from 0
	OK         bool          // Begun: the side data made sense
	Finished   bool          // Begun: the first token was also the last
	Timer      room.Timer    // TimerFired
	Settled    room.Settled  // Settled
	Results    []Result      // StepDone
}

// Result is how one item of a step ended.
type Result struct {
	Room     room.ID
	Branch   int32 // that of the item
	OK       bool
	Finished bool       // that was the last token: stop condition met or MaxNew reached
	Cause    room.Cause // not OK: if it is known to be another than Internal
	// Key names all tokens of the room up to the one that the item fed, if that is the last of a
	// block: the next key of the chain that the Request began. Zero otherwise, of a branch that is
	// not 0, and of a room that uses no cache.
	Key blocks.Key
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
	// Dial: connect to Peer; answer with one LinkUp or LinkFailed.
	Dial
	// SendPrealloc: send Prealloc over the link that Conn belongs to; drop it if that is gone.
	SendPrealloc
	// SendCancel: send Cancel over the link that Conn belongs to; drop it if that is gone.
	SendCancel
	// Place: answer to the ChunkArrived just stepped. Room, Lease, Chunk, OK; if OK the
	// receiver may go into Blocks and must come back with ChunkPlaced or ChunkOff.
	Place
	// Step: make the Copies, then run one engine step with Items; answer with one StepDone. At
	// most one Step is outstanding.
	Step
	// Begin: the KV of the prompt is complete and the room has its slots: feed the first token
	// of a branch (from the side data or the last local chunk) to its output; answer with one
	// Begun. Room, Branch.
	Begin
	// Emit: the tokens of this branch from the StepDone or Begun just stepped go to the client.
	// Room, Branch.
	Emit
	// Retract: the room's KV is given up for an older room that needs a block; what it was asked
	// and what it said stay, and are computed again when there is room. Room. There is nothing to
	// do but to count it; its Freed follows.
	Retract
	// Freed: these blocks of a room have just become free. Room, Blocks.
	Freed
	// End: an accepted leg is over, nothing of it is in flight. Room, Outcome.
	End

	effects
)

var effectNames = [effects]string{"none", "accept", "refuse", "dial", "send_prealloc", "send_cancel", "place",
	"step", "begin", "emit", "retract", "freed", "end"}

func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing that the driver must do. Slices are never written again, but for the Items
// of a core that lends: the driver may keep them and must not change them.
type Effect struct {
	Kind     EffectKind
	Room     room.ID
	Peer     int32         // Dial
	Branch   int32         // Begin, Emit
	Conn     room.Conn     // SendPrealloc, SendCancel
	Lease    room.Lease    // Place
	Chunk    int32         // Place
	OK       bool          // Place
	Blocks   []int32       // Place, Freed: numbers of blocks in the pool
	Outcome  room.Outcome  // Refuse, End
	Prealloc room.Prealloc // SendPrealloc
	Cancel   room.Cancel   // SendCancel
	Copies   []Copy        // Step
	Items    []StepItem    // Step
}

// Copy says that the bytes of one block must be those of another before a step computes: branches
// begin with the same prompt, and go on in its last block unless that is full.
type Copy struct{ From, To int32 }

// StepItem is the part of one room in an engine step. A decode item feeds the newest token of
// the room, whose position is From (To is From+1), and samples the next. A prefill item
// computes the KV of the tokens From to To (exclusive), and in the last chunk of a prompt whose
// first token is not known yet that token. Of a room that was retracted these are tokens of its
// prompt and then of its output so far, and nothing is sampled from the latter.
type StepItem struct {
	Room     room.ID
	Branch   int32 // 0 of a prefill item, whose last chunk makes the first token of every branch
	Prefill  bool
	From, To int32
	Last     bool    // Prefill: To is the end of the prompt, and the first token is wanted
	Again    bool    // Prefill: of a room that was retracted
	Blocks   []int32 // the branch's whole block table, from token 0
}

// Effects is a list of effects in the order in which they must be done.
type Effects struct{ List []Effect }

// Reset empties the list and keeps its memory.
func (e *Effects) Reset() { e.List = e.List[:0] }

func (e *Effects) add(x Effect) { e.List = append(e.List, x) }
