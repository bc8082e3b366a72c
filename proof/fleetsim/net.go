package fleetsim

import (
	"time"

	"baton/core/room"
	"baton/transfer"
)

// direction is the way from one node to another.
type direction struct {
	dead    int // deaden choices that last
	lags    int
	garbled int
	since   time.Duration // of dead
	rng     rng
	stalled []stalled
}

// stalled is what lies in a sender's kernel until the direction heals.
type stalled struct {
	s *stream
	m *message
}

// stream is one connection in one direction: ordered.
type stream struct{ last time.Duration }

// message is anything on its way, and what an event needs to remember.
type message struct {
	kind     messageKind
	from, to int32
	life     uint32 // of the process that it is for; another one resets the connection
	leg      *leg
	link     *link
	room     room.ID
	sentAt   time.Duration
	until    time.Duration // ghost: when its room's time is over, true time
	prealloc room.Prealloc
	cancel   room.Cancel
	settled  room.Settled
	chunk    chunk
	token    uint64
	k        int32
	output   int32
	outcome  room.Outcome
	finished bool
	said     bool
	frozen   time.Duration // ghost: how long its node had stood still when this was scheduled
}

type messageKind uint8

const (
	legRequest messageKind = iota
	legClose               // the gateway hung up
	legAccepted
	legToken
	legWaits // its room waits for memory, and will go on
	legEnd
	legReset // the worker's end of the connection is gone
	linkDial
	linkUp
	linkEnded // the other end is gone
	linkPrealloc
	linkCancel
	linkSettled
	linkChunk
)

func (w *World) dir(from, to int) *direction { return &w.dirs[from*len(w.nodes)+to] }

// send puts m on a stream. It arrives after everything sent on it before.
func (w *World) send(s *stream, m *message) {
	m.sentAt = w.now
	w.sent(m)
	d := w.dir(int(m.from), int(m.to))
	if d.dead > 0 {
		d.stalled = append(d.stalled, stalled{s, m})
		return
	}
	if d.garbled > 0 && m.kind >= linkPrealloc && w.garble(d, m) {
		return
	}
	w.forward(d, s, m)
}

// garble loses, repeats or delays a message of a link, as a network without TCP does. A core lives
// with that; a chunk that is lost is the end of its connection, so that none is. It says whether
// nothing more is to be done for the message.
func (w *World) garble(d *direction, m *message) bool {
	switch x := d.rng.n(6); {
	case x == 0 && m.kind != linkChunk:
		w.sights.see(messageLost)
		w.lost(m)
		w.free(m)
		return true
	case x == 1: // the second comes when it likes
		again := w.message()
		*again = *m
		w.late(d, again)
		w.sights.see(messageTwice)
	case x == 2:
		w.sights.see(messageLate)
		w.late(d, m)
		return true
	}
	return false
}

// late delivers a message that others overtake.
func (w *World) late(d *direction, m *message) {
	w.queue.push(event{at: w.now + d.rng.span(time.Millisecond, time.Second), kind: deliver, node: m.to, m: m})
}

func (w *World) forward(d *direction, s *stream, m *message) {
	at := w.now + 100*time.Microsecond
	if !w.plan.steady {
		at = w.now + d.rng.span(30*time.Microsecond, 400*time.Microsecond)
	}
	if d.lags > 0 {
		at += d.rng.span(0, 2*time.Second)
	}
	s.last = max(at, s.last)
	w.queue.push(event{at: s.last, kind: deliver, node: m.to, m: m})
}

// deliver brings a message to whoever runs at its address.
func (w *World) deliver(n *node, m *message) {
	defer w.free(m)
	w.arrived(m)
	if m.kind == linkDial {
		w.dialled(n, m)
		return
	}
	if !n.up || m.kind != legRequest && m.kind != legClose && n.life != m.life {
		w.reset(n, m)
		return
	}
	switch m.kind {
	case legRequest, legClose:
		w.legAtWorker(n, m)
	case legAccepted, legToken, legWaits, legEnd, legReset:
		w.legAtGateway(n, m)
	default:
		w.linkMessage(n, m)
	}
}

// reset answers what came for a process that is gone.
func (w *World) reset(n *node, m *message) {
	switch m.kind {
	case legRequest, legClose:
		w.sendLeg(n, m.leg, legReset, room.Outcome{})
	case linkUp:
		m.link.dUp = false
		w.tell(n, m.link, linkEnded)
	case linkPrealloc, linkCancel, linkSettled, linkChunk:
		w.tell(n, m.link, linkEnded)
	case legAccepted, legToken, legWaits, legEnd:
		w.hangUp(m.leg)
	}
}

// deadDirection stalls everything from a to b.
func (w *World) deadDirection(a, b *node) {
	d := w.dir(a.id, b.id)
	d.dead++
	if d.dead == 1 {
		d.since = w.now
	}
	w.quiet(a, b)
}

// quiet begins to count how long nothing was heard from a at b, and how long what b's peer
// wrote stood still.
func (w *World) quiet(a, b *node) {
	for _, n := range [...][2]*node{{b, a}, {a, b}} {
		if n[0].role == gatewayRole || n[1].role == gatewayRole {
			if g, x := n[0], n[1]; g.role == gatewayRole && g.up && x.up && x.role != gatewayRole { // legs have the budgets of their requests
				w.queue.push(event{at: w.now + downAfter, kind: poll, node: int32(g.id), life: g.life, n: x.worker})
			}
			continue
		}
		if !n[0].up {
			continue
		}
		m := w.message()
		m.sentAt = w.now
		at := n[0].clock.when(n[0].clock.read(w.now) + transfer.SilenceDefault)
		w.queue.push(event{at: at, kind: silence, node: int32(n[0].id), life: n[0].life, n: int32(n[1].id), m: m})
	}
}

// silent ends the links of n with a peer, if nothing moved since.
func (w *World) silent(n, peer *node, since time.Duration) {
	in, out := w.dir(peer.id, n.id), w.dir(n.id, peer.id)
	deaf := in.dead > 0 && in.since <= since || peer.frozenAt != 0 && peer.frozenAt <= since
	mute := out.dead > 0 && out.since <= since || peer.frozenAt != 0 && peer.frozenAt <= since
	if !deaf && !mute {
		return
	}
	for _, k := range n.links() {
		if k.peerOf(n) == peer && k.up(n) && (deaf || len(k.writes) > 0 && n.p != nil) {
			w.sights.see(linkSilent)
			w.sayNode(n, "%s %d: nothing moved on its connection with %s %d", roleNames[n.role], n.at, roleNames[peer.role], peer.at)
			w.endLink(n, k)
		}
	}
}

// healDirection lets what stalled go on.
func (w *World) healDirection(a, b *node) {
	d := w.dir(a.id, b.id)
	if d.dead--; d.dead > 0 {
		return
	}
	list := d.stalled
	d.stalled = nil
	for _, x := range list {
		w.forward(d, x.s, x.m)
	}
}
