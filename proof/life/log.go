package life

import (
	"slices"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// Log collects the moves that one core's steps made. A nil Log collects nothing.
type Log struct {
	seen   map[move]map[string]bool // the events that made it
	before []at
	after  []at
}

// move is from one phase to another; "" is before the first and behind the last.
type move struct{ from, to string }

// at is where a room or request is.
type at struct {
	id    uint64
	phase string
}

// others stands for an event that was about another room: it gave back what this one waited for.
const others = "its turn"

// Prefill takes a step of a prefill core and sees what it moved.
func (l *Log) Prefill(c *prefill.Core, ev *prefill.Event, step func()) {
	if l == nil {
		step()
		return
	}
	l.before = rooms(l.before[:0], c.Rooms, c.Ended)
	step()
	l.after = rooms(l.after[:0], c.Rooms, c.Ended)
	id, _ := ev.Subject()
	l.moved(func(r uint64) string {
		switch {
		case ev.Kind == prefill.TimerFired:
			return timer(ev.Timer, r)
		case ev.Kind == prefill.LinkEnd:
			return ev.Kind.String()
		}
		own := slices.ContainsFunc(ev.Results, func(x prefill.Result) bool { return uint64(x.Room) == r })
		return named(ev.Kind.String(), own || uint64(id) == r)
	})
}

// Decode takes a step of a decode core and sees what it moved.
func (l *Log) Decode(c *decode.Core, ev *decode.Event, step func()) {
	if l == nil {
		step()
		return
	}
	l.before = rooms(l.before[:0], c.Rooms, c.Ended)
	step()
	l.after = rooms(l.after[:0], c.Rooms, c.Ended)
	id, _ := ev.Subject()
	l.moved(func(r uint64) string {
		switch ev.Kind {
		case decode.TimerFired:
			return timer(ev.Timer, r)
		case decode.LinkUp, decode.LinkFailed, decode.LinkEnd:
			return ev.Kind.String()
		}
		own := slices.ContainsFunc(ev.Results, func(x decode.Result) bool { return uint64(x.Room) == r })
		return named(ev.Kind.String(), own || uint64(id) == r)
	})
}

// Relay takes a step of a gateway's core and sees what it moved.
func (l *Log) Relay(c *relay.Core, ev relay.Event, step func()) {
	if l == nil {
		step()
		return
	}
	l.before = requests(l.before[:0], c)
	step()
	l.after = requests(l.after[:0], c)
	l.moved(func(r uint64) string {
		if ev.Kind == relay.TimerFired {
			return named(ev.Timer.Name.String()+" timer", ev.Timer.Req == r)
		}
		return named(relayEvents[ev.Kind], ev.Req == r)
	})
}

// relayEvents are the words for what reaches a gateway's core.
var relayEvents = map[relay.EventKind]string{relay.Arrive: "arrive", relay.Pair: "pair", relay.LegOpen: "leg_open", relay.Tokens: "tokens",
	relay.LegEnd: "leg_end", relay.LegClosed: "leg_closed", relay.ClientGone: "client_gone", relay.Drain: "drain", relay.Waits: "waits", relay.Roster: "roster"}

func named(event string, own bool) string {
	if own {
		return event
	}
	return others
}

// timer names one of a room, or the one of all tombstones.
func timer(t room.Timer, r uint64) string {
	return named(t.Kind.String()+" timer", t.Room == 0 || uint64(t.Room) == r)
}

func rooms(all []at, live, ended func(func(room.View) bool)) []at {
	for v := range live {
		all = append(all, at{uint64(v.Room), v.Phase})
	}
	for v := range ended {
		all = append(all, at{uint64(v.Room), v.Phase})
	}
	return all
}

func requests(all []at, c *relay.Core) []at {
	for v := range c.Rooms {
		all = append(all, at{v.Req, v.Phase.String()})
	}
	return all
}

// phaseOf is where an id is; live rooms come before tombstones.
func phaseOf(all []at, id uint64) string {
	for _, a := range all {
		if a.id == id {
			return a.phase
		}
	}
	return ""
}

func (l *Log) moved(event func(id uint64) string) {
	note := func(id uint64) {
		m := move{phaseOf(l.before, id), phaseOf(l.after, id)}
		if m.from == m.to {
			return
		}
		if l.seen == nil {
			l.seen = map[move]map[string]bool{}
		}
		if l.seen[m] == nil {
			l.seen[m] = map[string]bool{}
		}
		l.seen[m][event(id)] = true
	}
	for _, a := range l.before {
		note(a.id)
	}
	for _, a := range l.after {
		note(a.id)
	}
}
