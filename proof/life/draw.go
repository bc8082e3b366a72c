package life

import (
	"fmt"
	"slices"
	"strings"
)

// Draw prints what the log saw, in two parts. The picture, in Mermaid, has the ways of a life that
// goes on; the table has what leads out of it: the moves to the phases in aside. The order of
// phases, which is that of the type, is the order in which a life passes them.
//
// One step may move a room over several phases at once. A move that only shortens others that are
// in the picture is left out of it.
func (l *Log) Draw(phases, aside []string) (picture, table string, err error) {
	place := func(p string) int { return slices.Index(phases, p) }
	for _, p := range append(aside[:len(aside):len(aside)], phases...) {
		if place(p) < 0 {
			return "", "", fmt.Errorf("life: there is no phase %q", p)
		}
		if in, out := l.touches(p); !in || !out {
			return "", "", fmt.Errorf("life: phase %q was seen entered: %v, left: %v; a world has to lead there and on", p, in, out)
		}
	}
	var ways, out []move
	for m := range l.seen {
		switch {
		case m.from != "" && place(m.from) < 0 || m.to != "" && place(m.to) < 0:
			return "", "", fmt.Errorf("life: a move from %q to %q: one of them is no phase", m.from, m.to)
		case slices.Contains(aside, m.to) && (!slices.Contains(aside, m.from) || l.comesBack(m.from, aside)):
			out = append(out, m)
		default:
			ways = append(ways, m)
		}
	}
	slices.SortFunc(ways, func(a, b move) int {
		return 100*(place(a.from)-place(b.from)) + place(a.to) - place(b.to)
	})
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    direction LR\n")
	name := func(p string) string {
		if p == "" {
			return "[*]"
		}
		return p
	}
	for _, m := range ways {
		if !shortens(m, ways, place) {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", name(m.from), name(m.to), l.events(m))
		}
	}
	b.WriteString("```\n")
	return b.String(), l.table(phases, aside, out), nil
}

// shortens says whether others lead to the same place one by one, each forward.
func shortens(m move, ways []move, place func(string) int) bool {
	if m.to == "" || m.from != "" && place(m.from) >= place(m.to) {
		return false
	}
	var leads func(from string) bool
	leads = func(from string) bool {
		for _, w := range ways {
			if w == m || w.from != from || w.to == "" || place(w.to) <= place(from) || place(w.to) > place(m.to) {
				continue
			}
			if w.to == m.to || leads(w.to) {
				return true
			}
		}
		return false
	}
	return leads(m.from)
}

// table has a row for each phase that something leads out of the picture from.
func (l *Log) table(phases, aside []string, out []move) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| from | to `%s`, by |\n|---|%s\n", strings.Join(aside, "`, by | to `"), strings.Repeat("---|", len(aside)))
	for _, from := range append([]string{""}, phases...) {
		row, some := "", false
		for _, to := range aside {
			m := move{from, to}
			text := "–"
			if slices.Contains(out, m) {
				text, some = l.events(m), true
			}
			row += " " + text + " |"
		}
		if from == "" {
			from = "not here yet"
		}
		if some {
			fmt.Fprintf(&b, "| %s |%s\n", from, row)
		}
	}
	return b.String()
}

// comesBack says whether a life can go on from a phase in aside.
func (l *Log) comesBack(p string, aside []string) bool {
	for m := range l.seen {
		if m.from == p && m.to != "" && !slices.Contains(aside, m.to) {
			return true
		}
	}
	return false
}

// touches says whether something came into a phase, and out of it.
func (l *Log) touches(p string) (in, out bool) {
	for m := range l.seen {
		in, out = in || m.to == p, out || m.from == p
	}
	return in, out
}

// events names those that made a move, those of others last.
func (l *Log) events(m move) string {
	var all []string
	for e := range l.seen[m] {
		if e != others {
			all = append(all, e)
		}
	}
	slices.Sort(all)
	if l.seen[m][others] {
		all = append(all, others)
	}
	return strings.Join(all, ", ")
}
