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
	d := w.dir(int(m.from), int(m.to))
	if d.dead > 0 {
		d.stalled = append(d.stalled, stalled{s, m})
		return
	}
	w.forward(d, s, m)
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
	case legAccepted, legToken, legEnd, legReset:
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
	case legAccepted, legToken, legEnd:
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
		if n[0].role == gatewayRole || n[1].role == gatewayRole || !n[0].up {
			continue // legs have the budgets of their requests
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
		if k.peerOf(n) == peer && k.up(n) && (deaf || len(k.writes) > 0 && n.role == prefillRole) {
			w.sights.see(linkSilent)
			w.say(0, n, "nothing moved on connection %d: it ends here", k.conn)
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
