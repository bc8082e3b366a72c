package scenario

import (
	"fmt"
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// node is one life after the other of a worker in one place.
type node struct {
	r       *rig
	name    string
	id      int32 // on the roster; every life has its own
	up      bool
	suspect bool // taken out by the gateway
	away    bool // taken out by its operator
	drains  bool
	load    int
	stamps  []stamp
	step    []int32 // blocks that the step under way uses
}

// stamp says what a block holds: the KV of block i of a room, or of all prompts about a topic.
type stamp struct {
	topic string
	room  room.ID
	i     int32
}

func (n *node) begin(blocks int) {
	n.r.workers++
	n.id, n.up, n.suspect, n.drains, n.load, n.step = n.r.workers, true, false, false, 0, nil
	n.stamps = make([]stamp, blocks)
}

func (n *node) quiet(idle bool, b blocks.Count, timers func(func(time.Duration, room.Timer) bool)) {
	n.r.Helper()
	if !n.up {
		return
	}
	if !idle || b.Free+b.Cached != b.Total || n.load != 0 {
		n.r.Errorf("RELEASE: %s is idle %v, holds %+v, has a load of %d", n.name, idle, b, n.load)
	}
	for at, t := range timers {
		if t.Kind != room.TombstoneTimer {
			n.r.Errorf("%s waits until %v for the %v", n.name, at, t)
		}
	}
}

// free holds QUIET: nobody who could still touch these blocks is under way.
func (n *node) free(blocks []int32, used func(b int32) bool) {
	for _, b := range blocks {
		if slices.Contains(n.step, b) || used(b) {
			n.r.Fatalf("QUIET: %s frees block %d, which is in use:%s", n.name, b, n.r.left())
		}
	}
}

type prefillNode struct {
	node
	core   *prefill.Core
	writes []*write
	said   map[room.Lease]bool // final words
}

// write is one that has not come home.
type write struct {
	prefill.Effect
	boot room.Boot // of decode
}

func (n *prefillNode) start() {
	n.begin(n.r.pBlocks)
	n.core, n.writes, n.said = prefill.New(prefill.Config{Blocks: n.r.pBlocks, QueuedMax: n.r.queued, RunningMax: 16, ChunkTokens: n.r.chunk}), nil, map[room.Lease]bool{}
}

func (n *prefillNode) event(ev prefill.Event) {
	var out prefill.Effects
	n.drains = n.drains || ev.Kind == prefill.Drain
	before := n.live(n.core.Rooms)
	n.core.Step(n.r.now, ev, &out)
	named := map[room.ID]bool{}
	for _, e := range out.List {
		if e.Kind == prefill.End || e.Kind == prefill.EndHalf {
			named[e.Room] = true
		}
	}
	n.gone(before, n.live(n.core.Rooms), named)
	for i := range out.List {
		n.do(out.List[i])
	}
}

// live lists the rooms that are here, for an audit.
func (n *node) live(rooms func(func(room.View) bool)) (all []room.ID) {
	for v := range rooms {
		if !n.r.audit {
			break
		}
		all = append(all, v.Room)
	}
	return all
}

// gone holds that no room leaves a table without a word.
func (n *node) gone(before, after []room.ID, named map[room.ID]bool) {
	for _, id := range before {
		if !slices.Contains(after, id) && !named[id] {
			n.r.Fatalf("TERM: %s is gone from %s, and nobody said so", n.r.attempts[id].name, n.name)
		}
	}
}

func (n *prefillNode) do(e prefill.Effect) {
	r := n.r
	at := r.attempts[e.Room]
	switch e.Kind {
	case prefill.Accept:
		r.say(at, relay.Prefill, "accepted", relay.Event{Kind: relay.LegOpen})
	case prefill.Refuse:
		r.refused(&n.node, at, relay.Prefill, e.Outcome)
	case prefill.End:
		r.ended(at, relay.Prefill, e.Outcome)
	case prefill.Step:
		n.compute(e.Items)
	case prefill.Write:
		n.write(e)
	case prefill.Settle:
		if n.said[e.Settled.Lease] = true; slices.ContainsFunc(n.writes, func(w *write) bool { return w.Lease == e.Settled.Lease }) {
			r.Fatalf("QUIET: %s settles %s with a write under way", n.name, r.attempts[e.Settled.Room].name)
		}
		if l := r.linkOf(func(l *link) bool { return l.p == n && l.d.boot == e.Settled.Lease.Boot }); l != nil {
			l.push(l.p.name, "settled "+r.attempts[e.Settled.Room].name, "", func() { l.d.event(decode.Event{Kind: decode.Settled, Settled: e.Settled}) })
		}
	case prefill.Freed:
		n.free(e.Blocks, func(b int32) bool {
			return slices.ContainsFunc(n.writes, func(w *write) bool { return slices.Contains(w.Blocks, b) })
		})
	}
}

// compute is an engine step: the KV is there when it comes home.
func (n *prefillNode) compute(items []prefill.StepItem) {
	r, life := n.r, n.id
	var results []prefill.Result
	for _, it := range items {
		n.step = append(n.step, it.Blocks...)
		results = append(results, prefill.Result{Room: it.Room, OK: true})
		for b := range it.Cached / room.BlockTokens {
			if at := r.attempts[it.Room]; n.stamps[it.Blocks[b]] != at.holds(b) {
				r.Fatalf("OWN: %s finds %+v for its block %d", at.name, n.stamps[it.Blocks[b]], b)
			}
		}
		r.asked[r.attempts[it.Room].name] += it.To - it.From
	}
	home := func(ok bool) {
		if n.id != life {
			return
		}
		n.step = nil
		for i, it := range items {
			results[i].OK = ok
			for b := it.From / room.BlockTokens; ok && int(b) < room.BlocksFor(int(it.To)); b++ {
				n.stamps[it.Blocks[b]] = r.attempts[it.Room].holds(b)
			}
		}
		n.event(prefill.Event{Kind: prefill.StepDone, Results: results})
	}
	r.push(&item{name: "step " + n.name, do: func() { home(true) }, lost: func() { home(false) }})
}

// write moves a chunk: it comes home when its bytes are on the connection, and fails without one.
func (n *prefillNode) write(e prefill.Effect) {
	r, life := n.r, n.id
	if n.said[e.Lease] {
		r.Fatalf("%s writes under a lease on which it said its final word", n.name)
	}
	w := &write{e, e.Lease.Boot}
	n.writes = append(n.writes, w)
	name := fmt.Sprintf("%s#%d", r.attempts[e.Room].name, e.Chunk)
	r.push(&item{name: "write " + name, do: func() {
		if n.id != life {
			return
		}
		l := r.linkOf(func(l *link) bool { return l.p == n && l.d.boot == w.boot && l.conn == e.Conn })
		if l != nil {
			var kv []stamp
			for _, b := range e.Blocks {
				kv = append(kv, n.stamps[b])
			}
			l.push(n.name, "head "+name, "data", func() { l.d.arrive(l, e, kv, name) })
		}
		n.home(w, l != nil)
	}, lost: func() {
		if n.id == life {
			n.home(w, false)
		}
	}})
}

func (n *prefillNode) home(w *write, ok bool) {
	if i := slices.Index(n.writes, w); i >= 0 {
		n.writes = slices.Delete(n.writes, i, i+1)
		n.event(prefill.Event{Kind: prefill.WriteDone, Room: w.Room, Lease: w.Lease, Chunk: w.Chunk, OK: ok})
	}
}

type decodeNode struct {
	node
	core   *decode.Core
	boot   room.Boot
	inside []*receiver
	answer decode.Effect // to the chunk that has just arrived
}

// receiver is inside decode's memory.
type receiver struct {
	l      *link
	ev     decode.Event
	blocks []int32
}

func (n *decodeNode) start() {
	n.begin(n.r.dBlock)
	n.r.boots++
	n.boot, n.inside = n.r.boots, nil
	n.core = decode.New(decode.Config{Boot: n.boot, Blocks: n.r.dBlock, QueuedMax: n.r.dQueued, RunningMax: n.r.slots, ChunkTokens: n.r.chunk, AheadTokens: n.r.ahead})
}

func (n *decodeNode) event(ev decode.Event) {
	var out decode.Effects
	n.drains = n.drains || ev.Kind == decode.Drain
	before := n.live(n.core.Rooms)
	n.core.Step(n.r.now, ev, &out)
	named := map[room.ID]bool{}
	for _, e := range out.List {
		if e.Kind == decode.End {
			named[e.Room] = true
		}
	}
	n.gone(before, n.live(n.core.Rooms), named)
	for i := range out.List {
		n.do(out.List[i])
	}
}

func (n *decodeNode) do(e decode.Effect) {
	r := n.r
	at := r.attempts[e.Room]
	switch e.Kind {
	case decode.Accept:
		r.say(at, relay.Decode, "accepted", relay.Event{Kind: relay.LegOpen})
	case decode.Refuse:
		r.refused(&n.node, at, relay.Decode, e.Outcome)
	case decode.End:
		r.ended(at, relay.Decode, e.Outcome)
	case decode.Dial:
		n.dial(e.Peer)
	case decode.SendPrealloc, decode.SendCancel:
		l := r.linkOf(func(l *link) bool { return l.d == n && l.conn == e.Conn })
		if l == nil {
			return
		}
		name, ev := "prealloc "+at.name, prefill.Event{Kind: prefill.Prealloc, Prealloc: e.Prealloc}
		if e.Kind == decode.SendCancel {
			name, ev = "cancel "+at.name, prefill.Event{Kind: prefill.Cancel, Cancel: e.Cancel}
		}
		l.push(n.name, name, "", func() { l.p.event(ev) })
	case decode.Place:
		n.answer = e
	case decode.Step:
		n.generate(e.Items)
	case decode.Begin:
		n.first(at)
	case decode.Emit:
		at.made++
		r.say(at, relay.Decode, "tokens", relay.Event{Kind: relay.Tokens, N: 1}, token{at, at.made - 1})
	case decode.Retract:
		r.yielded[at.name]++
	case decode.Freed:
		n.free(e.Blocks, func(b int32) bool {
			return slices.ContainsFunc(n.inside, func(x *receiver) bool { return slices.Contains(x.blocks, b) })
		})
	}
}

// arrive announces a chunk; if it is let in, its bytes follow.
func (n *decodeNode) arrive(l *link, e prefill.Effect, kv []stamp, name string) {
	ev := decode.Event{Kind: decode.ChunkArrived, Room: e.Room, Lease: e.Lease, Conn: e.Conn, Chunk: e.Chunk, FirstBlock: int32(e.FirstBlock), N: int32(len(kv)), Last: e.Last}
	n.event(ev)
	if !n.answer.OK {
		n.r.scrapped++
		return
	}
	x := &receiver{l, ev, n.answer.Blocks}
	n.inside = append(n.inside, x)
	it := &item{name: "body " + name, lane: l.lane(l.p.name, "data"), do: func() {
		for i, b := range x.blocks {
			n.stamps[b] = kv[i]
		}
		n.out(x, decode.ChunkPlaced)
	}, lost: func() { n.out(x, decode.ChunkOff) }}
	it.held = n.r.isHeld(it.name)
	n.r.items = slices.Insert(n.r.items, 0, it) // before the next chunk of this connection
}

func (n *decodeNode) out(x *receiver, kind decode.EventKind) {
	if i := slices.Index(n.inside, x); i >= 0 {
		n.inside = slices.Delete(n.inside, i, i+1)
		x.ev.Kind = kind
		n.event(x.ev)
	}
}

// first feeds the first token, which reads the whole prompt.
func (n *decodeNode) first(at *attempt) {
	life := n.id
	if at.made > 0 {
		n.r.Fatalf("STREAM: %s begins a second time, behind %d tokens", at.name, at.made)
	}
	home := func(ok bool) {
		if n.id == life {
			n.event(decode.Event{Kind: decode.Begun, Room: at.id, OK: ok, Finished: at.out == 1})
		}
	}
	n.r.push(&item{name: "begin " + at.name, do: func() { home(true) }, lost: func() { home(false) }})
}

// generate is an engine step: it reads the KV of every token before those that it computes when it
// comes home, and leaves theirs.
func (n *decodeNode) generate(items []decode.StepItem) {
	r, life := n.r, n.id
	for _, it := range items {
		n.step = append(n.step, it.Blocks...)
	}
	home := func(ok bool) {
		if n.id != life {
			return
		}
		n.step = nil
		var results []decode.Result
		for _, it := range items {
			at := r.attempts[it.Room]
			for i := range int32(room.BlocksFor(int(it.From))) {
				if got := n.stamps[it.Blocks[i]]; got != at.holds(i) {
					r.Fatalf("OWN: block %d of %s holds %+v", i, at.name, got)
				}
			}
			for i := it.From / room.BlockTokens; int(i) < room.BlocksFor(int(it.To)); i++ {
				n.stamps[it.Blocks[i]] = at.holds(i)
			}
			if !it.Prefill && int(it.From) != at.prompt+at.made-1 {
				r.Fatalf("STREAM: %s has made %d tokens behind %d, and feeds position %d", at.name, at.made, at.prompt, it.From)
			}
			results = append(results, decode.Result{Room: it.Room, OK: ok, Finished: !it.Prefill && at.made+1 == at.out})
		}
		n.event(decode.Event{Kind: decode.StepDone, Results: results})
	}
	r.push(&item{name: "step " + n.name, do: func() { home(true) }, lost: func() { home(false) }})
}
