package decode

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// world keeps a driver's side of the bargain while everything else is arbitrary: dials, steps,
// first tokens and receivers come home exactly once each, and receivers leave before their
// link ends.
type world struct {
	t       *testing.T
	c       *Core
	out     Effects
	step    []StepItem
	begun   []Event // a Begun for each Begin
	dials   []int32
	inside  []Event // the ChunkArrived of each
	conns   []room.Conn
	newest  room.Conn
	leases  []room.Prealloc
	kept    []kept
	owed    map[room.ID]bool
	blocked map[int32]room.ID // blocks that a receiver is inside of
	keys    map[room.ID][]blocks.Key
	bytes   map[int32]blocks.Key // what blocks hold; zero is anything
}

// kept is what an effect gave away, and a copy of it.
type kept struct {
	blocks, blocksThen []int32
	items, itemsThen   []StepItem
}

func (w *world) do(ev Event) {
	w.out.Reset()
	twin := w.c.Clone()
	w.c.Step(0, ev, &w.out)
	places := 0
	for _, e := range w.out.List {
		places += w.effect(ev, &e)
		w.kept = append(w.kept, kept{e.Blocks, slices.Clone(e.Blocks), e.Items, slices.Clone(e.Items)})
	}
	if places > 1 || (places == 1) != (ev.Kind == ChunkArrived) {
		w.t.Fatalf("%d answers to a chunk", places)
	}
	var out Effects
	twin.Step(0, ev, &out)
	if !bytes.Equal(twin.AppendState(nil), w.c.AppendState(nil)) {
		w.t.Fatal("a copy answers the same event otherwise")
	}
	w.audit()
}

// effect does what the core asks; it returns 1 for an answer to a chunk.
func (w *world) effect(ev Event, e *Effect) (places int) {
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
		for _, c := range e.Copies {
			w.bytes[c.To] = blocks.Key{}
			if w.blocked[c.From] != 0 || w.blocked[c.To] != 0 {
				w.t.Fatalf("block %d is copied over block %d with a receiver inside", c.From, c.To)
			}
		}
		w.starts()
	case Begin:
		w.begun = append(w.begun, Event{Kind: Begun, Room: e.Room, Branch: e.Branch})
	case Emit:
		if !w.owed[e.Room] {
			w.t.Fatalf("tokens of room %s, which is over", e.Room)
		}
	case Dial:
		w.dials = append(w.dials, e.Peer)
	case SendPrealloc:
		w.leases = append(w.leases, e.Prealloc)
	case Place:
		places = 1
		if e.OK {
			w.inside = append(w.inside, ev)
			for _, b := range e.Blocks {
				if w.blocked[b] != 0 {
					w.t.Fatalf("two receivers in block %d", b)
				}
				w.blocked[b] = e.Room
			}
		}
	case Freed:
		for _, b := range e.Blocks {
			if w.blocked[b] != 0 {
				w.t.Fatalf("block %d freed with a receiver inside", b)
			}
		}
	}
	return places
}

// audit compares what the core says of itself with what it shows.
func (w *world) audit() {
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
	if n.Total != n.Free+n.Held+n.Cached+n.Quarantined || w.c.Idle() && (n.Free+n.Cached != n.Total || len(w.owed) > 0 || w.c.slots != 0) {
		w.t.Fatalf("blocks %+v, idle %v, owed %v, slots %d", n, w.c.Idle(), w.owed, w.c.slots)
	}
}

// starts checks the items of a step: of the prompt, what is read is the KV of its keys, and what is
// about to be written is nobody else's.
func (w *world) starts() {
	writing := map[int32]bool{}
	for _, it := range w.step {
		keys := w.keys[it.Room]
		for i, b := range it.Blocks[:min(int(it.From)/room.BlockTokens, len(keys))] {
			if w.bytes[b] != keys[i] {
				w.t.Fatalf("room %s reads in block %d what is not the KV of its tokens", it.Room, b)
			}
		}
		for _, b := range it.Blocks[it.From/room.BlockTokens : room.BlocksFor(int(it.To))] {
			if writing[b] || w.blocked[b] != 0 {
				w.t.Fatalf("block %d is written by two", b)
			}
			writing[b] = true
			w.bytes[b] = blocks.Key{}
		}
	}
}

// said is the key of a block that the output of a room fills.
func said(id room.ID, to int32) (k blocks.Key) {
	k[14], k[15] = byte(id), byte(to)
	return k
}

// filled notes that blocks of a room's table hold its prompt now.
func (w *world) filled(id room.ID, table []int32, from, to int) {
	for n := from; n < min(to, len(w.keys[id])); n++ {
		w.bytes[table[n]] = w.keys[id][n]
	}
}

func (w *world) stepHome(bits byte) {
	ev := Event{Kind: StepDone}
	for i, it := range w.step {
		if ok := bits>>i&1 == 1; ok && !it.Prefill && it.Branch == 0 && int(it.To) == (len(w.keys[it.Room])+1)*room.BlockTokens {
			w.keys[it.Room] = append(slices.Clip(w.keys[it.Room]), said(it.Room, it.To))
			ev.Results = append(ev.Results, Result{Key: said(it.Room, it.To)})
		} else {
			ev.Results = append(ev.Results, Result{})
		}
		if bits>>i&1 == 1 {
			w.filled(it.Room, it.Blocks, int(it.From)/room.BlockTokens, int(it.To)/room.BlockTokens)
		}
		e := w.c.find(it.Room)
		last := !it.Prefill && e.at(it.Branch).made+1 == e.maxNew
		r := &ev.Results[i]
		r.Room, r.Branch, r.OK, r.Finished = it.Room, it.Branch, bits>>i&1 == 1, last || bits>>7 == 1
	}
	w.step = nil
	if len(ev.Results) > 0 {
		w.do(ev)
	}
}

func (w *world) beginHome(bits byte) {
	if len(w.begun) > 0 {
		ev := w.begun[0]
		w.begun = w.begun[1:]
		ev.OK, ev.Finished = bits&1 == 1, bits&2 == 2 || w.c.find(ev.Room).maxNew == 1
		w.do(ev)
	}
}

func (w *world) dialHome(ok bool) {
	if len(w.dials) == 0 {
		return
	}
	peer := w.dials[0]
	w.dials = w.dials[1:]
	if !ok {
		w.do(Event{Kind: LinkFailed, Peer: peer})
		return
	}
	w.newest++
	w.conns = append(w.conns, w.newest)
	w.do(Event{Kind: LinkUp, Peer: peer, Conn: w.newest})
}

func (w *world) receiverHome(i byte, k EventKind) {
	if len(w.inside) == 0 {
		return
	}
	at := int(i) % len(w.inside)
	ev := w.inside[at]
	w.inside = append(w.inside[:at], w.inside[at+1:]...)
	e := w.c.find(ev.Room)
	for _, b := range e.blocks[ev.FirstBlock : ev.FirstBlock+ev.N] {
		delete(w.blocked, b)
		w.bytes[b] = blocks.Key{}
	}
	if k == ChunkPlaced {
		w.filled(ev.Room, e.blocks, int(ev.FirstBlock), int(ev.FirstBlock+ev.N))
	}
	if k == ChunkRefused {
		ev.Kind = ChunkOff
		w.do(ev)
	}
	ev.Kind = k
	w.do(ev)
}

func (w *world) linkEnd() {
	if len(w.conns) == 0 {
		return
	}
	k := w.conns[0]
	w.conns = w.conns[1:]
	for i := 0; i < len(w.inside); {
		if w.inside[i].Conn == k {
			w.receiverHome(byte(i), ChunkOff)
		} else {
			i++
		}
	}
	w.do(Event{Kind: LinkEnd, Conn: k})
}

// FuzzEveryLegEnds lets the fuzzer be the gateway, prefill, the link, the engine and the clock.
func FuzzEveryLegEnds(f *testing.F) {
	f.Add([]byte{0, 1, 2, 6, 1, 1, 7, 0, 0, 8, 0, 0, 1, 0, 1, 4, 1, 1, 3, 1, 1})
	f.Add([]byte{0, 0, 3, 3, 1, 1, 4, 1, 1, 3, 1, 1, 3, 129, 1})
	// Room 1 computes a prompt here; rooms 2 and 3 find it, and one of them is aborted in its step.
	f.Add([]byte{0, 0, 52, 3, 127, 0, 3, 127, 0, 4, 1, 0, 3, 127, 0, 0, 1, 52, 0, 2, 52, 2, 1, 0, 3, 127, 0, 3, 127, 0, 4, 1, 0, 3, 127, 0})
	// Two outputs of one prompt, which end one after the other.
	f.Add([]byte{0, 30, 82, 3, 127, 0, 3, 127, 0, 3, 127, 0, 4, 1, 0, 4, 1, 0, 3, 127, 0, 3, 127, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		legsEnd(t, script, 0)
		legsEnd(t, script, 2) // blocks for two tokens ahead: rooms are retracted
	})
}

func legsEnd(t *testing.T, script []byte, ahead int) {
	w := &world{t: t, owed: map[room.ID]bool{}, blocked: map[int32]room.ID{}, keys: map[room.ID][]blocks.Key{}, bytes: map[int32]blocks.Key{},
		c: New(Config{Boot: 1, Blocks: 6, QueuedMax: 3, RunningMax: 2, ChunkTokens: 32, AheadTokens: ahead})}
	for ; len(script) >= 3; script = script[3:] {
		w.one(script[0], script[1], script[2])
	}
	for n := 0; !w.c.Idle(); n++ {
		if n > 1000 {
			t.Fatal("a leg does not end")
		}
		w.stepHome(255)
		w.beginHome(1)
		w.receiverHome(0, ChunkPlaced)
		if _, timer, ok := w.c.NextTimer(); ok && timer.Kind == room.DeadlineTimer {
			w.do(Event{Kind: TimerFired, Timer: timer})
		} else if ok && w.step == nil && len(w.begun) == 0 && len(w.inside) == 0 {
			w.do(Event{Kind: Abort, Room: timer.Room})
		}
	}
	for _, k := range w.kept {
		if !slices.Equal(k.blocks, k.blocksThen) || !slices.EqualFunc(k.items, k.itemsThen, func(a, b StepItem) bool {
			return a.Room == b.Room && a.Branch == b.Branch && a.From == b.From && a.To == b.To && slices.Equal(a.Blocks, b.Blocks)
		}) {
			t.Fatal("the core wrote to a slice that it had given away")
		}
	}
}

func (w *world) one(kind, a, b byte) {
	id := room.ID(a%5) + 1
	switch kind % 14 {
	case 0:
		ev := Event{Kind: Request, Room: id, Peer: int32(a/5%3) - 1, Tokens: int(b%96) - 1, MaxNew: int(b % 5), Deadline: time.Duration(b)}
		if a < 220 { // rooms 1 to 3 begin alike, 4 and 5 too
			prompt := []string{"abcdef", "abcxyz"}[(id-1)/3]
			ev.Keys = keysOf(prompt[:max(0, ev.Tokens)/room.BlockTokens])
		}
		if w.c.find(id) == nil {
			w.keys[id] = ev.Keys
		}
		if ev.Branches = int(a / 15 % 4); b&64 == 0 { // one, mostly
			ev.Branches = 0
		}
		w.do(ev)
	case 1:
		if len(w.leases) > 0 {
			p := w.leases[int(a)%len(w.leases)]
			s := room.Settled{Room: p.Room, Lease: p.Lease, Outcome: room.Done(), Chunks: int(b % 4)}
			if b&16 != 0 {
				s.Outcome = room.Fail(room.Overload)
			}
			w.do(Event{Kind: Settled, Settled: s})
		}
	case 2:
		w.do(Event{Kind: Abort, Room: id, Cause: room.Cause(b) % room.Internal})
	case 3:
		w.stepHome(a)
	case 4:
		w.beginHome(a)
	case 5, 6:
		w.dialHome(kind%14 == 6)
	case 7, 8, 9:
		if len(w.leases) > 0 {
			p := w.leases[int(a)%len(w.leases)]
			w.do(Event{Kind: ChunkArrived, Room: p.Room, Lease: p.Lease, Conn: p.Conn, Chunk: int32(b % 4), FirstBlock: int32(b / 4 % 4), N: int32(b / 16 % 8)})
		}
	case 10:
		w.receiverHome(a, [...]EventKind{ChunkPlaced, ChunkPlaced, ChunkOff, ChunkRefused}[b%4])
	case 11:
		w.linkEnd()
	case 12:
		if _, timer, ok := w.c.NextTimer(); ok {
			w.do(Event{Kind: TimerFired, Timer: timer})
		}
	case 13:
		w.do(Event{Kind: TimerFired, Timer: room.Timer{Kind: room.DeadlineTimer, Room: id}})
	}
}
