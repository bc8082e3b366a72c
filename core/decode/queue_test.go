package decode

import (
	"testing"
	"time"

	"baton/core/room"
)

// TestAQueuesAgeIsNotThatOfAPhase leads a room through its phases, a second each: its age in a
// queue begins where the queue changes, not where the phase does, or work that hangs would look
// young.
func TestAQueuesAgeIsNotThatOfAPhase(t *testing.T) {
	type step struct {
		ev     Event
		phase  Phase
		queue  room.Queue
		oldest time.Duration
	}
	for name, steps := range map[string][]step{
		"pair": {
			{request(1, 7), NeedsLink, room.Preallocq, 1 * time.Second},
			{Event{Kind: LinkUp, Peer: 7, Conn: 1}, Preallocated, room.Transfer, 2 * time.Second},
			{chunkEvent(ChunkArrived, one, 0), Receiving, room.Transfer, 2 * time.Second},
			{chunkEvent(ChunkPlaced, one, 0), Receiving, room.Transfer, 2 * time.Second},
			{settledEvent(one, 1), Beginning, room.Running, 5 * time.Second},
			{Event{Kind: Begun, Room: 1, OK: true}, Generating, room.Running, 5 * time.Second},
			{Event{Kind: Abort, Room: 1, Cause: room.Cancelled}, Draining, room.Running, 5 * time.Second},
		},
		"unified": {
			{request(1, Local), Prefilling, room.Running, 1 * time.Second},
			{stepHome(1, true), Beginning, room.Running, 1 * time.Second},
			{Event{Kind: Begun, Room: 1, OK: true}, Generating, room.Running, 1 * time.Second},
		},
	} {
		c := New(Config{Boot: 1, Blocks: 4, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16})
		var out Effects
		for i, row := range steps {
			out.Reset()
			c.Step(time.Duration(i+1)*time.Second, row.ev, &out)
			if p := c.find(1).phase; p != row.phase {
				t.Fatalf("%s: after %s the room is %s, want %s", name, row.ev.Kind, p, row.phase)
			}
			for _, q := range c.Queues() {
				want := room.QueueStat{Queue: q.Queue}
				if q.Queue == row.queue {
					want.Len, want.Oldest = 1, row.oldest
				}
				if q != want {
					t.Errorf("%s: after %s: %+v, want %+v", name, row.ev.Kind, q, want)
				}
			}
		}
	}
}
