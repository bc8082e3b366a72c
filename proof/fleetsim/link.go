package fleetsim

import (
	"slices"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/transfer"
)

// link is one data connection with its control connection. Each end notices by itself that it
// is over.
type link struct {
	conn     room.Conn
	boot     room.Boot // of the decode process that dialled
	d, p     *node
	dLife    uint32
	pLife    uint32
	dialing  bool
	dUp, pUp bool
	streams  [4]stream // to prefill, to decode, data, and ends
	writes   []write   // of prefill; the first is under way if busy
	busy     bool
	credit   int        // chunks that decode lets be on the way
	wire     []*message // chunks that arrived and wait for the receiver
	receiver int32      // number of the chunk that a receiver is in, counted per link; 0: none
	received int32
	cur      chunk
	table    []int32
	early    bool // the receiver was told to leave
}

// window is how many chunks may be on the way on one connection.
const window = 3

// chunk is one piece of KV, with what its bytes say.
type chunk struct {
	room     room.ID
	lease    room.Lease
	conn     room.Conn
	n, first int32
	last     bool
	side     uint64   // last: of which the first tokens are made
	wrong    bool     // last: the side data makes no sense
	damaged  bool     // on the way
	sums     []uint64 // per block, when it was computed
	content  []uint64 // per block, when it was sent
}

type write struct {
	chunk  chunk
	blocks []int32
}

func (k *link) up(n *node) bool {
	if n == k.d {
		return k.dUp && k.dLife == n.life
	}
	return k.pUp && k.pLife == n.life
}

func (k *link) lifeOf(n *node) uint32 {
	if n == k.d {
		return k.dLife
	}
	return k.pLife
}

func (k *link) peerOf(n *node) *node {
	if n == k.d {
		return k.p
	}
	return k.d
}

// links lists a worker's connections, oldest first. The result is not to be kept.
func (n *node) links() []*link {
	switch {
	case n.p != nil:
		return slices.Clone(n.p.links)
	case n.d != nil:
		return slices.Clone(n.d.links)
	}
	return nil
}

// compose makes a message for the other end of a link; post sends it.
func (w *World) compose(n *node, k *link, kind messageKind) *message {
	m := w.message()
	to, life := k.p, k.pLife
	if n == k.p {
		to, life = k.d, k.dLife
	}
	m.kind, m.from, m.to, m.life, m.link = kind, int32(n.id), int32(to.id), life, k
	return m
}

// stream is the connection that a message travels on: of the two, either tells its end.
func (k *link) stream(m *message) *stream {
	switch {
	case m.kind == linkChunk:
		return &k.streams[2]
	case m.to == int32(k.p.id):
		return &k.streams[0]
	case m.kind == linkEnded:
		return &k.streams[3]
	}
	return &k.streams[1]
}

func (w *World) tell(n *node, k *link, kind messageKind) { w.post(w.compose(n, k, kind)) }

func (w *World) post(m *message) { w.send(m.link.stream(m), m) }

// dial asks for a link to prefill worker peer.
func (w *World) dial(n *node, peer int32) {
	p := w.nodes[w.plan.sizes.Gateways+int(peer)]
	w.conns++
	k := &link{conn: w.conns, boot: n.d.boot, d: n, p: p, dLife: n.life, dialing: true, credit: window}
	n.d.dials = append(n.d.dials, k)
	m := w.message()
	m.kind, m.from, m.to, m.link = linkDial, int32(n.id), int32(p.id), k
	w.send(&k.streams[0], m)
	w.queue.push(event{at: n.clock.when(n.clock.read(w.now) + transfer.HandshakeDefault), kind: dialOver, node: int32(n.id), life: n.life, link: k})
}

// dialled is prefill's side of a dial.
func (w *World) dialled(p *node, m *message) {
	k := m.link
	if !p.up {
		k.pLife = 0
		w.tell(p, k, linkEnded)
		return
	}
	if i := slices.IndexFunc(p.p.links, func(x *link) bool { return x.d == k.d && x.boot == k.boot && x.pUp }); i >= 0 {
		w.endLink(p, p.p.links[i]) // a new link of the same life ends the older one
	}
	k.pLife, k.pUp = p.life, true
	p.p.links = append(p.p.links, k)
	w.tell(p, k, linkUp)
}

// dialOver gives a dial up.
func (w *World) dialOver(n *node, k *link) {
	if !k.dialing {
		return
	}
	k.dialing = false
	w.dialFailed(n, k)
	w.tell(n, k, linkEnded)
}

func (w *World) dialFailed(n *node, k *link) {
	n.d.dials = slices.DeleteFunc(n.d.dials, func(x *link) bool { return x == k })
	w.stepD(n, decode.Event{Kind: decode.LinkFailed, Peer: int32(k.p.at), Cause: room.WorkerLost})
}

// linkMessage takes what came over a link.
func (w *World) linkMessage(n *node, m *message) {
	k := m.link
	switch m.kind {
	case linkUp:
		if !k.dialing {
			w.tell(n, k, linkEnded)
			return
		}
		k.dialing, k.dUp = false, true
		n.d.dials = slices.DeleteFunc(n.d.dials, func(x *link) bool { return x == k })
		n.d.links = append(n.d.links, k)
		w.stepD(n, decode.Event{Kind: decode.LinkUp, Peer: int32(k.p.at), Conn: k.conn})
		return
	case linkEnded:
		if n == k.d && k.dialing {
			k.dialing = false
			w.dialFailed(n, k)
		} else if k.up(n) {
			w.endLink(n, k)
		}
		return
	}
	if !k.up(n) {
		return
	}
	switch m.kind {
	case linkPrealloc:
		w.preallocAt(n, m)
	case linkCancel:
		w.dropQueued(n, k, m.cancel.Lease)
		w.stepP(n, prefill.Event{Kind: prefill.Cancel, Cancel: m.cancel})
		w.goneSoon(n, m.cancel.Room)
	case linkSettled:
		w.stepD(n, decode.Event{Kind: decode.Settled, Settled: m.settled})
	case linkChunk:
		x := w.message()
		x.chunk = m.chunk
		k.wire = append(k.wire, x)
		w.receive(n, k)
	}
}

// endLink ends a connection at one end, and tells the other.
func (w *World) endLink(n *node, k *link) {
	w.sights.see(linkEnds)
	if peer := k.peerOf(n); peer.up && peer.life == k.lifeOf(peer) && !peer.leaving {
		w.struck(n, byLink)
		w.struck(peer, byLink)
	} else {
		w.struck(n, byPeer)
	}
	if n == k.p {
		k.pUp = false
		n.p.links = slices.DeleteFunc(n.p.links, func(x *link) bool { return x == k })
		w.tell(n, k, linkEnded)
		for len(k.writes) > 0 {
			w.home(n, k, 0, false)
		}
		w.unbound(n, k)
		w.stepP(n, prefill.Event{Kind: prefill.LinkEnd, Boot: k.boot, Conn: k.conn})
		return
	}
	k.dUp = false
	n.d.links = slices.DeleteFunc(n.d.links, func(x *link) bool { return x == k })
	w.tell(n, k, linkEnded)
	for _, m := range k.wire {
		w.free(m)
	}
	k.wire = nil
	if k.receiver != 0 {
		w.leave(n, k, false)
	}
	w.unbound(n, k)
	w.stepD(n, decode.Event{Kind: decode.LinkEnd, Conn: k.conn})
}

// unbound has every room judged whose lease goes with a connection.
func (w *World) unbound(n *node, k *link) {
	for v := range n.rooms() {
		bound := v.Lease.Boot == k.boot
		if n.d != nil {
			bound = v.Lease.Seq != 0 && v.Peer == int32(k.p.at) && v.Queue == room.Transfer
		}
		if bound {
			w.goneSoon(n, v.Room)
		}
	}
}

// pump starts the next write of a link, if decode lets it.
func (w *World) pump(n *node, k *link) {
	if k.busy || len(k.writes) == 0 || k.credit == 0 || !k.pUp {
		return
	}
	k.busy = true
	d := w.cost(n, 50*time.Microsecond, time.Millisecond) * time.Duration(len(k.writes[0].blocks))
	w.queue.push(event{at: w.now + d, kind: written, node: int32(n.id), life: n.life, link: k})
}

// writtenP sends the bytes of the write at the head, as they are now.
func (w *World) writtenP(n *node, k *link) {
	if !k.pUp || !k.busy {
		return
	}
	x := &k.writes[0]
	if n.failWrite {
		n.failWrite = false
		w.sights.see(writeFails)
		w.struck(n, byBytes)
		w.home(n, k, 0, false)
		w.pump(n, k)
		return
	}
	m := w.compose(n, k, linkChunk)
	m.chunk = x.chunk
	m.chunk.content = make([]uint64, len(x.blocks))
	for i, b := range x.blocks {
		m.chunk.content[i] = n.p.pool.content[b]
	}
	switch {
	case n.damaged != k.d:
	case x.chunk.last && w.plan.weather >= rough && n.rng.n(3) == 0:
		m.chunk.wrong = true
	default:
		m.chunk.content[0] ^= 1
		m.chunk.damaged = true
	}
	k.credit--
	w.post(m)
	w.home(n, k, 0, true)
	w.pump(n, k)
}

// home brings write i of a link home.
func (w *World) home(n *node, k *link, i int, ok bool) {
	x := k.writes[i]
	if i == 0 {
		k.busy = false
	}
	k.writes = slices.Delete(k.writes, i, i+1)
	n.p.pool.out(x.blocks)
	w.stepP(n, prefill.Event{Kind: prefill.WriteDone, Room: x.chunk.room, Lease: x.chunk.lease, Chunk: x.chunk.n, OK: ok})
}

// dropQueued takes the writes of a lease that was given up out of the line; one that is under
// way goes on.
func (w *World) dropQueued(n *node, k *link, l room.Lease) {
	for i := len(k.writes) - 1; i >= 0; i-- {
		if k.writes[i].chunk.lease == l && (i > 0 || !k.busy) {
			w.home(n, k, i, false)
		}
	}
}

// receive lets the next chunk of a link in, if its core agrees.
func (w *World) receive(n *node, k *link) {
	for k.dUp && k.receiver == 0 && len(k.wire) > 0 {
		m := k.wire[0]
		k.wire = slices.Delete(k.wire, 0, 1)
		k.cur, k.table, k.early = m.chunk, nil, false
		w.free(m)
		n.d.asking = k
		w.stepD(n, decode.Event{Kind: decode.ChunkArrived, Room: k.cur.room, Lease: k.cur.lease, Conn: k.cur.conn, Chunk: k.cur.n,
			FirstBlock: k.cur.first, N: int32(len(k.cur.sums)), Last: k.cur.last})
		if n.d.asking != nil {
			w.fail("SAFETY", 0, "decode %d does not answer a chunk that arrived", n.at)
			return
		}
		if k.table == nil {
			w.credit(n, k)
			continue
		}
		k.received++
		k.receiver = k.received
		d := w.cost(n, 50*time.Microsecond, 500*time.Microsecond) * time.Duration(len(k.table))
		w.queue.push(event{at: w.now + d, kind: placed, node: int32(n.id), life: n.life, link: k, n: k.receiver})
	}
}

// credit lets prefill send one more. Grants are not modelled as messages.
func (w *World) credit(n *node, k *link) {
	k.credit = min(k.credit+1, window) // one that came twice earns nothing
	if k.p.up && k.p.frozenAt == 0 && k.pLife == k.p.life {
		w.pump(k.p, k)
	}
}

// through is the moment at which a receiver has all bytes, or was told to leave.
func (w *World) through(n *node, k *link, which int32, ok bool) {
	if k.receiver != which || !k.dUp {
		return
	}
	if d := w.dir(k.p.id, n.id); d.dead > 0 { // the rest of the bytes does not come, until it does
		if !ok {
			w.leave(n, k, false)
			w.receive(n, k)
			return
		}
		w.queue.push(event{at: w.now + 50*time.Millisecond, kind: placed, node: int32(n.id), life: n.life, link: k, n: which})
		return
	}
	w.leave(n, k, ok)
	w.credit(n, k)
	w.receive(n, k)
}

// leave takes the receiver out of its blocks.
func (w *World) leave(n *node, k *link, ok bool) {
	x := k.cur
	ev := decode.Event{Kind: decode.ChunkPlaced, Room: x.room, Lease: x.lease, Conn: x.conn, Chunk: x.n}
	good := ok
	for i, b := range k.table {
		good = good && x.content[i] == x.sums[i]
		if ok {
			n.d.pool.content[b] = x.content[i] // wrong bytes are in the block, too
		}
	}
	n.d.pool.out(k.table)
	k.receiver, k.table = 0, nil
	if good {
		if x.last {
			if r := n.d.rooms[x.room]; r != nil {
				r.read, r.side = x.side, !x.wrong
				if x.wrong {
					w.sights.see(sideWrong)
					w.struck(n, byBytes)
				}
			}
		}
		w.stepD(n, ev)
		return
	}
	ev.Kind = decode.ChunkOff
	w.stepD(n, ev)
	if ok {
		if !x.damaged {
			w.fail("OWN", w.of(x.room), "chunk %d of room %s has other bytes than were computed for it, and nobody damaged it on the way", x.n, x.room)
		}
		w.sights.see(chunkRefused)
		w.struck(n, byBytes)
		w.say(w.of(x.room), n, "wrong bytes in chunk %d", x.n)
		ev.Kind = decode.ChunkRefused
		w.stepD(n, ev)
	}
}
