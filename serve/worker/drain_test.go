package worker

import (
	"math/rand/v2"
	"testing"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// A prefill worker that drains may hear of a room by its Prealloc first. It is not full, it
// leaves: decode's leg ends as worker_lost, which a gateway takes for the peer's, and serves the
// request elsewhere. As overload it blamed decode, and nobody was there to try.
func TestARoomThatMeetsADrainingPrefillIsNotRefusedAsOverload(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	p.Drain()
	q := ask(rand.New(rand.NewPCG(23, 24)), 40, 2, f.vocab)
	q.LeftMS, q.Link = time.Hour.Milliseconds(), p.Link()
	open(t, d, Decode, q).ended(room.WorkerLost)
	// The other way round, the room is remembered by its refused leg.
	q = ask(rand.New(rand.NewPCG(25, 26)), 40, 2, f.vocab)
	first := q
	q.LeftMS, q.Link = time.Hour.Milliseconds(), p.Link()
	refused := open(t, p, Prefill, first)
	within(t, "prefill's leg to be refused", refused.over)
	if refused.status != leg.LeavingStatus {
		t.Errorf("status %d, want %d", refused.status, leg.LeavingStatus)
	}
	open(t, d, Decode, q).ended(room.WorkerLost)
	empty(t, p, d)
}

// Behind its Prealloc comes the leg of that room. Whoever says worker_lost says it of its peer, so
// that the worker which leaves says nothing of the kind: its gateway would blame decode.
func TestALegThatComesToADrainingPrefillIsNotRefusedAsItsPeers(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	p.Drain()
	q := ask(rand.New(rand.NewPCG(25, 26)), 40, 2, f.vocab)
	q.LeftMS, q.Link = time.Hour.Milliseconds(), p.Link()
	open(t, d, Decode, q).ended(room.WorkerLost)
	q.Link = ""
	late := open(t, p, Prefill, q)
	within(t, "the refusal", late.over)
	if late.status != leg.LeavingStatus || late.end != nil {
		t.Errorf("status %d and %s, want %d and no outcome", late.status, late.body, leg.LeavingStatus)
	}
	empty(t, p, d)
}
