package prefill

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
	}
	if c.tombs.Len() > 0 {
		yield(c.tombs.At(0).Ended+room.TombstoneKeep, tombstoneTimer)
	}
}

// Rooms yields every live room, oldest first.
func (c *Core) Rooms(yield func(room.View) bool) {
	closed := false // somebody waits for blocks or a place, and those behind for their turn
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		row := &phaseTable[e.phase]
		v := room.View{
			Room: e.id, Phase: row.Name, Poll: row.Poll, Queue: row.Queue, Began: e.began, Since: e.since,
			Deadline: e.deadline, WaitsFor: row.WaitsFor, Lease: e.lease, Outcome: e.outcome,
		}
		switch {
		case closed || e.phase != Queued:
		case c.ahead(e).id != 0:
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

// Blocks counts the source pool.
func (c *Core) Blocks() blocks.Count { return c.pool.Count() }

// Pinned is the number of blocks that are pinned now.
func (c *Core) Pinned() int { return c.pool.Pinned() }

// PinnedAt is Pinned for a node to which nothing has happened for a while: without what is over at now.
func (c *Core) PinnedAt(now time.Duration) int { return c.pool.PinnedAt(now) }

// Evicted is the number of cached blocks that gave way to rooms so far.
func (c *Core) Evicted() uint64 { return c.pool.Evicted() }

// Found is the block that a room would find under one key: for who checks the cache from
// outside.
func (c *Core) Found(k blocks.Key) (b int32, ok bool) { return c.pool.Found(k) }

// Queues returns the state of each queue in room.PrefillQueues, in that order.
func (c *Core) Queues() [len(room.PrefillQueues)]room.QueueStat {
	var all [len(room.PrefillQueues)]room.QueueStat
	for q := range all {
		all[q].Queue = room.PrefillQueues[q]
		for i := c.live.First(); i != room.None; i = c.live.Next(i) {
			if e := &c.rooms[i]; e.phase.Queue() == all[q].Queue {
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
// failures, on which nothing here branches. (Blocks that several rooms hold count as the same if
// they have a key; others are shared only behind a quarantine, which this core never asks for.) Times are left out: a timer counts as armed or
// not, and that follows from its room's phase.
func (c *Core) AppendState(b []byte) []byte {
	b = append(b, byte(c.live.Len()), byte(c.tombs.Len()), byte(len(c.floors)), bit(c.draining))
	// Counts follow from the rooms, if there is no mistake; here they let the explorer see one.
	b = c.pool.AppendState(b)
	b = binary.AppendUvarint(b, uint64(c.stepping))
	for _, x := range c.count {
		b = binary.AppendUvarint(b, uint64(x))
	}
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		e := &c.rooms[i]
		b = e.appendState(b)
		b = c.pool.AppendTable(b, e.keys, e.blocks)
	}
	for i := range c.tombs.Len() {
		s := c.tombs.At(i)
		b = binary.AppendUvarint(b, uint64(s.Room))
		b = appendLease(b, s.Lease)
		b = append(b, bit(s.Outcome.Kind == room.Success))
		b = binary.AppendUvarint(b, uint64(s.Chunks))
	}
	for _, f := range c.floors {
		b = appendLease(b, room.Lease{Boot: f.boot, Seq: f.seq})
	}
	return b
}

func (e *entry) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.id))
	b = append(b, byte(e.phase), bit(e.hasReq)|bit(e.inStep)<<1)
	b = appendLease(b, e.lease)
	b = binary.AppendUvarint(b, uint64(e.conn))
	b = binary.AppendUvarint(b, uint64(e.pin))
	for _, n := range [...]int32{e.tokens, e.from, e.cached, e.computed, e.chunks, int32(len(e.blocks)), int32(len(e.out))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if e.inStep {
		b = binary.AppendUvarint(b, uint64(e.stepTo))
	}
	for _, chunk := range e.out {
		b = binary.AppendUvarint(b, uint64(chunk))
	}
	return b
}

func appendLease(b []byte, l room.Lease) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(l.Boot)), l.Seq)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
