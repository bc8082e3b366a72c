package fleetsim

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"baton/core/room"
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
	cells [3]string // at the gateway, at prefill, at decode, after the event
}

// rowsMax is what a person reads of a chart: two screens, the beginning and the end.
const rowsMax = 80

// say notes an event of a request at a node; request 0 is of no request.
func (w *World) say(req int, n *node, format string, args ...any) {
	if w.trace == nil || w.trace.req != 0 && req != w.trace.req {
		return
	}
	w.settleRow()
	w.trace.rows = append(w.trace.rows, row{at: w.now, who: fmt.Sprintf("%s %d", roleNames[n.role], n.at), text: fmt.Sprintf(format, args...)})
}

// sayNode notes what happens to a node.
func (w *World) sayNode(n *node, format string, args ...any) {
	if w.trace != nil {
		w.settleRow()
		w.trace.rows = append(w.trace.rows, row{at: w.now, text: fmt.Sprintf(format, args...)})
	}
}

func (w *World) sayFault(c *choice) {
	name := func(i int) string { return fmt.Sprintf("%s %d", roleNames[w.nodes[i].role], w.nodes[i].at) }
	a, b := name(c.a), name(c.b)
	how := c.lasts.Round(time.Millisecond).String()
	if c.lasts == never {
		how = "ever"
	}
	w.sayNode(w.nodes[c.a], "%s", [choiceKinds]string{
		crash: strings.ToUpper(a) + " CRASHES", freeze: a + " FREEZES for " + how, slow: fmt.Sprintf("%s is %d times as slow for %s", a, c.size, how),
		deaden: "nothing gets from " + a + " to " + b + " for " + how, lag: a + " to " + b + " is slow for " + how,
		cut: "the link of " + a + " with " + b + " ends", corrupt: "chunks from " + b + " to " + a + " are damaged for " + how,
		stepFail: "the next step of " + a + " fails", drain: a + " drains", writeFail: "the next write of " + a + " fails",
		mute: b + " does not see any more what " + a + " hangs up",
	}[c.kind])
}

// settleRow fills the last row with the phases that its event led to.
func (w *World) settleRow() {
	t := w.trace
	if len(t.rows) == 0 || t.req == 0 {
		return
	}
	cells := &t.rows[len(t.rows)-1].cells
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
			cells[n.role] = strings.TrimSpace(cells[n.role] + " " + strings.Join(list, " "))
		}
	}
}

// chart draws a plan's run.
func chart(p *plan, req int, verdict string) string {
	w := newWorld(p)
	w.trace = &trace{req: req}
	w.run()
	w.settleRow()
	rows := w.trace.rows
	var table [][]string
	table = append(table, []string{"", "time", "event", "gateway", "prefill", "decode"})
	var before [3]string
	for i, r := range rows {
		line := []string{fmt.Sprint(i + 1), fmt.Sprintf("%.4fs", r.at.Seconds()), r.text}
		if r.who != "" {
			line[2] = r.who + ": " + r.text
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
	if cut := len(table) - rowsMax; cut > 0 {
		half := rowsMax / 2
		between := [][]string{{"…", "", fmt.Sprintf("%d more events", cut)}}
		table = append(append(append([][]string{}, table[:half]...), between...), table[half+cut:]...)
	}
	var b strings.Builder
	align(&b, table)
	fmt.Fprintf(&b, "       ⇒ %s\n", verdict)
	return b.String()
}

// align pads columns by characters.
func align(b *strings.Builder, table [][]string) {
	var width []int
	for _, r := range table {
		for c, cell := range r {
			if c == len(width) {
				width = append(width, 0)
			}
			width[c] = max(width[c], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range table {
		line := " "
		for c, cell := range r {
			pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(cell))
			if c < 2 {
				line += " " + pad + cell
			} else {
				line += "  " + cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
