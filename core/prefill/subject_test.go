package prefill

import (
	"testing"
	"time"

	"baton/core/room"
)

// TestTracesNameTheirRoom steps a room through its life, and through a cancel, and wants every
// event and effect to say whose it is, but for those that are not one room's.
func TestTracesNameTheirRoom(t *testing.T) {
	lease := room.Lease{Boot: 1, Seq: 1}
	lives := [][]Event{
		{prealloc(1), request(1), stepHome(1), {Kind: WriteDone, Room: 1, Lease: lease, OK: true}, prealloc(1), {Kind: Drain}},
		{request(1), prealloc(1), {Kind: Cancel, Cancel: room.Cancel{Room: 1, Lease: lease}}, stepHome(1), request(1)},
		{prealloc(1), {Kind: LinkEnd, Boot: 1, Conn: 1}},
		{request(1), {Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: 1}}, {Kind: TimerFired, Timer: tombstoneTimer}},
		{{Kind: Abort, Room: 1}},
	}
	nobody := map[EventKind]bool{StepDone: true, LinkEnd: true, Drain: true}
	leased := map[EventKind]bool{Prealloc: true, Cancel: true, WriteDone: true}
	seen, done := map[EventKind]bool{}, map[EffectKind]bool{}
	for _, life := range lives {
		c := New(Config{Blocks: 2, QueuedMax: 4, RunningMax: 4, ChunkTokens: 16})
		for _, ev := range life {
			seen[ev.Kind] = true
			id, l := ev.Subject()
			if ev.Timer != tombstoneTimer && id == 0 != nobody[ev.Kind] || (l == lease) != leased[ev.Kind] {
				t.Errorf("%s is about room %d, lease %s", ev.Kind, id, l)
			}
			if ev.Kind == LinkEnd && l.Boot != 1 {
				t.Errorf("%s does not say whose link it was", ev.Kind)
			}
			var out Effects
			c.Step(time.Second, ev, &out)
			for i := range out.List {
				e := &out.List[i]
				done[e.Kind] = true
				id, l := e.Subject()
				if (id == 0) != (e.Kind == Step) || (l == lease) != (e.Kind == Write || e.Kind == Settle || e.Kind == EndHalf) {
					t.Errorf("%s is about room %d, lease %s", e.Kind, id, l)
				}
			}
		}
		if c.PhaseOf(9) != "" || (c.PhaseOf(1) == "") != (c.find(1) == nil && c.tombs.Find(1) == nil) {
			t.Errorf("after %v room 1 is %q, room 9 %q", life[len(life)-1].Kind, c.PhaseOf(1), c.PhaseOf(9))
		}
	}
	if len(seen) != int(eventsAll)-1 || len(done) != int(effects)-1 {
		t.Errorf("%d kinds of events of %d and %d of effects of %d were tried", len(seen), eventsAll-1, len(done), effects-1)
	}
}
