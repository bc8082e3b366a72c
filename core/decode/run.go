package decode

import (
	"time"

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
	items := make([]StepItem, 0, c.count[Generating]+prompts)
	budget := sched.NewBudget(c.cfg.ChunkTokens)
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase != Generating || e.short() {
			continue
		}
		// The newest token has no KV yet: it stands at this position.
		at := e.tokens + e.made - 1
		c.pool.Own(e.blocks[at/room.BlockTokens : at/room.BlockTokens+1])
		items = append(items, StepItem{Room: e.id, From: at, To: at + 1, Blocks: e.blocks})
		e.inStep = true
		budget.Decode()
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
	c.stepping = int32(len(items))
	out.add(Effect{Kind: Step, Items: items})
}

// stepDone takes the outstanding step home.
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
			c.endIfQuiet(now, e, out)
		case !r.OK:
			c.fail(now, e, room.Fail(room.Internal), out)
		case e.phase == Generating:
			c.emit(now, e, r.Finished, out)
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

// begun takes the first token home.
func (c *Core) begun(now time.Duration, ev *Event, out *Effects) {
	e := c.find(ev.Room)
	if e == nil || !e.beginning {
		c.impossible(e, ev.Room, "a first token came that was not asked for")
	}
	e.beginning = false
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
		c.move(e, Generating, now)
		c.emit(now, e, ev.Finished, out)
	}
}

// emit passes one token on, and ends the room after the last.
func (c *Core) emit(now time.Duration, e *entry, finished bool, out *Effects) {
	e.made++
	out.add(Effect{Kind: Emit, Room: e.id})
	switch {
	case finished:
		c.succeed(now, e, out)
	case e.made == e.maxNew:
		c.impossible(e, e.id, "the output did not finish at its last token")
	}
}
