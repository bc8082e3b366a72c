package decode

import "baton/core/room"

// Phase is where a room is on the decode worker.
type Phase uint8

const (
	NeedsLink    Phase = iota // there is no link to its prefill worker
	NeedsBlocks               // waits for blocks for its prompt and some output
	Preallocated              // lease given, Prealloc sent, no chunk yet
	Receiving                 // chunks are on their way
	Ready                     // all KV of the prompt is here; waits for a slot
	Unfilled                  // local: has blocks, waits for a slot
	Prefilling                // local: the prompt is being computed
	Beginning                 // the first token goes to the output
	Generating                // one token each step
	Retracted                 // gave its blocks and its slot back; waits for blocks
	Regranted                 // retracted, has blocks again; waits for a slot
	Recomputing               // retracted: its prompt and output so far are being computed again
	Draining                  // the outcome is decided, a receiver, the step or Begun is under way
	Succeeded                 // remembered by its tombstone
	Failed                    // remembered by its tombstone
	phases
)

// phaseTable says of every phase what operators call it, who moves it on and what ends it if
// that one never does. A test holds it complete.
var phaseTable = [phases]room.PhaseRow{
	NeedsLink:    room.Row("needs_link", room.Bootstrapping, room.Preallocq, "link: dial", "deadline"),
	NeedsBlocks:  room.Row("needs_blocks", room.Bootstrapping, room.Preallocq, "decode: blocks", "deadline"),
	Preallocated: room.Row("preallocated", room.WaitingForInput, room.Transfer, "prefill: first chunk", "deadline"),
	Receiving:    room.Row("receiving", room.Transferring, room.Transfer, "prefill: chunks and Settled", "deadline"),
	Ready:        room.Row("ready", room.Transferring, room.Waiting, "decode: slot", "deadline"),
	Unfilled:     room.Row("unfilled", room.WaitingForInput, room.Waiting, "decode: slot", "deadline"),
	Prefilling:   room.Row("prefilling", room.Transferring, room.Running, "decode: engine", "deadline"),
	Beginning:    room.Row("beginning", room.Transferring, room.Running, "decode: first token", "deadline"),
	Generating:   room.Row("generating", room.Transferring, room.Running, "decode: engine", "deadline"),
	Retracted:    room.Row("retracted", room.Transferring, room.Waiting, "decode: blocks", "deadline"),
	Regranted:    room.Row("regranted", room.Transferring, room.Waiting, "decode: slot", "deadline"),
	Recomputing:  room.Row("recomputing", room.Transferring, room.Running, "decode: engine", "deadline"),
	Draining:     room.Row("draining", room.Transferring, room.Transfer, "decode: receiver, step or first token under way", "the bound on reads and steps"),
	Succeeded:    room.Row("succeeded", room.PollSuccess, room.NoQueue, "", "tombstone timer"),
	Failed:       room.Row("failed", room.PollFailed, room.NoQueue, "", "tombstone timer"),
}

func (p Phase) String() string { return phaseTable[p].Name }

// Poll is SGLang's word for the phase. Transferring lasts until the room has ended, also while it
// generates: there is no word for what comes after the transfer.
func (p Phase) Poll() room.Poll { return phaseTable[p].Poll }

// Queue is the queue that a room of this phase stands in.
func (p Phase) Queue() room.Queue { return phaseTable[p].Queue }

// timed says that the room's deadline runs. It does not while draining: what is awaited there
// touches memory, and a timer is no proof that it has ended (QUIET). The transport and the
// engine bound it.
func (p Phase) timed() bool { return p < Draining }

// leased says that prefill may still send under the room's lease.
func (p Phase) leased() bool { return p == Preallocated || p == Receiving }

// computing says that the room's prompt, or what was retracted, is being computed here.
func (p Phase) computing() bool { return p == Prefilling || p == Recomputing }

// unfilled says that the room has blocks, and KV of it is computed here before it generates.
func (p Phase) unfilled() bool { return p == Unfilled || p == Regranted || p.computing() }

// ended is the phase in which an outcome is remembered.
func ended(o room.Outcome) Phase {
	if o.Kind == room.Success {
		return Succeeded
	}
	return Failed
}
