package decode

import (
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/room"
	"baton/core/sched"
)

// This file holds the leg's beginning, prefill's word, every end, and who gets blocks and slots;
// link.go holds links and chunks, run.go the engine, retract.go growth and retraction.

// request opens the leg of a room, or refuses it in the same step.
func (c *Core) request(now time.Duration, ev *Event, out *Effects) {
	if o := c.refusal(ev); o.Ended() {
		out.add(Effect{Kind: Refuse, Room: ev.Room, Outcome: o})
		return
	}
	e := c.add(ev.Room, NeedsBlocks, now, ev.Deadline)
	e.peer, e.tokens, e.maxNew, e.keys = ev.Peer, int32(ev.Tokens), int32(ev.MaxNew), slices.Clip(ev.Keys)
	e.pin = min(ev.Pin, room.PinMax)
	if ev.Branches > 1 {
		e.more = make([]branch, ev.Branches-1)
	}
	out.add(Effect{Kind: Accept, Room: e.id})
	if e.peer == Local {
		return
	}
	if p := c.peerOf(e.peer); p.conn == 0 {
		c.move(e, NeedsLink, now)
		c.dial(p, out)
	}
}

// refusal says why a Request cannot be taken, or nothing.
func (c *Core) refusal(ev *Event) room.Outcome {
	if c.find(ev.Room) != nil {
		return room.Fail(room.Internal) // a room is one attempt: somebody sent it twice
	}
	if s := c.tombs.Find(ev.Room); s != nil {
		if s.Outcome.Kind == room.Success {
			return room.Fail(room.Internal)
		}
		return s.Outcome // its Abort came first
	}
	waiting := c.live.Len() - int(c.running)
	switch {
	case ev.Room == 0 || ev.Tokens < 1 || ev.MaxNew < 1 || ev.Tokens > room.TokensMax || ev.MaxNew > room.TokensMax,
		ev.Branches < 0 || ev.Branches > min(room.BranchesMax, c.cfg.RunningMax),
		sched.Branches(ev.Tokens, ev.MaxNew, max(ev.Branches, 1)) > c.cfg.Blocks:
		return room.Fail(room.ClientError)
	case ev.Peer < Local, ev.Pin < 0, len(ev.Keys) > ev.Tokens/room.BlockTokens:
		return room.Fail(room.Internal)
	case c.draining, waiting >= c.cfg.QueuedMax:
		return room.Fail(room.Overload)
	case ev.Peer != Local && !c.know(ev.Peer):
		return room.Fail(room.Overload)
	}
	return room.Outcome{}
}

// abort ends the leg for the gateway. One that overtakes its Request leaves a tombstone, on
// which the Request will be refused.
func (c *Core) abort(now time.Duration, id room.ID, cause room.Cause, out *Effects) {
	if cause == room.NoCause {
		cause = room.Cancelled
	}
	o := room.Fail(cause)
	switch e := c.find(id); {
	case e != nil:
		c.fail(now, e, o, out)
	case id != 0 && c.tombs.Find(id) == nil:
		c.bury(now, room.Tombstone{Room: id, Outcome: o, Began: now, Ended: now})
	}
}

// settled hears prefill's final word. One that speaks of a lease that is not held, or was
// given up, is late and means nothing here (D1).
func (c *Core) settled(now time.Duration, s *room.Settled, out *Effects) {
	e := c.under(s.Room, s.Lease)
	if e == nil || !e.phase.leased() || e.word != 0 {
		return
	}
	c.soonest.Disarmed(room.Timer{Kind: room.ResendTimer, Room: e.id}) // answered
	switch {
	case s.Outcome.Kind == room.Success && s.Chunks > 0 && s.Chunks <= room.TokensMax:
		e.word = int32(s.Chunks)
		c.complete(now, e, out)
	case s.Outcome.Kind == room.Success || !s.Outcome.Ended():
		c.fail(now, e, room.Fail(room.Internal), out) // not a word that prefill has
	default:
		e.word = -1 // said, and prefill will not write again: no Cancel
		c.fail(now, e, s.Outcome, out)
	}
}

// complete moves a room on once the word and every chunk are here (D2).
func (c *Core) complete(now time.Duration, e *entry, out *Effects) {
	if !e.phase.leased() || e.word < 1 || e.inside > 0 {
		return
	}
	chunks, all := int32(len(e.chunks)), int32(room.BlocksFor(int(e.tokens)))-e.filledTo/room.BlockTokens
	switch {
	case chunks == e.word && e.filled == all:
		c.move(e, Ready, now)
	case chunks >= e.word || e.filled == all:
		// As many chunks as there are, and not all blocks, or the reverse: what is still to
		// come cannot mend it.
		c.fail(now, e, room.Fail(room.TransferFailed), out)
	}
}

// timer acts on an armed timer; one that is no longer armed is late and means nothing.
func (c *Core) timer(now time.Duration, t room.Timer, out *Effects) {
	e := c.find(t.Room)
	switch t.Kind {
	case room.DeadlineTimer:
		if e != nil && e.phase.timed() {
			c.fail(now, e, room.Fail(room.Deadline), out)
		}
	case room.ResendTimer:
		if e != nil && e.resends() {
			c.prealloc(now, e, out)
		}
	case room.TombstoneTimer:
		if c.tombs.Len() > 0 {
			c.tombs.Drop()
			c.soonest.Disarmed(t)
		}
	}
}

// resends says that the resend timer runs.
func (e *entry) resends() bool { return e.phase.leased() && e.word == 0 }

// prealloc offers the room's lease to prefill.
func (c *Core) prealloc(now time.Duration, e *entry, out *Effects) {
	out.add(Effect{Kind: SendPrealloc, Room: e.id, Conn: e.conn, Prealloc: room.Prealloc{
		Room: e.id, Lease: e.lease, Conn: e.conn, Tokens: int(e.tokens), From: int(e.filledTo), Left: e.deadline - now,
	}})
	t := room.Timer{Kind: room.ResendTimer, Room: e.id}
	c.soonest.Disarmed(t)
	e.resend = now + room.ResendAfter
	c.soonest.Armed(e.resend, t)
}

// fail decides a room's outcome. The first decision stays (D5). Prefill is told at once, even
// if a receiver is still inside a block.
func (c *Core) fail(now time.Duration, e *entry, o room.Outcome, out *Effects) {
	if e.phase == Draining {
		return
	}
	if e.phase.leased() && e.word >= 0 {
		out.add(Effect{Kind: SendCancel, Room: e.id, Conn: e.conn, Cancel: room.Cancel{Room: e.id, Lease: e.lease, Cause: o.Cause}})
	}
	e.outcome = o
	c.move(e, Draining, now)
	c.endIfQuiet(now, e, out)
}

// succeed ends a room whose output is complete.
func (c *Core) succeed(now time.Duration, e *entry, out *Effects) {
	e.outcome = room.Done()
	c.end(now, e, out)
}

// endIfQuiet ends a draining room once nothing of it is under way (D3).
func (c *Core) endIfQuiet(now time.Duration, e *entry, out *Effects) {
	if !e.busy() {
		c.end(now, e, out)
	}
}

// release gives back what a room holds: its blocks and its slots. end and retract alone call it.
func (c *Core) release(e *entry, out *Effects) {
	for i := range e.more {
		if b := &e.more[i]; b.blocks != nil {
			c.free(e, b.blocks[e.common():], out)
			b.blocks = nil
		}
	}
	if e.blocks != nil {
		c.free(e, e.blocks, out)
		e.blocks = nil
	}
	if e.rights > 0 {
		c.slots -= e.rights
		e.rights = 0
		c.running--
	}
}

// free gives blocks of a room back.
func (c *Core) free(e *entry, table []int32, out *Effects) {
	if freed := c.pool.Release(table); len(freed) > 0 {
		out.add(Effect{Kind: Freed, Room: e.id, Blocks: freed})
	}
}

// end is the only place where a leg ends.
func (c *Core) end(now time.Duration, e *entry, out *Effects) {
	if e.busy() || !e.outcome.Ended() {
		c.impossible(e, e.id, "ended while a receiver, its step or its first token is under way")
	}
	if e.pin > 0 {
		c.pool.Pin(e.blocks, now+e.pin, c.cfg.PinnedMax)
	}
	c.release(e, out)
	out.add(Effect{Kind: End, Room: e.id, Outcome: e.outcome})
	s := room.Tombstone{Room: e.id, Lease: e.lease, Outcome: e.outcome, Began: e.began, Ended: now}
	c.soonest.Disarmed(room.Timer{Kind: room.DeadlineTimer, Room: e.id})
	c.soonest.Disarmed(room.Timer{Kind: room.ResendTimer, Room: e.id})
	c.count[e.phase]--
	c.live.Remove(e.id, e.slot)
	*e = entry{chunks: e.chunks[:0]}
	c.bury(now, s)
}

// schedule gives out what is free: blocks to those that generate, then to those that wait, then
// slots, then the engine.
func (c *Core) schedule(now time.Duration, out *Effects) {
	c.grow(now, out)
	if c.count[NeedsBlocks]+c.count[Retracted] > 0 {
		c.giveBlocks(now, out)
	}
	if c.count[Ready]+c.count[Unfilled]+c.count[Regranted] > 0 {
		c.giveSlots(now, out)
	}
	c.startStep(out)
}

// giveBlocks reserves blocks for what a room has and some output ahead, in order of arrival. Those
// of new rooms are offered to prefill under a new lease; a retracted room computes here.
func (c *Core) giveBlocks(now time.Duration, out *Effects) {
	line := sched.NewLine(c.pool.Available() - c.promised())
	for i := c.live.First(); i != room.None && !line.Closed(); i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase != NeedsBlocks && e.phase != Retracted {
			continue
		}
		prefix := e.prefix()
		if c.comes(e, prefix) {
			continue
		}
		found, idle := c.pool.Find(prefix)
		if !line.Take(c.wants(e) - found + idle) {
			return
		}
		c.give(e, prefix, found)
		if e.phase == Retracted {
			c.move(e, Regranted, now)
			continue
		}
		if e.peer == Local {
			c.move(e, Unfilled, now)
			continue
		}
		c.seq++
		e.lease = room.Lease{Boot: c.cfg.Boot, Seq: c.seq}
		e.conn = c.peerOf(e.peer).conn
		c.move(e, Preallocated, now)
		c.prealloc(now, e, out)
	}
}

// comes says that an older room computes blocks here that e is to compute, too: it will find them
// (D16). What comes over a link waits for nobody: prefill may have it.
func (c *Core) comes(e *entry, prefix []blocks.Key) bool {
	if !e.computes() {
		return false
	}
	if c.stillComes(e) {
		return true
	}
	e.behind = c.ahead(e, prefix)
	return e.behind.id != 0
}

// computes says that a room that waits for blocks computes here what it does not find.
func (e *entry) computes() bool { return e.peer == Local || e.phase == Retracted }

// stillComes says that whom e was seen to wait for still computes it. So an event asks of each that
// waits about one other, and of all that compute only when that one has moved.
func (c *Core) stillComes(e *entry) bool {
	if e.behind.id == 0 {
		return false
	}
	o := &c.rooms[e.behind.slot]
	return o.id == e.behind.id && o.phase.unfilled() && o.filledTo/room.BlockTokens < e.behind.blocks
}

// ahead finds the oldest room that computes blocks which e is to compute, too.
func (c *Core) ahead(e *entry, prefix []blocks.Key) behind {
	for i := c.live.First(); i != e.slot; i = c.live.Next(i) {
		o := &c.rooms[i]
		if !o.phase.unfilled() {
			continue
		}
		n := blocks.Common(prefix, o.keys[:min(len(o.keys), int(o.past())/room.BlockTokens)])
		if int(o.filledTo/room.BlockTokens) < n {
			return behind{o.id, i, int32(n)}
		}
	}
	return behind{}
}

// give gives a room its blocks, of which the first are found.
func (c *Core) give(e *entry, prefix []blocks.Key, found int) {
	n := c.wants(e)
	if e.more != nil {
		n = room.BlocksFor(int(e.tokens + e.maxNew))
	}
	e.blocks = append(c.pool.Match(prefix), c.pool.Take(n-found)...)
	e.filledTo = int32(found * room.BlockTokens)
	for i := range e.more {
		e.more[i].blocks = slices.Concat(e.blocks[:e.common()], c.pool.Take(n-e.common()))
	}
}

// giveSlots lets rooms run, in order of arrival; each needs one for every branch, at once.
func (c *Core) giveSlots(now time.Duration, out *Effects) {
	line := sched.NewLine(c.cfg.RunningMax - int(c.slots))
	for i := c.live.First(); i != room.None && !line.Closed(); i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase != Ready && e.phase != Unfilled && e.phase != Regranted {
			continue
		}
		if !line.Take(e.branches()) {
			return
		}
		e.rights = int32(e.branches())
		c.slots += e.rights
		c.running++
		switch e.phase {
		case Unfilled:
			c.move(e, Prefilling, now)
		case Regranted:
			c.move(e, Recomputing, now)
		default:
			c.begin(now, e, out)
		}
	}
}

// begin feeds the first token of every branch of a room whose prompt is complete.
func (c *Core) begin(now time.Duration, e *entry, out *Effects) {
	c.move(e, Beginning, now)
	for n := range int32(e.branches()) {
		e.at(n).beginning = true
		out.add(Effect{Kind: Begin, Room: e.id, Branch: n})
	}
}

func (c *Core) impossible(e *entry, id room.ID, what string) {
	phase := Failed
	if e != nil {
		phase = e.phase
	}
	room.Assert(false, "decode", id, phase, what)
}
