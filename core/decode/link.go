package decode

import (
	"slices"
	"time"

	"baton/core/room"
)

// dial asks for a link, unless that is under way.
func (c *Core) dial(p *peer, out *Effects) {
	if !p.dialing {
		p.dialing = true
		out.add(Effect{Kind: Dial, Peer: p.handle})
	}
}

// dialled takes the answer to a Dial and returns its peer.
func (c *Core) dialled(handle int32) *peer {
	p := c.peerOf(handle)
	if p == nil || !p.dialing {
		c.impossible(nil, 0, "an answer to a dial that was not asked for")
	}
	p.dialing = false
	return p
}

// linkUp lets the rooms of a peer go on.
func (c *Core) linkUp(now time.Duration, handle int32, conn room.Conn) {
	p := c.dialled(handle)
	if conn == 0 {
		c.impossible(nil, 0, "a link without a data connection")
	}
	p.conn = conn
	for i := c.live.First(); i != room.None; i = c.live.Next(i) {
		if e := &c.rooms[i]; e.phase == NeedsLink && e.peer == handle {
			c.move(e, NeedsBlocks, now)
		}
	}
}

// linkFailed ends the rooms that waited for the link: where else to try is the gateway's to
// decide.
func (c *Core) linkFailed(now time.Duration, handle int32, cause room.Cause, out *Effects) {
	c.dialled(handle)
	if cause == room.NoCause {
		cause = room.WorkerLost
	}
	for i := c.live.First(); i != room.None; {
		e := &c.rooms[i]
		i = c.live.Next(i) // e may go
		if e.phase == NeedsLink && e.peer == handle {
			c.fail(now, e, room.Fail(cause), out)
		}
	}
}

// linkEnd gives up every waiting lease on a connection that is gone: no chunk and no word
// will come over it any more (D4). Rooms that have no lease yet wait for the next link. Peers
// that turned out to be one worker share a connection, and lose it together.
func (c *Core) linkEnd(now time.Duration, conn room.Conn, out *Effects) {
	known := false
	for i := range c.peers {
		if p := &c.peers[i]; p.conn == conn && conn != 0 {
			p.conn, known = 0, true
		}
	}
	if !known {
		return // never heard of, so no lease is bound to it
	}
	for i := c.live.First(); i != room.None; {
		e := &c.rooms[i]
		i = c.live.Next(i) // e may go
		switch {
		case e.conn == conn && e.inside > 0:
			c.impossible(e, e.id, "a link ended with a receiver inside a block")
		case e.phase == NeedsBlocks && e.peer != Local && c.peerOf(e.peer).conn == 0:
			p := c.peerOf(e.peer)
			c.move(e, NeedsLink, now)
			c.dial(p, out)
		case e.phase.leased() && e.conn == conn:
			c.fail(now, e, room.Fail(room.WorkerLost), out)
		}
	}
}

// arrived says whether a receiver may go into the room's blocks. A chunk is let in only while
// its lease waits, on its lease's connection, and only into blocks that no other chunk was
// let into (D1): once, and never after the room has begun to read them.
func (c *Core) arrived(now time.Duration, ev *Event, out *Effects) {
	e := c.under(ev.Room, ev.Lease)
	answer := Effect{Kind: Place, Room: ev.Room, Lease: ev.Lease, Chunk: ev.Chunk}
	if e == nil || !e.phase.leased() || e.conn != ev.Conn {
		out.add(answer)
		return
	}
	ok, again := e.admits(ev)
	if !ok {
		out.add(answer)
		if !again {
			c.fail(now, e, room.Fail(room.TransferFailed), out) // the peer counts otherwise than we do
		}
		return
	}
	e.chunks = append(e.chunks, chunk{n: ev.Chunk, first: ev.FirstBlock, blocks: ev.N})
	e.inside++
	if e.phase == Preallocated {
		c.move(e, Receiving, now)
	}
	c.pool.Own(e.blocks[ev.FirstBlock : ev.FirstBlock+ev.N])
	answer.OK, answer.Blocks = true, e.blocks[ev.FirstBlock:ev.FirstBlock+ev.N:ev.FirstBlock+ev.N]
	out.add(answer)
}

// admits says whether a chunk fits into the prompt beside those that were let in; again says
// that it is one of them.
func (e *entry) admits(ev *Event) (ok, again bool) {
	all := int32(room.BlocksFor(int(e.tokens)))
	if ev.Chunk < 0 || ev.FirstBlock < e.filledTo/room.BlockTokens || ev.N < 1 || ev.N > all || ev.FirstBlock > all-ev.N {
		return false, false
	}
	for i := range e.chunks {
		x := &e.chunks[i]
		same := x.n == ev.Chunk && x.first == ev.FirstBlock && x.blocks == ev.N
		if same || x.n == ev.Chunk || ev.FirstBlock < x.first+x.blocks && x.first < ev.FirstBlock+ev.N {
			return false, same
		}
	}
	return true, false
}

// inside returns the room and chunk that a receiver is in. A room cannot end while one is
// (D3), so that it is not there is impossible.
func (c *Core) inside(ev *Event) (*entry, int) {
	e := c.under(ev.Room, ev.Lease)
	if e == nil {
		c.impossible(nil, ev.Room, "a receiver comes out of a room that is gone")
	}
	k := e.pinned(ev.Chunk)
	if k < 0 {
		c.impossible(e, e.id, "a receiver comes out of a chunk that it was not in")
	}
	return e, k
}

// placed counts a chunk whose bytes are in its blocks.
func (c *Core) placed(now time.Duration, ev *Event, out *Effects) {
	e, k := c.inside(ev)
	e.chunks[k].isPlaced = true
	e.inside--
	e.filled += e.chunks[k].blocks
	if e.phase == Draining {
		c.endIfQuiet(now, e, out)
		return
	}
	c.complete(now, e, out)
}

// off takes a receiver out that placed nothing. Why it did comes as an event of its own.
func (c *Core) off(now time.Duration, ev *Event, out *Effects) {
	e, k := c.inside(ev)
	e.chunks = slices.Delete(e.chunks, k, k+1)
	e.inside--
	if e.phase == Draining {
		c.endIfQuiet(now, e, out)
	}
}

// refused gives up a room whose bytes were wrong: prefill does not send them again.
func (c *Core) refused(now time.Duration, ev *Event, out *Effects) {
	if e := c.under(ev.Room, ev.Lease); e != nil && e.phase.leased() {
		c.fail(now, e, room.Fail(room.TransferFailed), out)
	}
}
