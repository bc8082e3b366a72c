package prefill

import (
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/core/sched"
)

// stepDone takes the outstanding step home and writes the chunks that it made.
func (c *Core) stepDone(now time.Duration, results []Result, out *Effects) {
	for i := range results {
		r := &results[i]
		e := c.find(r.Room)
		if e == nil || !e.inStep {
			c.impossible(e, r.Room, "a step came home that was not running")
		}
		e.inStep = false
		c.stepping--
		switch {
		case e.phase == Draining:
			c.settleIfQuiet(now, e, out)
		case !r.OK:
			c.fail(now, e, room.Fail(room.Internal), out)
		default:
			c.computed(now, e, out)
		}
	}
	if c.stepping != 0 {
		c.impossible(nil, 0, "a step came home without all of its rooms")
	}
}

// computed moves the chunk just computed, while the next one is computed, and lets later rooms
// find what it filled (P11).
func (c *Core) computed(now time.Duration, e *entry, out *Effects) {
	from, to := e.computed, e.stepTo
	e.computed = to
	e.write(from, to, out)
	if a, b := int(from/room.BlockTokens), min(int(to/room.BlockTokens), len(e.keys)); a < b {
		c.pool.Publish(e.blocks[a:b], e.keys[a:b])
	}
	if to == e.tokens {
		c.move(e, Writing, now)
	}
}

// write moves the tokens from from to to, less those that decode has already.
func (e *entry) write(from, to int32, out *Effects) {
	if from = max(from, e.from); from >= to {
		return
	}
	first := from / room.BlockTokens
	out.add(Effect{
		Kind: Write, Room: e.id, Lease: e.lease, Conn: e.conn, Chunk: e.chunks, FirstBlock: first,
		Blocks: e.blocks[first:room.BlocksFor(int(to))], Last: to == e.tokens,
	})
	e.out = append(e.out, e.chunks)
	e.chunks++
}

// writeDone takes one write home. That says nothing about whether the chunk arrived.
func (c *Core) writeDone(now time.Duration, ev *Event, out *Effects) {
	e := c.find(ev.Room)
	if e == nil || e.lease != ev.Lease || !e.home(ev.Chunk) {
		c.impossible(e, ev.Room, "a write came home that was not running")
	}
	switch {
	case e.phase == Draining:
		c.settleIfQuiet(now, e, out)
	case !ev.OK:
		c.fail(now, e, room.Fail(room.TransferFailed), out)
	case e.phase == Writing && len(e.out) == 0:
		e.outcome = room.Done()
		c.settle(now, e, out)
	}
}

// linkEnd ends every room whose lease is bound to a connection that is gone: no Cancel will
// come over it, its writes would fail, and decode gives the lease up too (P7).
func (c *Core) linkEnd(now time.Duration, boot room.Boot, conn room.Conn, out *Effects) {
	for i := c.live.First(); i != room.None; {
		e := &c.rooms[i]
		i = c.live.Next(i) // e may go
		if e.lease.Boot == boot && e.conn == conn && conn != 0 {
			c.fail(now, e, room.Fail(room.WorkerLost), out)
		}
	}
}

// timer acts on an armed timer; one that is no longer armed is late and means nothing.
func (c *Core) timer(now time.Duration, t room.Timer, out *Effects) {
	switch t.Kind {
	case room.DeadlineTimer:
		if e := c.find(t.Room); e != nil && e.phase.timed() {
			c.fail(now, e, room.Fail(room.Deadline), out)
		}
	case room.TombstoneTimer:
		c.forget()
	}
}

// fail decides a room's outcome. The first decision stays (P3).
func (c *Core) fail(now time.Duration, e *entry, o room.Outcome, out *Effects) {
	if e.phase == Draining {
		return
	}
	e.outcome = o
	c.move(e, Draining, now)
	c.settleIfQuiet(now, e, out)
}

// settleIfQuiet ends a draining room once its step and writes are home (P2).
func (c *Core) settleIfQuiet(now time.Duration, e *entry, out *Effects) {
	if !e.busy() {
		c.settle(now, e, out)
	}
}

// settle ends a room: the only place where source blocks are released, the final word of a
// live room is said and its leg ends.
func (c *Core) settle(now time.Duration, e *entry, out *Effects) {
	if e.busy() || !e.outcome.Ended() {
		c.impossible(e, e.id, "settled while its step or a write is under way")
	}
	if e.pin > 0 {
		c.pool.Pin(e.blocks, now+e.pin, c.cfg.PinnedMax)
	}
	if freed := c.pool.Release(e.blocks); len(freed) > 0 {
		out.add(Effect{Kind: Freed, Room: e.id, Blocks: freed})
	}
	chunks := 0
	if e.outcome.Kind == room.Success {
		chunks = int(e.chunks)
	}
	if e.lease != (room.Lease{}) {
		word(out, e.id, e.lease, e.outcome, chunks)
	}
	if e.hasReq {
		out.add(Effect{Kind: End, Room: e.id, Outcome: e.outcome})
	} else {
		out.add(Effect{Kind: EndHalf, Room: e.id, Lease: e.lease, Outcome: e.outcome, Began: e.began})
	}
	s := room.Tombstone{Room: e.id, Lease: e.lease, Outcome: e.outcome, Chunks: chunks, Began: e.began, Ended: now}
	c.count[e.phase]--
	c.soonest.Disarmed(room.Timer{Kind: room.DeadlineTimer, Room: e.id})
	c.live.Remove(e.id, e.slot)
	*e = entry{out: e.out[:0]}
	c.bury(now, s)
}

// schedule starts the next engine step, if none is running and there is something to compute:
// in order of arrival, shared by halves (sched.S4). A room enters with its first chunk.
func (c *Core) schedule(now time.Duration, out *Effects) {
	if c.stepping > 0 || c.count[Queued]+c.count[Computing] == 0 {
		return
	}
	pool := sched.NewLine(c.pool.Available())
	places := sched.NewLine(c.cfg.RunningMax - int(c.count[Computing]+c.count[Writing]+c.count[Draining]))
	budget := sched.NewBudget(c.cfg.ChunkTokens)
	for i := c.live.First(); i != room.None && !budget.Full(); i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase != Computing && (e.phase != Queued || pool.Closed() || places.Closed()) {
			continue
		}
		if e.phase == Queued && c.comes(e) {
			continue
		}
		found, cost := c.cached(e)
		fits := budget.Fits(e.tokens - found)
		if e.phase == Queued {
			if !fits {
				pool.Close() // no place in this step; nobody may overtake
			}
			if !places.Take(1) || !pool.Take(cost) {
				continue
			}
			c.enter(now, e, out)
		}
		if fits {
			budget.Add(i, e.tokens-e.computed)
		}
	}
	parts := budget.Parts()
	if len(parts) == 0 {
		return
	}
	items := make([]StepItem, len(parts))
	for k, p := range parts {
		e := &c.rooms[p.Slot]
		items[k] = c.item(e, e.computed+p.Tokens)
	}
	c.stepping = int32(len(items))
	out.add(Effect{Kind: Step, Items: items})
}

// comes says that an older room is computing blocks that e begins with, too: it will find them (P12).
func (c *Core) comes(e *entry) bool {
	if c.stillComes(e) {
		return true
	}
	e.behind = c.ahead(e)
	return e.behind.id != 0
}

// stillComes says that whom e was seen to wait for still computes it. So an event asks of each that
// waits about one other, and of all that compute only when that one has moved.
func (c *Core) stillComes(e *entry) bool {
	if e.behind.id == 0 {
		return false
	}
	o := &c.rooms[e.behind.slot]
	return o.id == e.behind.id && o.phase == Computing && o.computed/room.BlockTokens < e.behind.blocks
}

// ahead finds the oldest room that computes blocks which e begins with, too.
func (c *Core) ahead(e *entry) behind {
	prefix := e.prefix()
	for i := c.live.First(); i != e.slot; i = c.live.Next(i) {
		o := &c.rooms[i]
		if o.phase != Computing {
			continue
		}
		if n := blocks.Common(prefix, o.keys); int(o.computed/room.BlockTokens) < n {
			return behind{o.id, i, int32(n)}
		}
	}
	return behind{}
}

// cached returns how many tokens of the prompt need not be computed, and what the room's blocks
// cost of those that the pool could give; nothing, once it has them.
func (c *Core) cached(e *entry) (tokens int32, cost int) {
	if e.phase != Queued {
		return e.computed, 0
	}
	n, idle := c.pool.Find(e.prefix())
	return int32(n * room.BlockTokens), room.BlocksFor(int(e.tokens)) - n + idle
}

// prefix returns the keys of what a room may take from the cache: never its last token, for
// whose logits it is here.
func (e *entry) prefix() []blocks.Key {
	return e.keys[:min(len(e.keys), int(e.tokens-1)/room.BlockTokens)]
}

// enter gives a room its blocks. What it finds of its prompt moves at once, in pieces of the
// size of a step.
func (c *Core) enter(now time.Duration, e *entry, out *Effects) {
	e.blocks = c.pool.Match(e.prefix())
	e.cached = int32(len(e.blocks) * room.BlockTokens)
	e.blocks = append(e.blocks, c.pool.Take(room.BlocksFor(int(e.tokens))-len(e.blocks))...)
	c.move(e, Computing, now)
	for e.computed < e.cached {
		to := min(e.computed+int32(c.cfg.ChunkTokens), e.cached)
		e.write(e.computed, to, out)
		e.computed = to
	}
}

// item puts a room into the step that is being made.
func (c *Core) item(e *entry, to int32) StepItem {
	chunk := e.chunks
	if to <= e.from {
		chunk = -1
	}
	c.pool.Own(e.blocks[e.computed/room.BlockTokens : room.BlocksFor(int(to))])
	e.inStep, e.stepTo = true, to
	return StepItem{Room: e.id, Chunk: chunk, From: e.computed, To: to, Last: to == e.tokens, Blocks: e.blocks, Cached: e.cached}
}

func (c *Core) impossible(e *entry, id room.ID, what string) {
	phase := Failed
	if e != nil {
		phase = e.phase
	}
	room.Assert(false, "prefill", id, phase, what)
}
