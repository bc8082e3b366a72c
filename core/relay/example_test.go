package relay_test

import (
	"fmt"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// A driver hands events in and does what comes out, in order.
func Example() {
	core := relay.New(relay.Limits{})
	var out relay.Effects
	for _, ev := range []relay.Event{
		{Kind: relay.Arrive, Req: 1},
		{Kind: relay.Pair, Req: 1, Attempt: 1, OK: true, Room: 42, Prefill: 0, Decode: 1},
		{Kind: relay.LegEnd, Req: 1, Attempt: 1, Leg: relay.Decode, Outcome: room.Fail(room.ClientError), Said: true},
	} {
		out.Reset()
		core.Step(time.Second, ev, &out)
		for _, e := range out.List {
			switch e.Kind {
			case relay.Place:
				fmt.Println("choose a pair")
			case relay.Open:
				fmt.Println("open the", e.Leg, "leg at worker", e.Worker)
			case relay.Close:
				fmt.Println("close the", e.Leg, "leg")
			case relay.End:
				fmt.Println("tell the client:", e.Outcome)
			}
		}
	}
	// Output:
	// choose a pair
	// open the prefill leg at worker 0
	// open the decode leg at worker 1
	// close the prefill leg
	// tell the client: failed(client_error)
}
