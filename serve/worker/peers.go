package worker

import (
	"log/slog"

	"baton/core/decode"
	"baton/core/room"
)

// peers gives prefill workers the small numbers by which the core knows them. It is a table of
// addresses and connections, not of rooms: a number is used again only when no room names it,
// no link of it is up and no dial is out.
type peers struct {
	of     map[string]int32
	list   []peer
	max    int
	log    *slog.Logger
	worker string
}

type peer struct {
	addr  string
	rooms int
	links int    // up
	dials int    // out
	why   string // how the last link ended, "" while one is up
}

// take gives the entry its peer's number; false when all numbers are in use.
func (p *peers) take(e *entry) bool {
	e.peer = decode.Local
	if e.req.Link == "" {
		return true
	}
	i, ok := p.of[e.req.Link]
	if !ok {
		if i, ok = p.place(); !ok {
			e.why = "links to as many prefill workers as one decode worker keeps are in use"
			return false
		}
		p.of[e.req.Link] = i
		p.list[i] = peer{addr: e.req.Link}
	}
	p.list[i].rooms++
	e.peer = i
	return true
}

func (p *peers) place() (int32, bool) {
	if len(p.list) < p.max {
		p.list = append(p.list, peer{})
		return int32(len(p.list) - 1), true
	}
	for i := range p.list {
		if x := &p.list[i]; x.rooms == 0 && x.links == 0 && x.dials == 0 {
			delete(p.of, x.addr)
			return int32(i), true
		}
	}
	return 0, false
}

// addr is where a peer is dialled, "" for none.
func (p *peers) addr(i int32) string {
	if i == decode.Local {
		return ""
	}
	return p.list[i].addr
}

func (p *peers) drop(e *entry) {
	if e.peer != decode.Local {
		p.list[e.peer].rooms--
	}
}

func (p *peers) dial(i int32) (addr string) {
	p.list[i].dials++
	return p.list[i].addr
}

// note keeps what link events say about connections.
func (p *peers) note(ev *decode.Event, in *input) {
	switch ev.Kind {
	case decode.LinkUp:
		x := &p.list[ev.Peer]
		x.dials, x.links, x.why = x.dials-1, x.links+1, ""
		p.log.Info("link up", "worker", p.worker, "peer", x.addr)
	case decode.LinkFailed:
		x := &p.list[ev.Peer]
		x.dials, x.why = x.dials-1, in.why
		p.log.Warn("link failed", "worker", p.worker, "peer", x.addr, "detail", in.why)
	case decode.LinkEnd:
		x := &p.list[ev.Peer]
		x.links, x.why = x.links-1, in.why
		p.log.Info("link ended", "worker", p.worker, "peer", x.addr, "detail", in.why)
	}
}

func (p *peers) why(i int32) string {
	if i == decode.Local || p.list[i].why == "" {
		return ""
	}
	return "link to " + p.list[i].addr + ": " + p.list[i].why
}

func newPeers(w *Worker) peers {
	return peers{of: map[string]int32{}, max: room.PeersMax, log: w.log, worker: w.name}
}
