package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/proof/explore"
)

// System is a cluster that can be walked through.
type System struct{ scope Scope }

// New returns the system of a scope.
func New(sc Scope) *System { return &System{sc} }

// Event is one choice of the scheduler.
type Event struct {
	Kind Kind
	A, B int // what they are depends on Kind
	Side relay.Leg
	Room room.ID
}

// Kind of choice.
type Kind uint8

const (
	arrive   Kind = iota // A: request
	choose               // A: request
	dispatch             // a leg reaches its worker. A: request, B: attempt, Side
	hear                 // the gateway hears the next of a leg. A: request, B: attempt, Side
	healthy              // the gateway hears that worker A, which it blamed, is there
	hangUp               // a worker sees that a leg was closed. A: request, B: attempt, Side
	stepP                // A: worker
	stepD                // A: worker
	begun                // A: worker, Room
	dialled_             // a dial of decode worker A to prefill worker B is answered
	ctlP                 // prefill reads the next control message of connection A
	ctlD                 // decode does
	header               // decode reads the next chunk header of connection A
	placed               // the receiver of connection A is through
	returns              // write B of prefill worker A returns
	seenP                // prefill sees the end of connection A
	seenD                // decode does
	timerG               // A: request, B: timer of the gateway
	timerP               // A: worker, B: kind, Room
	timerD               // A: worker, B: kind, Room
	leave                // A: request
	refuse               // wrong bytes in connection A
	stepPBad             // A: worker
	stepDBad             // A: worker
	breakP               // connection A ends, prefill sees it first
	breakD               // ... decode sees it first
	crashP               // A: worker
	crashD               // A: worker
	restartP             // A: worker
	restartD             // A: worker
	kinds
)

var kindTable = [kinds]struct {
	class explore.Class
	name  string
}{
	arrive: {explore.Progress, "request %d arrives"}, choose: {explore.Progress, "request %d is placed"},
	dispatch: {explore.Delivery, "leg %d#%d reaches"}, hear: {explore.Delivery, "gateway hears of leg %d#%d at"},
	healthy: {explore.Delivery, "gateway hears of the health of worker %d"},
	hangUp:  {explore.Delivery, "leg %d#%d is seen closed by"},
	stepP:   {explore.Progress, "prefill %d: step done"}, stepD: {explore.Progress, "decode %d: step done"},
	begun: {explore.Progress, "decode %d: first token"}, dialled_: {explore.Delivery, "decode %d: dial of prefill %d answered"},
	ctlP: {explore.Delivery, "connection %d: message to prefill"}, ctlD: {explore.Delivery, "connection %d: message to decode"},
	header: {explore.Delivery, "connection %d: header"}, placed: {explore.Delivery, "connection %d: placed"},
	returns: {explore.Delivery, "prefill %d: write %d returns"},
	seenP:   {explore.Delivery, "connection %d: prefill sees its end"}, seenD: {explore.Delivery, "connection %d: decode sees its end"},
	timerG: {explore.Timer, "gateway: request %d, timer %d"}, timerP: {explore.Timer, "prefill %d: timer %d"},
	timerD: {explore.Timer, "decode %d: timer %d"}, leave: {explore.Environment, "client of request %d leaves"},
	refuse: {explore.Fault, "connection %d: wrong bytes"}, stepPBad: {explore.Fault, "prefill %d: step fails"},
	stepDBad: {explore.Fault, "decode %d: step fails"}, breakP: {explore.Fault, "connection %d: broken, prefill first"},
	breakD: {explore.Fault, "connection %d: broken, decode first"}, crashP: {explore.Fault, "PREFILL %d CRASHES"},
	crashD: {explore.Fault, "DECODE %d CRASHES"}, restartP: {explore.Environment, "prefill %d restarts"},
	restartD: {explore.Environment, "decode %d restarts"},
}

func (s *System) Init() World { return s.newWorld() }

func (s *System) Class(e Event) explore.Class {
	if s.scope.Back && (e.Kind == restartP || e.Kind == restartD) {
		return explore.Progress
	}
	return kindTable[e.Kind].class
}

// Done: every request has ended once, no leg is left, every core is idle.
func (s *System) Done(w *World) bool {
	for _, p := range w.prefills {
		if p.core != nil && !p.core.Idle() {
			return false
		}
	}
	for i := range w.requests {
		if !w.requests[i].ended {
			return false
		}
	}
	for _, d := range w.decodes {
		if d.core != nil && !d.core.Idle() {
			return false
		}
	}
	return len(w.legs) == 0 && w.gate.Running() == 0 && w.gate.Queue().Len == 0
}

func (s *System) Events(w *World, dst []Event) []Event {
	add := func(k Kind, a, b int) { dst = append(dst, Event{Kind: k, A: a, B: b}) }
	for i := range w.requests {
		switch r := &w.requests[i]; {
		case !r.arrived:
			add(arrive, i+1, 0)
		default:
			if r.placing != 0 {
				add(choose, i+1, 0)
			}
			if w.left.Leaves > 0 && !r.gone && !r.ended {
				add(leave, i+1, 0)
			}
		}
	}
	for _, l := range w.legs {
		e := Event{A: int(l.req), B: int(l.attempt), Side: l.side}
		if len(l.posts) > 0 {
			e.Kind = hear
			dst = append(dst, e)
		}
		if l.state == dialled {
			e.Kind = dispatch
			dst = append(dst, e)
		}
		if l.state == open && l.closed {
			e.Kind = hangUp
			dst = append(dst, e)
		}
	}
	for _, id := range w.suspects {
		if w.up(id) {
			add(healthy, int(id), 0)
		}
	}
	w.gate.Timers(func(t relay.Timer) bool {
		add(timerG, int(t.Req), int(t.Name))
		return true
	})
	dst = s.workerEvents(w, dst)
	return s.linkEvents(w, dst)
}

func (s *System) workerEvents(w *World, dst []Event) []Event {
	add := func(k Kind, a, b int, id room.ID) { dst = append(dst, Event{Kind: k, A: a, B: b, Room: id}) }
	for i, p := range w.prefills {
		if p.core == nil {
			add(restartP, i, 0, 0)
			continue
		}
		if len(p.step) > 0 {
			add(stepP, i, 0, 0)
			if w.left.Steps > 0 {
				add(stepPBad, i, 0, 0)
			}
		}
		for k := range p.writes {
			add(returns, i, k, 0)
		}
		p.core.Timers(func(_ time.Duration, t room.Timer) bool {
			if t.Kind != room.TombstoneTimer {
				add(timerP, i, int(t.Kind), t.Room)
			}
			return true
		})
		if w.left.Crashes > 0 {
			add(crashP, i, 0, 0)
		}
	}
	for i, d := range w.decodes {
		if d.core == nil {
			add(restartD, i, 0, 0)
			continue
		}
		if len(d.step) > 0 {
			add(stepD, i, 0, 0)
			if w.left.Steps > 0 {
				add(stepDBad, i, 0, 0)
			}
		}
		for _, id := range d.begin {
			add(begun, i, 0, id)
		}
		for _, peer := range d.dialing {
			add(dialled_, i, int(peer), 0)
		}
		d.core.Timers(func(_ time.Duration, t room.Timer) bool {
			if t.Kind != room.TombstoneTimer {
				add(timerD, i, int(t.Kind), t.Room)
			}
			return true
		})
		if w.left.Crashes > 0 {
			add(crashD, i, 0, 0)
		}
	}
	return dst
}

func (s *System) linkEvents(w *World, dst []Event) []Event {
	for _, k := range w.links {
		add := func(kind Kind) { dst = append(dst, Event{Kind: kind, A: int(k.conn)}) }
		if len(k.toP) > 0 {
			add(ctlP)
		}
		if len(k.toD) > 0 {
			add(ctlD)
		}
		if k.inside != nil {
			add(placed)
			if w.left.Refuses > 0 {
				add(refuse)
			}
		} else if len(k.wire) > 0 {
			add(header)
		}
		switch {
		case !k.dUp:
			add(seenP)
		case !k.pUp:
			add(seenD)
		case w.left.Breaks > 0:
			add(breakP)
			add(breakD)
		}
	}
	return dst
}

func (s *System) Name(w *World, e Event) string {
	name := kindTable[e.Kind].name
	if n := strings.Count(name, "%d"); n == 1 {
		name = fmt.Sprintf(name, e.A)
	} else {
		name = fmt.Sprintf(name, e.A, e.B)
	}
	if e.Kind == dispatch || e.Kind == hear || e.Kind == hangUp {
		l := w.leg(e)
		name += fmt.Sprintf(" %s %d", l.side, l.worker)
		if e.Kind == hear {
			p := l.posts[0]
			name += fmt.Sprintf(": %s %s", [...]string{relay.LegOpen: "accepted", relay.Tokens: "tokens", relay.LegEnd: "end", relay.LegClosed: "closed"}[p.kind], p.outcome)
		}
	}
	if e.Room != 0 {
		name += fmt.Sprintf(" of room %d", e.Room)
	}
	return name
}

func (s *System) Columns() []string { return []string{"requests", "prefill", "decode"} }

func (s *System) Cells(w *World, dst []string) []string {
	var gate, p, d []string
	for v := range w.gate.Rooms {
		gate = append(gate, fmt.Sprintf("%d:%s", v.Req, v.Phase))
	}
	for i, n := range w.prefills {
		if n.core == nil {
			p = append(p, fmt.Sprintf("%d down", i))
			continue
		}
		for v := range n.core.Rooms {
			p = append(p, fmt.Sprintf("%d/r%d:%s", i, v.Room, v.Phase))
		}
	}
	for i, n := range w.decodes {
		if n.core == nil {
			d = append(d, fmt.Sprintf("%d down", i))
			continue
		}
		for v := range n.core.Rooms {
			d = append(d, fmt.Sprintf("%d/r%d:%s", i, v.Room, v.Phase))
		}
	}
	return append(dst, strings.Join(gate, " "), strings.Join(p, " "), strings.Join(d, " "))
}

func (w *World) leg(e Event) *leg {
	i := slices.IndexFunc(w.legs, func(l *leg) bool { return int(l.req) == e.A && int(l.attempt) == e.B && l.side == e.Side })
	return w.legs[i]
}

func (w *World) link(conn int) *link {
	i := slices.IndexFunc(w.links, func(k *link) bool { return int(k.conn) == conn })
	return w.links[i]
}

var (
	_ explore.Path[World, Event] = (*System)(nil)
	_ explore.Drawer[World]      = (*System)(nil)
)
