package decode

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
	rights   int32         // of RunningMax slots that it holds, one for each branch that runs
	outcome  room.Outcome  // decided, once draining
	peer     int32         // handle of the prefill worker, or Local
	tokens   int32         // length of the prompt
	maxNew   int32         // most tokens of output of a branch
	lease    room.Lease    // zero until blocks are given, and for local rooms
	conn     room.Conn     // data connection that the lease is bound to
	keys     []blocks.Key  // of its first blocks, the driver's; nil: it uses no cache
	chunks   []chunk       // let in under the lease, in order of arrival
	inside   int32         // of these, a receiver is inside
	filled   int32         // blocks placed
	word     int32         // chunks there are, once Settled(Success) said so
	filledTo int32         // computed here: tokens that have KV
	stepTo   int32         // the same once the outstanding step is home
	branch                 // its first or only output
	more     []branch      // the others
	behind   behind        // whom it was last seen to wait for; it follows from the rooms
	pin      time.Duration // how long its blocks are pinned when it is over
	began    time.Duration
	since    time.Duration // when it entered its phase
	queued   time.Duration // when it entered its queue
	deadline time.Duration
	resend   time.Duration
}

// behind is an older room and how many blocks of it a younger one waits for.
type behind struct {
	id     room.ID // 0: nobody
	slot   int32
	blocks int32
}

// branch is one output of a room. All of a room have the same full blocks of the prompt, which the
// room holds once; what is behind them is a branch's own (D15).
type branch struct {
	blocks    []int32 // block table from token 0; nil while none are held
	made      int32   // tokens of output so far
	inStep    bool    // part of the outstanding step
	beginning bool    // Begin sent, Begun not here
	over      bool    // its output is complete
}

// branches is how many outputs a room has.
func (e *entry) branches() int { return 1 + len(e.more) }

// at returns branch n of a room, or nil.
func (e *entry) at(n int32) *branch {
	switch {
	case n == 0:
		return &e.branch
	case n < 0 || int(n) > len(e.more):
		return nil
	}
	return &e.more[n-1]
}

// any says whether something is so of some branch.
func (e *entry) any(is func(b *branch) bool) bool {
	for i := range e.more {
		if is(&e.more[i]) {
			return true
		}
	}
	return is(&e.branch)
}

func (b *branch) isUsed() bool { return b.inStep || b.beginning }
func (b *branch) begins() bool { return b.beginning }
func (b *branch) runs() bool   { return !b.over }

// chunk is one piece of KV that was let into the room's blocks.
type chunk struct {
	n        int32 // its number within the lease
	first    int32 // logical number of its first block
	blocks   int32
	isPlaced bool // otherwise a receiver is inside
}

// busy says that something of the room is under way that touches its blocks or its output.
func (e *entry) busy() bool { return e.inside > 0 || e.any((*branch).isUsed) }

// pinned returns the chunk of this number in which a receiver is, or -1.
func (e *entry) pinned(n int32) int {
	return slices.IndexFunc(e.chunks, func(x chunk) bool { return x.n == n && !x.isPlaced })
}

// find returns the live room id, or nil. It is valid until the next add.
func (c *Core) find(id room.ID) *entry {
	if i := c.live.Find(id); i != room.None {
		return &c.rooms[i]
	}
	return nil
}

// branchOf returns a branch of a live room, or nil for what is not here.
func (c *Core) branchOf(id room.ID, n int32) (*entry, *branch) {
	e := c.find(id)
	if e == nil {
		return nil, nil
	}
	return e, e.at(n)
}

// under returns the live room id if it holds this lease, else nil.
func (c *Core) under(id room.ID, l room.Lease) *entry {
	e := c.find(id)
	if e == nil || e.lease != l || l == (room.Lease{}) {
		return nil
	}
	return e
}

// add makes a room live.
func (c *Core) add(id room.ID, p Phase, now, deadline time.Duration) *entry {
	i := c.live.Add(id)
	if int(i) == len(c.rooms) {
		c.rooms = append(c.rooms, entry{})
	}
	e := &c.rooms[i]
	*e = entry{id: id, slot: i, phase: p, chunks: e.chunks[:0], began: now, since: now, queued: now, deadline: deadline}
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
	if e.phase.leased() && !p.leased() {
		c.soonest.Disarmed(room.Timer{Kind: room.ResendTimer, Room: e.id})
	}
	from := e.queue()
	e.phase, e.since = p, now
	if e.queue() != from {
		e.queued = now
	}
}

// bury remembers a room that is over.
func (c *Core) bury(now time.Duration, s room.Tombstone) {
	if _, full := c.tombs.Add(s); full {
		c.soonest.Disarmed(tombstoneTimer)
	}
	if c.tombs.Len() == 1 {
		c.soonest.Armed(now+room.TombstoneKeep, tombstoneTimer)
	}
}

// peer is one prefill worker that rooms of this core were placed on.
type peer struct {
	handle  int32
	dialing bool      // Dial sent, no answer
	conn    room.Conn // data connection of the link that stands, or 0
}

func (c *Core) peerOf(handle int32) *peer {
	for i := range c.peers {
		if c.peers[i].handle == handle {
			return &c.peers[i]
		}
	}
	return nil
}

// know makes sure that a peer is in the table. It says false if the table is full of peers
// that are linked, dialled or waited for.
func (c *Core) know(handle int32) bool {
	if c.peerOf(handle) != nil {
		return true
	}
	if len(c.peers) == room.PeersMax {
		// A peer without link and dial has no rooms: NeedsLink always has a dial under way,
		// and a lease dies with its link.
		i := slices.IndexFunc(c.peers, func(p peer) bool { return !p.dialing && p.conn == 0 })
		if i < 0 {
			return false
		}
		c.peers = slices.Delete(c.peers, i, i+1)
	}
	c.peers = append(c.peers, peer{handle: handle})
	return true
}
