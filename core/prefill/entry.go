package prefill

import (
	"slices"
	"time"

	"baton/core/blocks"
	"baton/core/room"
)

// entry is one live room. It lives in Core.rooms at the slot that Core.live gave it.
type entry struct {
	id       room.ID
	slot     int32
	phase    Phase
	hasReq   bool         // accepted: an End is owed
	inStep   bool         // part of the outstanding step
	outcome  room.Outcome // decided, once draining
	lease    room.Lease   // zero while NeedsPrealloc
	conn     room.Conn
	tokens   int32         // length of the prompt
	from     int32         // tokens that decode has already
	cached   int32         // tokens whose KV was found here when the room was scheduled
	computed int32         // tokens whose KV is here, cached among them
	stepTo   int32         // computed, once the outstanding step is home
	chunks   int32         // writes started
	keys     []blocks.Key  // of its first blocks, the driver's; nil: it uses no cache
	out      []int32       // chunks whose write has not come home
	blocks   []int32       // block table from token 0; nil while none are held
	pin      time.Duration // how long its blocks are pinned when it is over
	behind   behind        // whom it was last seen to wait for; it follows from the rooms
	began    time.Duration
	since    time.Duration // when it entered its phase
	queued   time.Duration // when it entered its queue
	deadline time.Duration
}

// behind is an older room and how many blocks of it a younger one waits for.
type behind struct {
	id     room.ID // 0: nobody
	slot   int32
	blocks int32
}

// busy says that something of the room is under way that touches its blocks.
func (e *entry) busy() bool { return e.inStep || len(e.out) > 0 }

// home takes a write off the list of those under way, and says whether it was there.
func (e *entry) home(chunk int32) bool {
	i := slices.Index(e.out, chunk)
	if i < 0 {
		return false
	}
	e.out = slices.Delete(e.out, i, i+1)
	return true
}

// find returns the live room id, or nil. It is valid until the next add.
func (c *Core) find(id room.ID) *entry {
	if i := c.live.Find(id); i != room.None {
		return &c.rooms[i]
	}
	return nil
}

// add makes a room live.
func (c *Core) add(id room.ID, p Phase, now, deadline time.Duration) *entry {
	i := c.live.Add(id)
	if int(i) == len(c.rooms) {
		c.rooms = append(c.rooms, entry{})
	}
	e := &c.rooms[i]
	*e = entry{id: id, slot: i, phase: p, out: e.out[:0], began: now, since: now, queued: now, deadline: deadline}
	c.count[p]++
	c.soonest.Armed(deadline, room.Timer{Kind: room.DeadlineTimer, Room: id})
	return e
}

// move changes a room's phase.
func (c *Core) move(e *entry, p Phase, now time.Duration) {
	c.count[e.phase]--
	c.count[p]++
	if e.phase.timed() && !p.timed() {
		c.soonest.Disarmed(room.Timer{Kind: room.DeadlineTimer, Room: e.id})
	}
	from := e.phase.Queue()
	e.phase, e.since = p, now
	if e.phase.Queue() != from {
		e.queued = now
	}
}

// sooner moves a room's deadline forward, never back: nobody extends it.
func (c *Core) sooner(e *entry, deadline time.Duration) {
	if deadline < e.deadline {
		e.deadline = deadline
		t := room.Timer{Kind: room.DeadlineTimer, Room: e.id}
		c.soonest.Disarmed(t)
		c.soonest.Armed(deadline, t)
	}
}

// floor is the highest lease of one boot on which a final word was given by a room that is
// no longer remembered.
type floor struct {
	boot room.Boot
	seq  uint64
}

// below says that a final word on this lease may have been given and forgotten (P6).
func (c *Core) below(l room.Lease) bool {
	for i := range c.floors {
		if c.floors[i].boot == l.Boot {
			return l.Seq <= c.floors[i].seq
		}
	}
	return false
}

// raise lifts the floor of a lease's boot over it. The boot raised last stands last; when
// there are too many, the first goes: it has been silent for longest.
func (c *Core) raise(l room.Lease) {
	if l == (room.Lease{}) {
		return
	}
	f := floor{l.Boot, l.Seq}
	for i := range c.floors {
		if c.floors[i].boot == l.Boot {
			f.seq = max(f.seq, c.floors[i].seq)
			c.floors = slices.Delete(c.floors, i, i+1)
			break
		}
	}
	if len(c.floors) == room.FloorsMax {
		c.floors = slices.Delete(c.floors, 0, 1)
	}
	c.floors = append(c.floors, f)
}

// bury remembers a room that is over.
func (c *Core) bury(now time.Duration, s room.Tombstone) {
	if old, full := c.tombs.Add(s); full {
		c.raise(old.Lease)
		c.soonest.Disarmed(tombstoneTimer)
	}
	if c.tombs.Len() == 1 {
		c.soonest.Armed(now+room.TombstoneKeep, tombstoneTimer)
	}
}

// forget drops the oldest tombstone; what it answered stays answered through the floor.
func (c *Core) forget() {
	if c.tombs.Len() > 0 {
		c.raise(c.tombs.Drop().Lease)
		c.soonest.Disarmed(tombstoneTimer)
	}
}
