package fleetsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/room"
	"baton/proof/explore"
)

// trace collects what a chart is drawn from.
type trace struct {
	req  int // the request that it is about; 0: all
	rows []row
}

type row struct {
	at    time.Duration
	who   string
	text  string
	open  bool      // a message that has not arrived, and nothing happened since
	about []*node   // what happened to nodes, not to the request
	cells [3]string // at the gateway, at prefill, at decode, after the event
}

// rowsMax is what a person reads of a chart, its head and its end included.
const rowsMax = 20

func (n *node) String() string { return fmt.Sprintf("%s %d", roleNames[n.role], n.at) }

// say notes an event of a request at a node; request 0 is of no request.
func (w *World) say(req int, n *node, format string, args ...any) {
	if w.watched(req) {
		w.settleRow()
		w.trace.rows = append(w.trace.rows, row{at: w.now, who: n.String(), text: fmt.Sprintf(format, args...)})
	}
}

func (w *World) watched(req int) bool {
	return w.trace != nil && (w.trace.req == 0 || req == w.trace.req)
}

// sayNode notes what happens to a node.
func (w *World) sayNode(n *node, format string, args ...any) {
	if w.trace != nil {
		w.settleRow()
		w.trace.rows = append(w.trace.rows, row{at: w.now, text: fmt.Sprintf(format, args...), about: []*node{n}})
	}
}

// computed notes how far a prompt is; what came before in the same breath says nothing more.
func (w *World) computed(req int, n *node, to int) {
	const text = "computed the prompt up to token "
	if !w.watched(req) {
		return
	}
	if i := len(w.trace.rows) - 1; i >= 0 && w.trace.rows[i].who == n.String() && strings.HasPrefix(w.trace.rows[i].text, text) {
		w.trace.rows = w.trace.rows[:i]
	}
	w.say(req, n, text+"%d", to)
}

// words is what a message says, for charts; "" for what says nothing that the phases do not.
func (w *World) words(m *message) (req int, text string) {
	switch m.kind {
	case legRequest:
		return m.leg.req, fmt.Sprintf("try %d", m.leg.attempt)
	case legClose:
		return m.leg.req, "hangs up"
	case legEnd:
		return m.leg.req, m.outcome.String()
	case legReset:
		return m.leg.req, "the connection is gone"
	case linkPrealloc:
		return w.of(m.prealloc.Room), "Prealloc"
	case linkCancel:
		return w.of(m.cancel.Room), "Cancel " + m.cancel.Cause.String()
	case linkSettled:
		return w.of(m.settled.Room), "Settled " + m.settled.Outcome.String()
	case linkEnded:
		for _, g := range w.rooms {
			if g.prefill == m.link.p && g.decode == m.link.d && w.watched(g.req) {
				return g.req, "their connection is gone"
			}
		}
	}
	return 0, ""
}

// sent, arrived and lost note messages: one line for one that arrives before anything else.
func (w *World) sent(m *message) {
	if req, text := w.shown(m); text != "" {
		w.say(req, w.nodes[m.from], "▶ %s: %s", w.nodes[m.to], text)
		w.trace.rows[len(w.trace.rows)-1].open = true
	}
}

func (w *World) arrived(m *message) {
	req, text := w.shown(m)
	if text == "" {
		return
	}
	from, to := w.nodes[m.from], w.nodes[m.to]
	for i := len(w.trace.rows) - 1; i >= 0 && w.trace.rows[i].open; i-- {
		if r := &w.trace.rows[i]; r.who == from.String() && r.text == fmt.Sprintf("▶ %s: %s", to, text) {
			w.settleRow()
			r.open = false
			return
		}
	}
	w.say(req, to, "◀ %s: %s", from, text)
}

func (w *World) lost(m *message) {
	if req, text := w.shown(m); text != "" {
		w.say(req, w.nodes[m.from], "to %s: lost", w.nodes[m.to])
	}
}

func (w *World) shown(m *message) (req int, text string) {
	if w.trace == nil {
		return 0, ""
	}
	if req, text = w.words(m); !w.watched(req) {
		return req, ""
	}
	return req, text
}

func (w *World) sayFault(c *choice) {
	a, b := w.nodes[c.a].String(), w.nodes[c.b].String()
	how := c.lasts.Round(time.Millisecond).String()
	if c.lasts == never {
		how = "ever"
	}
	w.sayNode(w.nodes[c.a], "%s", [choiceKinds]string{
		crash: strings.ToUpper(a) + " CRASHES", freeze: a + " FREEZES for " + how, slow: fmt.Sprintf("%s is %d times as slow for %s", a, c.size, how),
		deaden: "nothing gets from " + a + " to " + b + " for " + how, lag: a + " to " + b + " is slow for " + how,
		cut: "the link of " + a + " with " + b + " ends", corrupt: "chunks from " + b + " to " + a + " are damaged for " + how,
		stepFail: "the next step of " + a + " fails", drain: a + " drains", writeFail: "the next write of " + a + " fails",
		mute: b + " does not see any more what " + a + " hangs up", replace: a + " drains, and is replaced",
		garble: "what " + a + " says to its peers is lost, repeated or overtaken for " + how,
	}[c.kind])
	if c.kind == deaden || c.kind == lag || c.kind == cut || c.kind == corrupt || c.kind == mute {
		r := &w.trace.rows[len(w.trace.rows)-1]
		r.about = append(r.about, w.nodes[c.b])
	}
}

// settleRow fills the last row with the phases that its event led to.
func (w *World) settleRow() {
	t := w.trace
	if len(t.rows) == 0 || t.req == 0 {
		return
	}
	cells := &t.rows[len(t.rows)-1].cells
	*cells = [3]string{}
	for _, n := range w.nodes {
		var list []string
		switch {
		case !n.up:
		case n.g != nil:
			for v := range n.g.core.Rooms {
				if int(v.Req) == t.req {
					list = append(list, v.Phase.String())
				}
			}
		default:
			n.rooms()(func(v room.View) bool {
				if w.of(v.Room) == t.req {
					list = append(list, fmt.Sprintf("%d:%s", n.at, v.Phase))
				}
				return true
			})
		}
		if len(list) > 0 {
			x := min(n.role, decodeRole) // a unified worker decodes
			cells[x] = strings.TrimSpace(cells[x] + " " + strings.Join(list, " "))
		}
	}
}

// chart draws a plan's run.
func chart(p *plan, req int, verdict string) string {
	w := newWorld(p)
	w.trace = &trace{req: req}
	w.run()
	w.settleRow()
	rows, waits := w.trace.rows, w.waits(req)
	if most := rowsMax - len(waits) - 2; len(rows) > most {
		rows = slices.DeleteFunc(rows, func(r row) bool { return len(r.about) > 0 && !w.concerns(req, r.about) })
		if cut := len(rows) - most + 1; cut > 1 {
			head := most / 3
			between := row{at: rows[head].at, text: fmt.Sprintf("… %d more events", cut), cells: rows[head+cut-1].cells}
			rows = slices.Concat(rows[:head], []row{between}, rows[head+cut:])
		}
	}
	var table [][]string
	table = append(table, []string{"", "time", "event", "gateway", "prefill", "decode"})
	var before [3]string
	for i, r := range rows {
		line := []string{fmt.Sprint(i + 1), fmt.Sprintf("%.4fs", r.at.Seconds()), r.text}
		if r.who != "" {
			line[2] = r.who + ": " + r.text
			if strings.HasPrefix(r.text, "▶") || strings.HasPrefix(r.text, "◀") {
				line[2] = r.who + " " + r.text
			}
		}
		for c, cell := range r.cells {
			if cell == before[c] {
				cell = ""
			} else if cell == "" {
				cell = "–"
			}
			line = append(line, cell)
		}
		before = r.cells
		table = append(table, line)
	}
	var b strings.Builder
	explore.Align(&b, table, 2)
	for _, x := range waits {
		fmt.Fprintf(&b, "       %s\n", x)
	}
	fmt.Fprintf(&b, "       ⇒ %s\n", verdict)
	return b.String()
}

// waits says where a request still is, and what it waits for there.
func (w *World) waits(req int) (list []string) {
	if req == 0 {
		return nil
	}
	for _, n := range w.nodes {
		switch {
		case !n.up:
		case n.g != nil:
			for v := range n.g.core.Rooms {
				if int(v.Req) == req {
					list = append(list, fmt.Sprintf("%s: %s, waits for %s", n, v.Phase, v.WaitsFor))
				}
			}
		default:
			for v := range n.rooms() {
				if g := w.rooms[v.Room]; g != nil && g.req == req {
					list = append(list, fmt.Sprintf("%s: %s, waits for %s%s", n, v.Phase, v.WaitsFor, whose(n, g)))
				}
			}
		}
	}
	return list
}

// whose names the other worker of a room.
func whose(n *node, g *ghost) string {
	switch {
	case g.prefill == nil:
		return ""
	case n == g.prefill:
		return fmt.Sprintf(" (its peer is %s)", g.decode)
	}
	return fmt.Sprintf(" (its peer is %s)", g.prefill)
}

// concerns says that one of these nodes has to do with a request.
func (w *World) concerns(req int, about []*node) bool {
	if req == 0 {
		return true
	}
	r := &w.reqs[req]
	return slices.ContainsFunc(about, func(n *node) bool {
		return n == r.gw || slices.ContainsFunc(r.legs, func(l *leg) bool { return l.worker == n })
	})
}
