package prefill

import (
	"testing"
	"time"

	"baton/core/room"
)

// TestAQueuesAgeIsNotThatOfAPhase leads a room through all phases, a second each: its age in
// a queue begins where the queue changes, not where the phase does, or work that hangs would
// look young.
func TestAQueuesAgeIsNotThatOfAPhase(t *testing.T) {
	c := New(Config{Blocks: 8, QueuedMax: 8, RunningMax: 1, ChunkTokens: 16})
	var out Effects
	for i, row := range []struct {
		ev     Event
		phase  Phase
		queue  room.Queue
		oldest time.Duration
	}{
		{prealloc(1), NeedsRequest, room.Bootstrap, 1 * time.Second},
		{request(1), Computing, room.Inflight, 2 * time.Second},
		{stepHome(1), Writing, room.Inflight, 2 * time.Second},
		{Event{Kind: Abort, Room: 1, Cause: room.Cancelled}, Draining, room.Inflight, 2 * time.Second},
	} {
		out.Reset()
		c.Step(time.Duration(i+1)*time.Second, row.ev, &out)
		if p := c.find(1).phase; p != row.phase {
			t.Fatalf("after %s the room is %s, want %s", row.ev.Kind, p, row.phase)
		}
		for _, q := range c.Queues() {
			want := room.QueueStat{Queue: q.Queue}
			if q.Queue == row.queue {
				want.Len, want.Oldest = 1, row.oldest
			}
			if q != want {
				t.Errorf("after %s: %+v, want %+v", row.ev.Kind, q, want)
			}
		}
	}
}
