package prefill

import (
	"testing"
	"time"

	"baton/core/room"
)

// BenchmarkRoom is the whole life of a room of four chunks beside a thousand rooms that wait
// for their Prealloc: what the core costs a busy worker. ns/op is per room.
func BenchmarkRoom(b *testing.B) {
	c := New(Config{Blocks: 1024, QueuedMax: 2000, RunningMax: 64, ChunkTokens: 512})
	var out Effects
	now := time.Duration(0)
	step := func(ev Event) {
		out.Reset()
		c.Step(now, ev, &out)
		c.NextTimer()
		now += time.Microsecond
	}
	for i := range 1000 {
		step(Event{Kind: Request, Room: room.ID(i + 1), Tokens: 2048, Deadline: now + time.Hour})
	}
	id := room.ID(1 << 40)
	b.ReportAllocs()
	for b.Loop() {
		id++
		l := room.Lease{Boot: 1, Seq: uint64(id)}
		step(Event{Kind: Request, Room: id, Tokens: 2048, Deadline: now + time.Minute})
		step(Event{Kind: Prealloc, Prealloc: room.Prealloc{Room: id, Lease: l, Conn: 1, Tokens: 2048, Left: time.Minute}})
		for range 4 {
			step(Event{Kind: StepDone, Results: []Result{{Room: id, OK: true}}})
		}
		for chunk := range 4 {
			step(Event{Kind: WriteDone, Room: id, Lease: l, Chunk: int32(chunk), OK: true})
		}
	}
}
