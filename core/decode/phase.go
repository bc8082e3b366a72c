package decode

import "baton/core/room"

// Phase is where a room is on the decode worker.
type Phase uint8

const (
	NeedsLink    Phase = iota // there is no link to its prefill worker
	NeedsBlocks               // waits for blocks for its prompt and output
	Preallocated              // lease given, Prealloc sent, no chunk yet
	Receiving                 // chunks are on their way
	Ready                     // all KV of the prompt is here; waits for a slot
	Unfilled                  // local: has blocks, waits for a slot
	Prefilling                // local: the prompt is being computed
	Beginning                 // the first token goes to the output
	Generating                // one token each step
	Draining                  // the outcome is decided, a receiver, the step or Begun is under way
	Succeeded                 // remembered by its tombstone
	Failed                    // remembered by its tombstone
	phases
)

// phaseTable says of every phase what operators call it, who moves it on and what ends it if
// that one never does. A test holds it complete.
var phaseTable = [phases]struct {
	name     string
	poll     room.Poll
	queue    room.Queue
	waitsFor string // the owner: whose move it is
	exit     string // what ends the phase if the owner never moves
}{
	NeedsLink:    {"needs_link", room.Bootstrapping, room.Preallocq, "link: dial", "deadline"},
	NeedsBlocks:  {"needs_blocks", room.Bootstrapping, room.Preallocq, "decode: blocks", "deadline"},
	Preallocated: {"preallocated", room.WaitingForInput, room.Transfer, "prefill: first chunk", "deadline"},
	Receiving:    {"receiving", room.Transferring, room.Transfer, "prefill: chunks and Settled", "deadline"},
	Ready:        {"ready", room.Transferring, room.Waiting, "decode: slot", "deadline"},
	Unfilled:     {"unfilled", room.WaitingForInput, room.Waiting, "decode: slot", "deadline"},
	Prefilling:   {"prefilling", room.Transferring, room.Running, "decode: engine", "deadline"},
	Beginning:    {"beginning", room.Transferring, room.Running, "decode: first token", "deadline"},
	Generating:   {"generating", room.Transferring, room.Running, "decode: engine", "deadline"},
	Draining:     {"draining", room.Transferring, room.Transfer, "decode: receiver, step or first token under way", "the bound on reads and steps"},
	Succeeded:    {"succeeded", room.PollSuccess, room.NoQueue, "", "tombstone timer"},
	Failed:       {"failed", room.PollFailed, room.NoQueue, "", "tombstone timer"},
}

func (p Phase) String() string { return phaseTable[p].name }

// Poll is SGLang's word for the phase.
func (p Phase) Poll() room.Poll { return phaseTable[p].poll }

// Queue is the queue that a room of this phase stands in.
func (p Phase) Queue() room.Queue { return phaseTable[p].queue }

// timed says that the room's deadline runs. It does not while draining: what is awaited there
// touches memory, and a timer is no proof that it has ended (QUIET). The transport and the
// engine bound it.
func (p Phase) timed() bool { return p < Draining }

// leased says that prefill may still send under the room's lease.
func (p Phase) leased() bool { return p == Preallocated || p == Receiving }

// ended is the phase in which an outcome is remembered.
func ended(o room.Outcome) Phase {
	if o.Kind == room.Success {
		return Succeeded
	}
	return Failed
}
