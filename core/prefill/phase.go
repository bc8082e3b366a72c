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
var phaseTable = [phases]room.PhaseRow{
	NeedsPrealloc: room.Row("needs_prealloc", room.Bootstrapping, room.Bootstrap, "decode: Prealloc", "deadline"),
	NeedsRequest:  room.Row("needs_request", room.Bootstrapping, room.Bootstrap, "gateway: Request", "deadline"),
	Queued:        room.Row("queued", room.WaitingForInput, room.Waiting, "prefill: blocks and a step", "deadline"),
	Computing:     room.Row("computing", room.Transferring, room.Inflight, "prefill: engine", "deadline"),
	Writing:       room.Row("writing", room.Transferring, room.Inflight, "link: writes", "deadline"),
	Draining:      room.Row("draining", room.Transferring, room.Inflight, "prefill: step and writes under way", "the bound on steps and writes"),
	Succeeded:     room.Row("succeeded", room.PollSuccess, room.NoQueue, "", "tombstone timer"),
	Failed:        room.Row("failed", room.PollFailed, room.NoQueue, "", "tombstone timer"),
}

func (p Phase) String() string { return phaseTable[p].Name }

// Poll is SGLang's word for the phase.
func (p Phase) Poll() room.Poll { return phaseTable[p].Poll }

// Queue is the queue that a room of this phase stands in.
func (p Phase) Queue() room.Queue { return phaseTable[p].Queue }

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
