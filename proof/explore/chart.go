package explore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// rowsMax is what a person reads of a chart that was not made short: two screens.
const rowsMax = 120

// draw replays a trace and writes one line per event: its name, and in each column what
// changed there. It returns the names too.
func draw[S any, E comparable](sys Path[S, E], trace []E, verdict string) (names []string, chart string) {
	drawer, _ := sys.(Drawer[S])
	last := replay(sys, trace)
	focus, _ := sys.(Focus[S, E])
	var head, before []string
	if drawer != nil {
		head = drawer.Columns()
	}
	rows := [][]string{append([]string{"", "event"}, head...)}
	hidden := 0
	s := sys.Init()
	if drawer != nil {
		before = drawer.Cells(&s, nil)
	}
	for i, e := range trace {
		name := sys.Name(&s, e)
		names = append(names, name)
		shown := focus == nil || focus.Concerns(&s, e, &last)
		attempt(sys, &s, e)
		row := []string{fmt.Sprint(i + 1), name}
		var now []string
		if drawer != nil {
			now = drawer.Cells(&s, nil)
		}
		for c := range now {
			if now[c] == before[c] {
				row = append(row, "")
			} else {
				row = append(row, now[c])
			}
		}
		before = now
		if shown {
			rows = append(rows, row)
		} else {
			hidden++
		}
	}
	if cut := len(rows) - rowsMax; cut > 0 {
		half := rowsMax / 2
		between := []string{"…", fmt.Sprintf("%d more events", cut)}
		rows = slices.Concat(rows[:half], [][]string{between}, rows[half+cut:])
	}
	var b strings.Builder
	align(&b, rows)
	if hidden > 0 {
		fmt.Fprintf(&b, "       (%d events without a part in it are left out)\n", hidden)
	}
	if finder, ok := sys.(Finder[S]); ok && strings.HasSuffix(verdict, neverEnds) {
		if stuck := finder.Stuck(&last); stuck != "" {
			verdict += ": " + stuck
		}
	}
	fmt.Fprintf(&b, "       ⇒ %s\n", verdict)
	return names, b.String()
}

func replay[S any, E comparable](sys Path[S, E], trace []E) S {
	s := sys.Init()
	for _, e := range trace {
		attempt(sys, &s, e) // the last one may be the violation
	}
	return s
}

// align pads columns by characters, because arrows are longer in bytes than they look.
func align(b *strings.Builder, rows [][]string) {
	var width []int
	for _, row := range rows {
		for c, cell := range row {
			if c == len(width) {
				width = append(width, 0)
			}
			width[c] = max(width[c], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("  %*s ", max(width[0], 3), row[0])
		for c, cell := range row[1:] {
			line += " " + cell + strings.Repeat(" ", width[c+1]-utf8.RuneCountInString(cell)+1)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
