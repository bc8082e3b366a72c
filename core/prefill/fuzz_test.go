package prefill

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// world keeps a driver's side of the bargain while everything else is arbitrary: a step and a
// write come home exactly once each.
type world struct {
	t      *testing.T
	c      *Core
	out    Effects
	step   []StepItem
	writes []Effect
	kept   []kept
	owed   map[room.ID]bool
	word   map[said]room.Outcome
	keys   map[room.ID][]blocks.Key
	bytes  map[int32]blocks.Key // what blocks hold; zero is anything
}

// kept is what an effect gave away, and a copy of it.
type kept struct {
	blocks, blocksThen []int32
	items, itemsThen   []StepItem
}

// said names a final word. (A fuzzer gives one lease to several rooms, decode never does.)
type said struct {
	room  room.ID
	lease room.Lease
}

func (w *world) do(ev Event) {
	w.out.Reset()
	twin := w.c.Clone()
	w.c.Step(0, ev, &w.out)
	for _, e := range w.out.List {
		w.kept = append(w.kept, kept{e.Blocks, slices.Clone(e.Blocks), e.Items, slices.Clone(e.Items)})
		switch e.Kind {
		case Accept:
			if w.owed[e.Room] {
				w.t.Fatalf("room %s accepted twice", e.Room)
			}
			w.owed[e.Room] = true
		case End:
			if !w.owed[e.Room] || !e.Outcome.Ended() {
				w.t.Fatalf("room %s ends with %s, owed: %v", e.Room, e.Outcome, w.owed[e.Room])
			}
			delete(w.owed, e.Room)
		case Step:
			if w.step != nil || len(e.Items) == 0 {
				w.t.Fatal("a second or an empty step")
			}
			w.step = e.Items
			w.starts()
		case Write:
			if _, done := w.word[said{e.Room, e.Lease}]; done {
				w.t.Fatalf("lease %s is written after its final word", e.Lease)
			}
			w.writes = append(w.writes, e)
		case Settle:
			w.word[said{e.Settled.Room, e.Settled.Lease}] = e.Settled.Outcome
		}
	}
	var out Effects
	twin.Step(0, ev, &out)
	if !bytes.Equal(twin.AppendState(nil), w.c.AppendState(nil)) {
		w.t.Fatal("a copy answers the same event otherwise")
	}
	soonest, _, armed := w.c.NextTimer()
	for at := range w.c.Timers {
		if !armed || at < soonest {
			w.t.Fatalf("a timer is due at %v, NextTimer says %v, %v", at, soonest, armed)
		}
	}
	if at, timer, ok := w.c.NextTimer(); ok {
		found := false
		for a, t := range w.c.Timers {
			found = found || a == at && t == timer
		}
		if !found {
			w.t.Fatalf("NextTimer says %s, which is not armed", timer)
		}
	}
	n := w.c.Blocks()
	if n.Total != n.Free+n.Held+n.Cached+n.Quarantined || w.c.Idle() && (n.Free+n.Cached != n.Total || len(w.owed) > 0) {
		w.t.Fatalf("blocks %+v, idle %v, owed %v", n, w.c.Idle(), w.owed)
	}
}

// starts checks the items of a step: what was found is the KV of its keys, and what is about to
// be written is written and read by nobody else.
func (w *world) starts() {
	writing := map[int32]bool{}
	for _, it := range w.step {
		for i, b := range it.Blocks[:it.Cached/room.BlockTokens] {
			if w.bytes[b] != w.keys[it.Room][i] {
				w.t.Fatalf("room %s finds in block %d what is not the KV of its tokens", it.Room, b)
			}
		}
		for _, b := range it.Blocks[it.From/room.BlockTokens : room.BlocksFor(int(it.To))] {
			read := slices.ContainsFunc(w.writes, func(x Effect) bool { return slices.Contains(x.Blocks, b) })
			if writing[b] || read {
				w.t.Fatalf("block %d is written by two, or written and read", b)
			}
			writing[b] = true
			w.bytes[b] = blocks.Key{}
		}
	}
}

func (w *world) stepHome(ok byte) {
	ev := Event{Kind: StepDone}
	for i, it := range w.step {
		ev.Results = append(ev.Results, Result{Room: it.Room, OK: ok>>i&1 == 1})
		for n := it.From / room.BlockTokens; n < it.To/room.BlockTokens; n++ {
			if keys := w.keys[it.Room]; int(n) < len(keys) && ok>>i&1 == 1 {
				w.bytes[it.Blocks[n]] = keys[n]
			}
		}
	}
	w.step = nil
	if len(ev.Results) > 0 {
		w.do(ev)
	}
}

func (w *world) written(i byte, ok bool) {
	if len(w.writes) == 0 {
		return
	}
	k := int(i) % len(w.writes)
	e := w.writes[k]
	w.writes = append(w.writes[:k], w.writes[k+1:]...)
	w.do(Event{Kind: WriteDone, Room: e.Room, Lease: e.Lease, Chunk: e.Chunk, OK: ok})
}

// FuzzEveryLegEnds lets the fuzzer be the gateway, decode and the clock.
func FuzzEveryLegEnds(f *testing.F) {
	f.Add([]byte{0, 1, 2, 2, 1, 1, 5, 255, 0, 6, 0, 0})
	f.Add([]byte{3, 1, 1, 0, 1, 2, 2, 1, 1, 9, 0, 0, 8, 0, 0})
	// Room 2 finds what room 1 has filled, is aborted in its step, and room 3 finds it too.
	f.Add([]byte{0, 0, 50, 1, 130, 49, 5, 255, 0, 5, 255, 0, 6, 0, 0, 6, 0, 0, 0, 1, 50, 1, 131, 159, 3, 1, 0, 5, 255, 0, 0, 2, 50, 1, 132, 49})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := &world{t: t, owed: map[room.ID]bool{}, word: map[said]room.Outcome{}, keys: map[room.ID][]blocks.Key{}, bytes: map[int32]blocks.Key{},
			c: New(Config{Blocks: 6, QueuedMax: 3, RunningMax: 2, ChunkTokens: 32})}
		for ; len(script) >= 3; script = script[3:] {
			a, b := script[1], script[2]
			id := room.ID(a%5) + 1
			lease := room.Lease{Boot: room.Boot(b%2) + 1, Seq: uint64(b/2%8) + 1}
			switch script[0] % 11 {
			case 0:
				ev := Event{Kind: Request, Room: id, Tokens: int(b%110) - 1, Deadline: time.Duration(b)}
				if b < 220 { // rooms 1 to 3 begin alike, 4 and 5 too
					prompt := []string{"abcdef", "abcxyz"}[(id-1)/3]
					ev.Keys = keysOf(prompt[:max(0, ev.Tokens)/room.BlockTokens])
				}
				if w.c.find(id) == nil || !w.c.find(id).hasReq {
					w.keys[id] = ev.Keys
				}
				w.do(ev)
			case 1, 2:
				w.do(Event{Kind: Prealloc, Prealloc: room.Prealloc{Room: id, Lease: lease, Conn: room.Conn(a >> 7), Tokens: int(b % 110), From: int(a >> 5 & 3 * 8)}})
			case 3:
				w.do(Event{Kind: Abort, Room: id, Cause: room.Cause(b) % room.Internal})
			case 4:
				w.do(Event{Kind: Cancel, Cancel: room.Cancel{Room: id, Lease: lease}})
			case 5:
				w.stepHome(a)
			case 6:
				w.written(a, b&1 == 0)
			case 7:
				if _, timer, ok := w.c.NextTimer(); ok {
					w.do(Event{Kind: TimerFired, Timer: timer})
				}
			case 8:
				w.do(Event{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id}})
			case 10:
				w.do(Event{Kind: LinkEnd, Boot: lease.Boot, Conn: room.Conn(a >> 7)})
			case 9:
				w.do(Event{Kind: TimerFired, Timer: tombstoneTimer})
			}
		}
		for n := 0; !w.c.Idle(); n++ {
			if n > 1000 {
				t.Fatal("a leg does not end")
			}
			w.stepHome(255)
			w.written(0, true)
			if _, timer, ok := w.c.NextTimer(); ok && w.step == nil && len(w.writes) == 0 {
				w.do(Event{Kind: TimerFired, Timer: timer})
			}
		}
		for _, k := range w.kept {
			if !slices.Equal(k.blocks, k.blocksThen) || !slices.EqualFunc(k.items, k.itemsThen, func(a, b StepItem) bool {
				return a.Room == b.Room && a.From == b.From && a.To == b.To && slices.Equal(a.Blocks, b.Blocks)
			}) {
				t.Fatal("the core wrote to a slice that it had given away")
			}
		}
	})
}
