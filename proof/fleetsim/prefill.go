package fleetsim

import (
	"fmt"
	"slices"
	"time"

	"baton/core/prefill"
	"baton/core/room"
)

// prefiller drives one prefill core as serve/worker does.
type prefiller struct {
	core      *prefill.Core
	out       prefill.Effects
	todo      []prefill.Event
	stepping  bool
	pool      pool
	links     []*link
	rooms     map[room.ID]*promptRoom // accepted legs
	half      map[room.ID]bool        // rooms that their Prealloc opened, and nobody else
	running   []prefill.StepItem      // of the engine step
	answering *leg                    // whose Request is stepped
	results   []prefill.Result
}

// promptRoom is what the driver keeps of a leg.
type promptRoom struct {
	leg     *leg
	table   []int32 // nil before its first step
	read    uint64  // of the whole prompt: of it every output's first token is made
	leased  bool    // its Prealloc came
	decided room.Outcome
}

const chunkTokens = 2 * room.BlockTokens

func (w *World) configP() prefill.Config {
	return prefill.Config{Blocks: w.plan.blocks[0], PinnedMax: w.plan.blocks[0] / 4, QueuedMax: w.plan.queued, RunningMax: 4, ChunkTokens: chunkTokens}
}

func (w *World) newPrefiller(n *node) *prefiller {
	return &prefiller{core: prefill.New(w.configP()), pool: newPool(w.plan.blocks[0], &n.rng), rooms: map[room.ID]*promptRoom{}, half: map[room.ID]bool{}}
}

// stepP gives a prefill core an event and does its effects, then what came of them.
func (w *World) stepP(n *node, ev prefill.Event) {
	p := n.p
	p.todo = append(p.todo, ev)
	if p.stepping {
		return
	}
	p.stepping = true
	for i := 0; i < len(p.todo); i++ {
		p.out.Reset()
		w.events++
		w.whyP(n, &p.todo[i])
		p.core.Step(n.clock.read(w.now), p.todo[i], &p.out)
		if id := p.todo[i].Prealloc.Room; id != 0 && p.rooms[id] == nil {
			if _, there := w.view(n, id); there {
				p.half[id] = true
			}
		}
		for j := range p.out.List {
			e := &p.out.List[j]
			if e.Kind == prefill.Step || e.Kind == prefill.Write && p.rooms[e.Room].table == nil {
				w.enterP(n)
			}
			w.doP(n, e)
		}
	}
	p.todo, p.stepping = p.todo[:0], false
	w.truthP(n)
	w.rearm(n)
}

func (w *World) doP(n *node, e *prefill.Effect) {
	p := n.p
	switch e.Kind {
	case prefill.Accept:
		delete(p.half, e.Room)
		p.rooms[e.Room] = &promptRoom{leg: p.answering}
		w.accept(n, p.answering)
	case prefill.Refuse:
		w.refuse(n, p.answering, e.Outcome)
	case prefill.Step:
		w.startP(n, e.Items)
	case prefill.Write:
		w.write(n, e)
	case prefill.Settle:
		for _, k := range slices.Backward(p.links) {
			if k.boot == e.Settled.Lease.Boot && k.pUp {
				m := w.compose(n, k, linkSettled)
				m.settled = e.Settled
				w.post(m)
				break
			}
		}
	case prefill.Freed:
		w.takeBack(n, e.Room)
		w.freedToo(n, &p.pool, e.Room, e.Blocks)
		w.freed(n, &p.pool, e.Room, e.Blocks)
	case prefill.EndHalf:
		delete(p.half, e.Room)
	case prefill.End:
		r := p.rooms[e.Room]
		if r == nil {
			w.end(n, nil, e.Room, e.Outcome)
			return
		}
		w.takeBack(n, e.Room)
		delete(p.rooms, e.Room)
		w.sticky(n, e.Room, &r.decided, e.Outcome)
		w.judgeWhy(n, e.Room, e.Outcome)
		if d := w.rooms[e.Room].decode; e.Outcome.Kind != room.Success && r.leased && d.up {
			w.goneSoon(d, e.Room) // its final word, or the end of the link, tells decode
		}
		w.end(n, r.leg, e.Room, e.Outcome)
	default:
		panic(fmt.Sprintf("fleetsim: effect %v of the prefill core is unknown: teach the driver", e.Kind))
	}
}

// takeBack ends a room's hold on its blocks.
func (w *World) takeBack(n *node, id room.ID) {
	if r := n.p.rooms[id]; r != nil {
		n.p.pool.drop(r.table)
		r.table = nil
	}
}

// enterP notes the blocks of the rooms that enter with a step. Writes of what they found in the
// cache come before it.
func (w *World) enterP(n *node) {
	i := slices.IndexFunc(n.p.out.List, func(e prefill.Effect) bool { return e.Kind == prefill.Step })
	if i < 0 {
		return
	}
	for _, it := range n.p.out.List[i].Items {
		r := n.p.rooms[it.Room]
		if r.table != nil {
			continue
		}
		found := int(it.Cached) / room.BlockTokens
		if found > 0 {
			w.sights.see(prefixHit)
		}
		w.hold(n, &n.p.pool, it.Room, it.Blocks, found)
		r.table = it.Blocks
	}
}

func (w *World) startP(n *node, items []prefill.StepItem) {
	p := n.p
	p.running = items
	for i := range items {
		it := &items[i]
		for _, b := range it.Blocks[int(it.From)/room.BlockTokens : room.BlocksFor(int(it.To))] {
			if p.pool.rooms[b] > 1 || p.pool.inside[b] > 0 {
				w.fail("OWN", w.of(it.Room), "prefill %d computes into block %d, which %d rooms have", n.at, b, p.pool.rooms[b])
			}
		}
	}
	for i := range items {
		p.pool.in(items[i].Blocks)
	}
	w.queue.push(event{at: w.now + w.cost(n, 500*time.Microsecond, 6*time.Millisecond), kind: stepDone, node: int32(n.id), life: n.life})
}

// stepDoneP computes what the step was asked for, from the blocks as they are now.
func (w *World) stepDoneP(n *node) {
	p := n.p
	p.results = p.results[:0]
	ok := !n.failStep
	w.failed(n)
	for i := range p.running {
		it := &p.running[i]
		p.pool.out(it.Blocks)
		r := p.rooms[it.Room]
		req := &w.reqs[r.leg.req]
		if !ok {
			p.pool.spoil(int(it.From), int(it.To), it.Blocks)
		} else if p.pool.prefillChunk(req.prompt, req.tokens, nil, int(it.From), int(it.To), it.Blocks); it.Last {
			r.read = p.pool.read(req.tokens, it.Blocks)
		}
		p.results = append(p.results, prefill.Result{Room: it.Room, OK: ok})
		if w.trace != nil {
			w.computed(r.leg.req, n, int(it.To))
		}
	}
	p.running = nil
	w.stepP(n, prefill.Event{Kind: prefill.StepDone, Results: p.results})
}

// failed takes note of a step that was to fail.
func (w *World) failed(n *node) {
	if n.failStep {
		n.failStep = false
		w.sights.see(stepFailed)
		w.struck(n, byStep)
	}
}

// write puts a chunk into its connection's line. Into one that is gone it fails at once.
func (w *World) write(n *node, e *prefill.Effect) {
	p := n.p
	r := p.rooms[e.Room]
	x := write{chunk: chunk{room: e.Room, lease: e.Lease, conn: e.Conn, n: e.Chunk, first: e.FirstBlock, last: e.Last, side: r.read}, blocks: e.Blocks}
	for _, b := range e.Blocks {
		x.chunk.sums = append(x.chunk.sums, p.pool.sums[b])
	}
	// A number of a connection is unique within a life of decode.
	i := slices.IndexFunc(p.links, func(k *link) bool { return k.conn == e.Conn && k.boot == e.Lease.Boot && k.pUp })
	if i < 0 {
		p.todo = append(p.todo, prefill.Event{Kind: prefill.WriteDone, Room: e.Room, Lease: e.Lease, Chunk: e.Chunk})
		return
	}
	p.pool.in(e.Blocks)
	p.links[i].writes = append(p.links[i].writes, x)
	w.pump(n, p.links[i])
}

// preallocAt gives the core a Prealloc, and notes what it opens and until when that may be there.
func (w *World) preallocAt(n *node, m *message) {
	id := m.prealloc.Room
	w.judgeLater(n, id, max(m.until, m.sentAt)+(w.now-m.sentAt))
	if r := n.p.rooms[id]; r != nil {
		r.leased = true
	}
	if g := w.rooms[id]; g.conn == 0 {
		g.conn = m.prealloc.Conn
	}
	w.stepP(n, prefill.Event{Kind: prefill.Prealloc, Prealloc: m.prealloc})
}
