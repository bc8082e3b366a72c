package prefill

import "baton/core/room"

// Phase is where a room is on the prefill worker.
type Phase uint8

const (
	NeedsPrealloc Phase = iota // the Request is here, decode's Prealloc is not
	NeedsRequest               // the other way round
	Queued                     // both are here; waits for blocks, a place in flight and a step
	Computing                  // holds blocks; some of the prompt is still to be computed
	Writing                    // all is computed, some writes have not come home
	Draining                   // the outcome is decided, the step or writes have not come home
	Succeeded                  // settled; remembered by its tombstone
	Failed                     // settled; remembered by its tombstone
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
	NeedsPrealloc: {"needs_prealloc", room.Bootstrapping, room.Bootstrap, "decode: Prealloc", "deadline"},
	NeedsRequest:  {"needs_request", room.Bootstrapping, room.Bootstrap, "gateway: Request", "deadline"},
	Queued:        {"queued", room.WaitingForInput, room.Waiting, "prefill: blocks and a step", "deadline"},
	Computing:     {"computing", room.Transferring, room.Inflight, "prefill: engine", "deadline"},
	Writing:       {"writing", room.Transferring, room.Inflight, "link: writes", "deadline"},
	Draining:      {"draining", room.Transferring, room.Inflight, "prefill: step and writes under way", "the bound on steps and writes"},
	Succeeded:     {"succeeded", room.PollSuccess, room.NoQueue, "", "tombstone timer"},
	Failed:        {"failed", room.PollFailed, room.NoQueue, "", "tombstone timer"},
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

// ended is the phase in which an outcome is remembered.
func ended(o room.Outcome) Phase {
	if o.Kind == room.Success {
		return Succeeded
	}
	return Failed
}
