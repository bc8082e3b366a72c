package prefill

import (
	"time"

	"baton/core/room"
)

// This file holds the answers to the gateway and to decode; work.go holds what the engine and
// the link say.

// request opens the leg of a room, or refuses it in the same step.
func (c *Core) request(now time.Duration, ev *Event, out *Effects) {
	e := c.find(ev.Room)
	if e != nil && e.hasReq {
		refuse(out, ev.Room, room.Fail(room.Internal)) // a room is one attempt: somebody sent it twice
		return
	}
	if s := c.tombs.Find(ev.Room); s != nil {
		o := s.Outcome // its Abort or Cancel came first
		if o.Kind == room.Success {
			o = room.Fail(room.Internal)
		}
		refuse(out, ev.Room, o)
		return
	}
	if cause := c.inadmissible(ev, e); cause != room.NoCause {
		o := room.Fail(cause)
		refuse(out, ev.Room, o)
		switch {
		case e != nil:
			c.fail(now, e, o, out)
		case ev.Room != 0:
			// Decode's Prealloc, if it comes, is answered at once.
			c.bury(now, room.Tombstone{Room: ev.Room, Outcome: o, Began: now, Ended: now})
		}
		return
	}
	if e == nil {
		e = c.add(ev.Room, NeedsPrealloc, now, ev.Deadline)
		e.tokens = int32(ev.Tokens)
	} else {
		c.move(e, Queued, now)
		c.sooner(e, ev.Deadline)
	}
	e.hasReq, e.keys, e.pin = true, ev.Keys, min(ev.Pin, room.PinMax)
	out.add(Effect{Kind: Accept, Room: e.id})
}

// inadmissible says why a Request cannot be taken, half being the room that its Prealloc
// opened before.
func (c *Core) inadmissible(ev *Event, half *entry) room.Cause {
	switch {
	case ev.Room == 0 || ev.Tokens < 1 || ev.Tokens > room.TokensMax || room.BlocksFor(ev.Tokens) > c.cfg.Blocks:
		return room.ClientError
	case half != nil && int(half.tokens) != ev.Tokens:
		return room.Internal // the gateway gave the two legs different prompts
	case ev.Pin < 0, len(ev.Keys) > ev.Tokens/room.BlockTokens:
		return room.Internal // a key for a block that the prompt does not fill
	case c.draining && half == nil: // not full: the room is served elsewhere, or here by a successor
		return room.WorkerLost
	case c.count[NeedsPrealloc]+c.count[Queued] >= int32(c.cfg.QueuedMax):
		return room.Overload
	}
	return room.NoCause
}

func refuse(out *Effects, id room.ID, o room.Outcome) {
	out.add(Effect{Kind: Refuse, Room: id, Outcome: o})
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

// prealloc gives a room its lease. A lease is served at most once (P6): everything that may
// have been answered before is answered again, never served.
func (c *Core) prealloc(now time.Duration, p *room.Prealloc, out *Effects) {
	e, s := c.find(p.Room), c.tombs.Find(p.Room)
	switch {
	case e != nil && e.lease == p.Lease:
		// Sent again; the final word is still to come.
	case e != nil && e.lease != (room.Lease{}):
		c.raise(p.Lease)
		word(out, p.Room, p.Lease, room.Fail(room.Internal), 0) // one lease per room
	case s != nil:
		c.repeat(s, p.Lease, out)
	case c.below(p.Lease):
		word(out, p.Room, p.Lease, room.Fail(room.WorkerLost), 0)
	default:
		c.bind(now, e, p, out)
	}
}

// bind opens or completes a room with a lease that nobody has spoken of.
func (c *Core) bind(now time.Duration, e *entry, p *room.Prealloc, out *Effects) {
	cause := room.NoCause
	switch {
	case p.Room == 0 || p.Lease.Seq == 0 || p.Conn == 0 || p.From < 0 || p.From >= p.Tokens || p.From%room.BlockTokens != 0:
		cause = room.Internal
	case room.BlocksFor(p.Tokens) > c.cfg.Blocks || p.Tokens > room.TokensMax:
		cause = room.ClientError
	case e != nil && int(e.tokens) != p.Tokens:
		cause = room.Internal
	case e == nil && c.draining: // as for a Request
		cause = room.WorkerLost
	case e == nil && c.count[NeedsRequest] >= int32(c.cfg.QueuedMax):
		cause = room.Overload
	}
	switch {
	case cause != room.NoCause && e != nil:
		e.lease = p.Lease // so that the final word has an address
		c.fail(now, e, room.Fail(cause), out)
		return
	case cause != room.NoCause:
		o := room.Fail(cause)
		word(out, p.Room, p.Lease, o, 0)
		if p.Room != 0 {
			out.add(Effect{Kind: EndHalf, Room: p.Room, Lease: p.Lease, Outcome: o, Began: now})
			c.bury(now, room.Tombstone{Room: p.Room, Lease: p.Lease, Outcome: o, Began: now, Ended: now})
		}
		return
	case e == nil:
		e = c.add(p.Room, NeedsRequest, now, now+p.Left)
		e.tokens = int32(p.Tokens)
	default:
		c.move(e, Queued, now)
		c.sooner(e, now+p.Left)
	}
	e.lease, e.conn, e.from = p.Lease, p.Conn, int32(p.From)
}

// cancel ends a room because decode gave the lease up.
func (c *Core) cancel(now time.Duration, x room.Cancel, out *Effects) {
	if x.Cause == room.NoCause {
		x.Cause = room.Cancelled
	}
	o := room.Fail(x.Cause)
	e, s := c.find(x.Room), c.tombs.Find(x.Room)
	switch {
	case e != nil && (e.lease == x.Lease || e.lease == (room.Lease{})):
		e.lease = x.Lease
		c.fail(now, e, o, out)
	case e != nil:
		c.raise(x.Lease)
		word(out, x.Room, x.Lease, o, 0)
	case s != nil:
		c.repeat(s, x.Lease, out)
	default:
		// It overtook everything else of its room, or everything was forgotten.
		word(out, x.Room, x.Lease, o, 0)
		if x.Room != 0 {
			c.bury(now, room.Tombstone{Room: x.Room, Lease: x.Lease, Outcome: o, Began: now, Ended: now})
		}
	}
}

// repeat says the final word of a room that is over once more. The first lease that asks is
// the one that the tombstone answers for; on any other the word is a failure.
func (c *Core) repeat(s *room.Tombstone, l room.Lease, out *Effects) {
	switch {
	case s.Lease == l:
		word(out, s.Room, l, s.Outcome, s.Chunks)
		return
	case s.Lease == (room.Lease{}):
		s.Lease = l
	default:
		c.raise(l)
	}
	o := s.Outcome
	if o.Kind == room.Success {
		o = room.Fail(room.Internal)
	}
	word(out, s.Room, l, o, 0)
}

// word sends a final word (P1).
func word(out *Effects, id room.ID, l room.Lease, o room.Outcome, chunks int) {
	out.add(Effect{Kind: Settle, Settled: room.Settled{Room: id, Lease: l, Outcome: o, Chunks: chunks}})
}
