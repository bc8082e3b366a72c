package decode_test

import (
	"fmt"
	"time"

	"baton/core/decode"
)

// A worker of the unified role: no link, no lease, the prompt is computed here.
func Example() {
	c := decode.New(decode.Config{Boot: 7, Blocks: 64, QueuedMax: 8, RunningMax: 4, ChunkTokens: 512})
	var out decode.Effects
	for _, ev := range []decode.Event{
		{Kind: decode.Request, Room: 1, Peer: decode.Local, Tokens: 40, MaxNew: 2, Deadline: time.Minute},
		{Kind: decode.StepDone, Results: []decode.Result{{Room: 1, OK: true}}},
		{Kind: decode.Begun, Room: 1, OK: true},
		{Kind: decode.StepDone, Results: []decode.Result{{Room: 1, OK: true, Finished: true}}},
	} {
		out.Reset()
		c.Step(time.Second, ev, &out)
		for _, e := range out.List {
			fmt.Println(ev.Kind, "→", e.Kind)
		}
	}
	// Output:
	// request → accept
	// request → step
	// step_done → begin
	// begun → emit
	// begun → step
	// step_done → emit
	// step_done → freed
	// step_done → end
}
