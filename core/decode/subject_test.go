package decode

import (
	"testing"
	"time"

	"baton/core/room"
)

// TestTracesNameTheirRoom steps rooms through their lives and wants every event and effect to
// say whose it is, but for those that are not one room's.
func TestTracesNameTheirRoom(t *testing.T) {
	up := Event{Kind: LinkUp, Peer: 7, Conn: 1}
	lives := [][]Event{
		{request(1, 7), up, chunkEvent(ChunkArrived, one, 0), settledEvent(one, 1), chunkEvent(ChunkPlaced, one, 0),
			{Kind: Begun, Room: 1, OK: true}, {Kind: StepDone, Results: []Result{{Room: 1, OK: true, Finished: true}}}, request(1, 7), {Kind: Drain}},
		{request(1, 7), up, chunkEvent(ChunkArrived, one, 0), chunkEvent(ChunkOff, one, 0), chunkEvent(ChunkRefused, one, 0)},
		{request(1, 7), up, {Kind: TimerFired, Timer: room.Timer{Kind: room.ResendTimer, Room: 1}}, {Kind: LinkEnd, Conn: 1}},
		{request(1, 7), {Kind: LinkFailed, Peer: 7}, {Kind: TimerFired, Timer: tombstoneTimer}},
		{{Kind: Abort, Room: 1}},
		retracting,
	}
	nobody := map[EventKind]bool{StepDone: true, LinkUp: true, LinkFailed: true, LinkEnd: true, Drain: true}
	leased := map[EventKind]bool{Settled: true, ChunkArrived: true, ChunkPlaced: true, ChunkOff: true, ChunkRefused: true}
	seen, done := map[EventKind]bool{}, map[EffectKind]bool{}
	for _, life := range lives {
		c := New(Config{Boot: 1, Blocks: 2, QueuedMax: 4, RunningMax: 1, ChunkTokens: 16, AheadTokens: 1})
		for _, ev := range life {
			seen[ev.Kind] = true
			if id, l := ev.Subject(); ev.Timer != tombstoneTimer && (id == 0) != nobody[ev.Kind] || (l == one) != leased[ev.Kind] {
				t.Errorf("%s is about room %d, lease %s", ev.Kind, id, l)
			}
			var out Effects
			c.Step(time.Second, ev, &out)
			for i := range out.List {
				e := &out.List[i]
				done[e.Kind] = true
				id, l := e.Subject()
				if (id == 0) != (e.Kind == Step || e.Kind == Dial) || (l == one) != (e.Kind == SendPrealloc || e.Kind == SendCancel || e.Kind == Place) {
					t.Errorf("%s is about room %d, lease %s", e.Kind, id, l)
				}
			}
		}
		if c.PhaseOf(9) != "" || (c.PhaseOf(1) == "") != (c.find(1) == nil && c.tombs.Find(1) == nil) {
			t.Errorf("after %v room 1 is %q, room 9 %q", life[len(life)-1].Kind, c.PhaseOf(1), c.PhaseOf(9))
		}
	}
	if len(seen) != int(events)-1 || len(done) != int(effects)-1 {
		t.Errorf("%d kinds of events of %d and %d of effects of %d were tried", len(seen), events-1, len(done), effects-1)
	}
}
