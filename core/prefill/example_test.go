package prefill_test

import (
	"fmt"
	"time"

	"baton/core/prefill"
	"baton/core/room"
)

// A driver steps the core with what happened and does what comes out, in order.
func Example() {
	c := prefill.New(prefill.Config{Blocks: 64, QueuedMax: 8, RunningMax: 4, ChunkTokens: 512})
	lease := room.Lease{Boot: 7, Seq: 1}
	var out prefill.Effects
	for _, ev := range []prefill.Event{
		{Kind: prefill.Request, Room: 1, Tokens: 40, Deadline: time.Minute},
		{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: 1, Lease: lease, Conn: 1, Tokens: 40, Left: time.Minute}},
		{Kind: prefill.StepDone, Results: []prefill.Result{{Room: 1, OK: true}}},
		{Kind: prefill.WriteDone, Room: 1, Lease: lease, Chunk: 0, OK: true},
	} {
		out.Reset()
		c.Step(time.Second, ev, &out)
		for _, e := range out.List {
			fmt.Println(ev.Kind, "→", e.Kind)
		}
	}
	// Output:
	// request → accept
	// prealloc → step
	// step_done → write
	// write_done → freed
	// write_done → settle
	// write_done → end
}
