package worker

import (
	"math/rand/v2"
	"testing"
	"time"

	"baton/core/room"
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
	empty(t, p, d)
}
