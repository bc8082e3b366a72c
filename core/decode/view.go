package decode

import (
	"encoding/binary"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

var tombstoneTimer = room.Timer{Kind: room.TombstoneTimer}

// NextTimer returns the armed timer that is due first.
func (c *Core) NextTimer() (at time.Duration, t room.Timer, ok bool) {
	return c.soonest.Get(c.Timers)
}

// Timers yields every armed timer.
func (c *Core) Timers(yield func(at time.Duration, t room.Timer) bool) {
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		if e.phase.timed() && !yield(e.deadline, room.Timer{Kind: room.DeadlineTimer, Room: e.id}) {
			return
		}
		if e.resends() && !yield(e.resend, room.Timer{Kind: room.ResendTimer, Room: e.id}) {
			return
		}
	}
	if c.tombs.Len() > 0 {
		yield(c.tombs.At(0).Ended+room.TombstoneKeep, tombstoneTimer)
	}
}

// queue is the queue that a live room stands in: a draining one that holds a slot stands
// where it stood when it was running.
func (e *entry) queue() room.Queue {
	if e.phase == Draining && e.rights > 0 {
		return room.Running
	}
	return e.phase.Queue()
}

// SitsOut is what a generating room waits for that has no block for its newest token (sched.S8): not the
// engine, but other rooms, which may wait for other workers.
var SitsOut = phaseTable[Retracted].WaitsFor

func (e *entry) sitsOut() bool { return e.phase == Generating && e.short() && !e.inStep }

// SitsOut says whether a room waits for that.
func (c *Core) SitsOut(id room.ID) bool {
	e := c.find(id)
	return e != nil && e.sitsOut()
}

// Rooms yields every live room, oldest first.
func (c *Core) Rooms(yield func(room.View) bool) {
	closed := false // somebody waits for blocks, and those behind for their turn
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		row := &phaseTable[e.phase]
		v := room.View{
			Room: e.id, Phase: row.Name, Poll: row.Poll, Queue: e.queue(), Began: e.began, Since: e.since,
			Deadline: e.deadline, WaitsFor: row.WaitsFor, Peer: e.peer, Lease: e.lease, Outcome: e.outcome,
		}
		switch {
		case e.sitsOut():
			v.WaitsFor = SitsOut
		case closed || e.phase != NeedsBlocks && e.phase != Retracted:
		case e.computes() && c.ahead(e, e.prefix()).id != 0:
			v.WaitsFor = room.OlderPrefix
		default:
			closed = true
		}
		if !yield(v) {
			return
		}
	}
}

// Ended yields the rooms that ended and are still remembered, oldest first.
func (c *Core) Ended(yield func(room.View) bool) {
	for i := range c.tombs.Len() {
		s := c.tombs.At(i)
		if !yield(s.View(&phaseTable[ended(s.Outcome)])) {
			return
		}
	}
}

// Blocks counts the pool.
func (c *Core) Blocks() blocks.Count { return c.pool.Count() }

// Pinned is the number of blocks that are pinned now.
func (c *Core) Pinned() int { return c.pool.Pinned() }

// PinnedAt is Pinned for a node to which nothing has happened for a while: without what is over at now.
func (c *Core) PinnedAt(now time.Duration) int { return c.pool.PinnedAt(now) }

// Evicted is the number of cached blocks that gave way to rooms so far.
func (c *Core) Evicted() uint64 { return c.pool.Evicted() }

// Table returns the blocks of a room and how many of its tokens were found or computed here: for
// who checks the cache from outside.
func (c *Core) Table(id room.ID) (table []int32, filled int32) {
	if e := c.find(id); e != nil {
		return e.blocks, e.filledTo
	}
	return nil, 0
}

// BranchTable returns the blocks of one branch of a room, nil once its output is complete but for
// what the first leaves to the others.
func (c *Core) BranchTable(id room.ID, n int32) []int32 {
	if _, b := c.branchOf(id, n); b != nil {
		return b.blocks
	}
	return nil
}

// Found is the block that a room would find under one key: for who checks the cache from
// outside.
func (c *Core) Found(k blocks.Key) (b int32, ok bool) { return c.pool.Found(k) }

// Queues returns the state of each queue in room.DecodeQueues, in that order.
func (c *Core) Queues() [len(room.DecodeQueues)]room.QueueStat {
	var all [len(room.DecodeQueues)]room.QueueStat
	for q := range all {
		all[q].Queue = room.DecodeQueues[q]
		for i := c.live.First(); i != room.None; i = c.live.Next(i) {
			if e := &c.rooms[i]; e.queue() == all[q].Queue {
				all[q].Count(e.queued)
			}
		}
	}
	return all
}

// Idle says that no room is live; after Drain it stays so.
func (c *Core) Idle() bool { return c.live.Len() == 0 }

// AppendState appends a canonical form of the core's state: two cores of one configuration
// with equal bytes answer every future alike, up to the numbers of blocks and the causes of
// failures, on which nothing here branches. Times are left out: a timer counts as armed or
// not, and that follows from its room's phase.
func (c *Core) AppendState(b []byte) []byte {
	b = append(b, byte(c.live.Len()), byte(c.tombs.Len()), byte(len(c.peers)), bit(c.draining))
	// These follow from the rooms, if there is no mistake; here they let the explorer see one.
	b = c.pool.AppendState(b)
	for _, x := range [...]int32{c.slots, c.running, c.stepping} {
		b = binary.AppendUvarint(b, uint64(x))
	}
	for _, x := range c.count {
		b = binary.AppendUvarint(b, uint64(x))
	}
	b = binary.AppendUvarint(b, uint64(c.cfg.Boot))
	b = binary.AppendUvarint(b, c.seq)
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		b = e.appendState(b)
		b = c.pool.AppendTable(b, e.keys, e.blocks)
	}
	for i := range c.tombs.Len() {
		s := c.tombs.At(i) // its lease is for people only
		b = binary.AppendUvarint(b, uint64(s.Room))
		b = append(b, bit(s.Outcome.Kind == room.Success))
	}
	for _, p := range c.peers {
		b = binary.AppendUvarint(b, uint64(p.handle))
		b = append(b, bit(p.dialing))
		b = binary.AppendUvarint(b, uint64(p.conn))
	}
	return b
}

func (e *entry) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.id))
	b = binary.AppendUvarint(b, uint64(e.pin))
	b = append(b, byte(e.phase), byte(e.rights), byte(len(e.more)))
	for n := range int32(e.branches()) {
		x := e.at(n)
		b = append(b, bit(x.inStep)|bit(x.beginning)<<1|bit(x.over)<<2)
		b = binary.AppendUvarint(b, uint64(x.made))
		b = binary.AppendUvarint(b, uint64(len(x.blocks)))
	}
	b = binary.AppendUvarint(b, e.lease.Seq)
	b = binary.AppendUvarint(b, uint64(e.conn))
	for _, n := range [...]int32{e.peer + 1, e.tokens, e.maxNew, e.filledTo, e.word + 1, int32(len(e.chunks))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if e.inStep {
		b = binary.AppendUvarint(b, uint64(e.stepTo))
	}
	for _, x := range e.chunks {
		for _, n := range [...]int32{x.n, x.first, x.blocks} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = append(b, bit(x.isPlaced))
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
