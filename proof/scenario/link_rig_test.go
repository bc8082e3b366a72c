package scenario

import (
	"slices"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// link is one connection of a decode to a prefill worker, for control and data.
type link struct {
	r    *rig
	d    *decodeNode
	p    *prefillNode
	conn room.Conn
}

// linkOf finds a link that stands.
func (r *rig) linkOf(is func(*link) bool) *link {
	if i := slices.IndexFunc(r.links, is); i >= 0 {
		return r.links[i]
	}
	return nil
}

func (l *link) lane(from, plane string) string {
	return from + "link" + plane + string(rune('0'+l.conn%64)) + l.d.name + l.p.name
}

// push sends something over the link; it is lost with it.
func (l *link) push(from, name, plane string, arrive func()) {
	l.r.push(&item{name: name, lane: l.lane(from, plane), do: func() {
		if slices.Contains(l.r.links, l) {
			arrive()
		}
	}})
}

// dial makes a link.
func (n *decodeNode) dial(peer int32) {
	r, life, p := n.r, n.id, n.r.prefills[peer]
	r.dials++
	failed := func() {
		if n.id == life {
			n.event(decode.Event{Kind: decode.LinkFailed, Peer: peer})
		}
	}
	r.push(&item{name: "dial " + n.name + " " + p.name, do: func() {
		if !p.up {
			failed()
			return
		}
		if n.id != life {
			return
		}
		if r.linkOf(func(l *link) bool { return l.d == n && l.p == p }) != nil {
			r.Fatalf("RELEASE: %s makes a second link to %s", n.name, p.name)
		}
		r.conns++
		l := &link{r: r, d: n, p: p, conn: r.conns}
		r.links = append(r.links, l)
		n.event(decode.Event{Kind: decode.LinkUp, Peer: peer, Conn: l.conn})
	}, lost: failed})
}

// cut ends the link between two workers; each side notices by itself.
func (r *rig) cut(d *decodeNode, p *prefillNode) {
	l := r.linkOf(func(l *link) bool { return l.d == d && l.p == p })
	if l == nil {
		r.Fatalf("there is no link of %s and %s to cut", d.name, p.name)
	}
	r.links = slices.DeleteFunc(r.links, func(x *link) bool { return x == l })
	dLife, pLife := d.id, p.id
	if d.up {
		r.push(&item{name: "linkend " + d.name + " " + p.name, do: func() {
			if d.id == dLife {
				d.lose(l)
			}
		}})
	}
	if p.up {
		boot := d.boot
		r.push(&item{name: "linkend " + p.name + " " + d.name, do: func() {
			if p.id == pLife {
				p.lose(l, boot)
			}
		}})
	}
}

// lose is what a driver does at decode: receivers off, then the end.
func (n *decodeNode) lose(l *link) {
	for _, x := range slices.Clone(n.inside) {
		if x.l == l {
			n.out(x, decode.ChunkOff)
		}
	}
	n.event(decode.Event{Kind: decode.LinkEnd, Conn: l.conn})
}

// lose is what a driver does at prefill: every write home, then the end.
func (n *prefillNode) lose(l *link, boot room.Boot) {
	for _, w := range slices.Clone(n.writes) {
		if w.boot == boot && w.Conn == l.conn {
			n.home(w, false)
		}
	}
	n.event(prefill.Event{Kind: prefill.LinkEnd, Boot: boot, Conn: l.conn})
}

// die ends a process: its legs break, its links end, what it did is gone.
func (n *node) die(leg relay.Leg) {
	r, life := n.r, n.id
	n.up, n.id = false, -1
	for _, at := range r.attempts {
		if at.worker[leg] == life && !at.closed[leg] && at.ends[leg] == 0 && at.request.ends == 0 {
			r.say(at, leg, "gone", relay.Event{Kind: relay.LegEnd, Outcome: room.Fail(room.WorkerLost)})
		}
	}
}

// kill ends a decode worker.
func (n *decodeNode) kill() {
	n.die(relay.Decode)
	for _, l := range slices.Clone(n.r.links) {
		if l.d == n {
			n.r.cut(n, l.p)
		}
	}
	n.inside = nil
}

// kill ends a prefill worker.
func (n *prefillNode) kill() {
	n.die(relay.Prefill)
	for _, l := range slices.Clone(n.r.links) {
		if l.p == n {
			n.r.cut(l.d, n)
		}
	}
	n.writes = nil
}

// restart gives the place a new life, which the gateway hears of.
func (n *decodeNode) restart() {
	n.start()
	n.r.healthy(&n.node)
}

func (n *prefillNode) restart() {
	n.start()
	n.r.healthy(&n.node)
}

// phase is where a room is on a worker, "" if it is not there.
func phase(rooms func(func(room.View) bool), id room.ID) string {
	for v := range rooms {
		if v.Room == id {
			return v.Phase
		}
	}
	return ""
}

// room is the room of a request's attempt.
func (q *request) room(attempt int) room.ID { return room.ID(q.id)<<8 | room.ID(attempt) }
