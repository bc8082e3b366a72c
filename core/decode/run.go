package decode

import (
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/core/sched"
)

// startStep starts the next engine step, if none is running and there is something to do:
// every generating room its next token, then chunks of what is computed here in order of arrival,
// which share what is left by halves (sched.S3, S4).
func (c *Core) startStep(out *Effects) {
	prompts := c.count[Prefilling] + c.count[Recomputing]
	if c.stepping > 0 || c.count[Generating]+prompts == 0 {
		return
	}
	items := c.items[:0]
	if !c.cfg.Lends {
		items = make([]StepItem, 0, c.slots)
	}
	var copies []Copy
	budget := sched.NewBudget(c.cfg.ChunkTokens)
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase != Generating || e.short() {
			continue
		}
		for n := range int32(e.branches()) {
			b := e.at(n)
			if b.over {
				continue
			}
			// The newest token has no KV yet: it stands at this position.
			at := e.tokens + b.made - 1
			k := at / room.BlockTokens
			c.pool.Own(b.blocks[k : k+1])
			if n > 0 && b.made == 1 && at%room.BlockTokens != 0 {
				copies = append(copies, Copy{e.blocks[k], b.blocks[k]})
			}
			items = append(items, StepItem{Room: e.id, Branch: n, From: at, To: at + 1, Blocks: b.blocks})
			b.inStep = true
			budget.Decode()
		}
	}
	for i := c.live.First(); i != room.None && prompts > 0 && !budget.Full(); i = c.live.Next(i) {
		e := &c.rooms[i]
		if need := e.past() - e.filledTo; e.phase.computing() && budget.Fits(need) {
			budget.Add(i, need)
		}
	}
	for _, p := range budget.Parts() {
		e := &c.rooms[p.Slot]
		to := e.filledTo + p.Tokens
		c.pool.Own(e.blocks[e.filledTo/room.BlockTokens : room.BlocksFor(int(to))])
		items = append(items, StepItem{Room: e.id, Prefill: true, From: e.filledTo, To: to, Last: to == e.past() && e.unsaid(),
			Again: e.phase == Recomputing, Blocks: e.blocks})
		e.inStep, e.stepTo = true, to
	}
	if len(items) == 0 {
		return // all that generate wait for a block
	}
	if c.cfg.Lends {
		c.items = items
	}
	c.stepping = int32(len(items))
	out.add(Effect{Kind: Step, Copies: copies, Items: items})
}

// stepDone takes the outstanding step home.
func (c *Core) stepDone(now time.Duration, results []Result, out *Effects) {
	for i := range results {
		r := &results[i]
		e, b := c.branchOf(r.Room, r.Branch)
		if b == nil || !b.inStep {
			c.impossible(e, r.Room, "a step came home that was not running")
		}
		b.inStep = false
		c.stepping--
		switch {
		case e.phase == Draining:
			c.endIfQuiet(now, e, out)
		case !r.OK && r.Cause != room.NoCause:
			c.fail(now, e, room.Fail(r.Cause), out)
		case !r.OK:
			c.fail(now, e, room.Fail(room.Internal), out)
		case e.phase == Generating:
			c.extend(e, r)
			c.emit(now, e, r.Branch, r.Finished, out)
		default:
			c.publish(e, e.filledTo, e.stepTo)
			e.filledTo = e.stepTo
			switch {
			case e.filledTo < e.past():
			case e.made == 0:
				c.begin(now, e, out)
			default:
				c.move(e, Generating, now) // where it was
			}
		}
	}
	if c.stepping != 0 {
		c.impossible(nil, 0, "a step came home without all of its rooms")
	}
}

// publish lets later rooms find the prompt's blocks between two tokens, which are filled (D14).
func (c *Core) publish(e *entry, from, to int32) {
	a, b := int(from/room.BlockTokens), min(int(to/room.BlockTokens), len(e.keys))
	if a < b {
		c.pool.Publish(e.blocks[a:b], e.keys[a:b])
	}
}

// extend lets later rooms find a block that output has filled (D14). A room that is retracted finds
// it, too.
func (c *Core) extend(e *entry, r *Result) {
	if r.Key == (blocks.Key{}) {
		return
	}
	to := e.tokens + e.made
	if r.Branch != 0 || to%room.BlockTokens != 0 || len(e.keys) != int(to/room.BlockTokens)-1 {
		c.impossible(e, e.id, "a key came that is not the next of the first branch")
	}
	e.keys = append(e.keys, r.Key)
	c.publish(e, to-room.BlockTokens, to)
}

// begun takes the first token of a branch home. All of a room take their first step together, so
// that what they copy is the prompt's.
func (c *Core) begun(now time.Duration, ev *Event, out *Effects) {
	e, b := c.branchOf(ev.Room, ev.Branch)
	if b == nil || !b.beginning {
		c.impossible(e, ev.Room, "a first token came that was not asked for")
	}
	b.beginning = false
	switch {
	case e.phase == Draining:
		c.endIfQuiet(now, e, out)
	case !ev.OK && ev.Cause != room.NoCause:
		c.fail(now, e, room.Fail(ev.Cause), out)
	case !ev.OK && e.peer == Local:
		c.fail(now, e, room.Fail(room.Internal), out)
	case !ev.OK:
		c.fail(now, e, room.Fail(room.TransferFailed), out) // the side data made no sense
	default:
		if e.peer != Local { // now its two legs are known to be of one prompt
			c.publish(e, 0, e.tokens)
		}
		if !e.any((*branch).begins) {
			c.move(e, Generating, now)
		}
		c.emit(now, e, ev.Branch, ev.Finished, out)
	}
}

// emit passes one token on, and ends the branch after its last.
func (c *Core) emit(now time.Duration, e *entry, n int32, finished bool, out *Effects) {
	b := e.at(n)
	b.made++
	out.add(Effect{Kind: Emit, Room: e.id, Branch: n})
	switch {
	case finished:
		b.over = true
		if e.any((*branch).runs) {
			c.leave(now, e, n, out)
			return
		}
		c.succeed(now, e, out)
	case b.made == e.maxNew:
		c.impossible(e, e.id, "the output did not finish at its last token")
	}
}

// leave gives back what a branch has for itself, while others of its room go on: its slot and its
// blocks behind the prompt. Those of the prompt stay, and the last of them too, which only the
// first branch writes: others may still have to copy it.
func (c *Core) leave(now time.Duration, e *entry, n int32, out *Effects) {
	b := e.at(n)
	e.rights--
	c.slots--
	if n == 0 {
		if e.pin > 0 {
			c.pool.Pin(b.blocks, now+e.pin, c.cfg.PinnedMax)
		}
		k := room.BlocksFor(int(e.tokens))
		c.free(e, b.blocks[k:], out)
		b.blocks = b.blocks[:k]
		return
	}
	c.free(e, b.blocks[e.common():], out)
	b.blocks = nil
}
