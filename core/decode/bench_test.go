package decode

import (
	"testing"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// BenchmarkToken is one engine step of 64 generating rooms: what the core costs a busy worker
// besides the engine. ns/op is per step, of 64 tokens.
func BenchmarkToken(b *testing.B) {
	const rooms = 64
	c := New(Config{Boot: 1, Blocks: 64 * 1024, QueuedMax: 100, RunningMax: rooms, ChunkTokens: 512})
	var out Effects
	results := make([]Result, 0, rooms)
	for i := range rooms {
		id := room.ID(i + 1)
		results = append(results, Result{Room: id, OK: true})
		c.Step(0, Event{Kind: Request, Room: id, Peer: Local, Tokens: 16, MaxNew: 15000, Deadline: time.Hour}, &out)
	}
	begun := 0
	for begun < rooms || len(out.List) == 0 || out.List[len(out.List)-1].Kind != Step || len(out.List[len(out.List)-1].Items) < rooms {
		list := append([]Effect(nil), out.List...)
		out.Reset()
		for _, e := range list {
			switch e.Kind {
			case Begin:
				begun++
				c.Step(0, Event{Kind: Begun, Room: e.Room, OK: true}, &out)
			case Step:
				ev := Event{Kind: StepDone}
				for _, it := range e.Items {
					ev.Results = append(ev.Results, Result{Room: it.Room, OK: true})
				}
				c.Step(0, ev, &out)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range c.rooms {
			c.rooms[i].made = 1 // they would come to their end
		}
		out.Reset()
		c.Step(0, Event{Kind: StepDone, Results: results}, &out)
		c.NextTimer()
	}
}

// BenchmarkWaiting is one event while 32 rooms compute and 256 wait, each for the prefix of one of them.
func BenchmarkWaiting(b *testing.B) {
	const computing, waiting, keys = 32, 256, 64
	c := New(Config{Boot: 1, Blocks: 64 * 1024, QueuedMax: computing + waiting, RunningMax: computing, ChunkTokens: 512})
	var out Effects
	for i := range computing + waiting {
		prompt := make([]blocks.Key, keys)
		for k := range prompt {
			prompt[k] = blocks.Key{byte(i % computing), byte(k), 1}
		}
		c.Step(0, Event{Kind: Request, Room: room.ID(i + 1), Peer: Local, Tokens: keys*room.BlockTokens + 1, MaxNew: 16, Keys: prompt, Deadline: time.Hour}, &out)
	}
	if c.count[NeedsBlocks] != waiting {
		b.Fatalf("%d rooms wait, want %d", c.count[NeedsBlocks], waiting)
	}
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		c.Step(0, Event{Kind: TimerFired}, &out)
	}
}
