package decode

import (
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/core/sched"
)

// This file holds what happens when the pool is too small for all that generate: who gets the
// next block (sched.S6), and who gives its blocks back for that (sched.S7, S8).

// past is how many tokens of a room have KV, or need it, before its next decode item: the prompt
// and the output so far, but for the newest token, which is that item's input.
func (e *entry) past() int32 { return e.tokens + max(e.made, 1) - 1 }

// prefix returns the keys of what a room may take from the cache: never all of it, so that there
// is something to compute, here or at its peer, whose logits may be wanted.
func (e *entry) prefix() []blocks.Key {
	return e.keys[:min(len(e.keys), int(e.past()-1)/room.BlockTokens)]
}

// unsaid says that the first token is not known yet: for a room whose KV came over a link it came
// with it.
func (e *entry) unsaid() bool { return e.made == 0 && e.peer == Local }

// short says that a generating room has no block for its newest token. One with several branches
// got all that it may ever need.
func (e *entry) short() bool {
	return e.more == nil && len(e.blocks)*room.BlockTokens < int(e.tokens+e.made)
}

// common is how many blocks the branches of a room share: those that its prompt fills.
func (e *entry) common() int { return int(e.tokens / room.BlockTokens) }

// stays says that a room is not retracted any more: of several outputs none is computed again.
func (e *entry) stays() bool { return e.more != nil && e.phase == Generating }

// wants is how many blocks a room gets when it is let in, now.
func (c *Core) wants(e *entry) int {
	if e.more != nil {
		return sched.Branches(int(e.tokens), int(e.maxNew), e.branches())
	}
	return sched.Blocks(int(e.tokens), int(e.made), int(e.maxNew), c.cfg.AheadTokens)
}

// promised is how many blocks those that were let in may still ask for before anybody new is.
func (c *Core) promised() (n int) {
	if c.cfg.AheadTokens == 0 {
		return 0
	}
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		if e := &c.rooms[i]; e.blocks != nil && e.more == nil && e.phase != Draining {
			n += max(c.wants(e)-len(e.blocks), 0)
		}
	}
	return n
}

// grow gives each generating room the block that its next token needs, the oldest first. It does
// so between steps, when no engine is in anybody's blocks. A room that gets none sits out.
func (c *Core) grow(now time.Duration, out *Effects) {
	if c.stepping > 0 || c.count[Generating] == 0 || c.cfg.AheadTokens == 0 {
		return
	}
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		for e.phase == Generating && e.short() && c.pool.Available() == 0 {
			v := c.yields(i)
			if v == room.None {
				break
			}
			c.retract(now, &c.rooms[v], out)
		}
		if e.phase == Generating && e.short() && c.pool.Available() > 0 {
			e.blocks = slices.Concat(e.blocks, c.pool.Take(1))
		}
	}
}

// yields returns who gives its blocks back for the room in slot of, or nobody.
func (c *Core) yields(of int32) int32 {
	line := sched.NewYield(of)
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		switch e := &c.rooms[i]; {
		case e.blocks == nil:
		case e.phase == Draining:
			line.Leaves()
		default:
			line.Holds(i, !e.phase.leased() && !e.busy() && !e.stays())
		}
	}
	return line.Slot()
}

// retract takes a room's blocks and its slot back. Its tokens so far stay, and it waits for blocks
// at its place by arrival (D11).
func (c *Core) retract(now time.Duration, e *entry, out *Effects) {
	if e.busy() || e.phase.leased() || !e.phase.timed() || e.stays() {
		c.impossible(e, e.id, "retracted while something may still touch its blocks")
	}
	out.add(Effect{Kind: Retract, Room: e.id})
	c.release(e, out)
	e.chunks, e.filled, e.filledTo, e.stepTo = e.chunks[:0], 0, 0, 0
	c.move(e, Retracted, now)
}
