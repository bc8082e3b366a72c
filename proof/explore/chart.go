package explore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// rowsMax is what a person reads of a chart that was not made short: two screens.
const rowsMax = 120

// numbers stands over those of the events: three wide, so that short charts stand one like another.
const numbers = "   "

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
	rows := [][]string{append([]string{numbers, "event"}, head...)}
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
	Align(&b, rows, 1)
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

// Align writes a table as a chart: columns as wide as their widest cell, counted in characters,
// because arrows are longer in bytes than they look. The first columns, as many as right says,
// hold numbers and end where their column does.
func Align(b *strings.Builder, table [][]string, right int) {
	var width []int
	for _, row := range table {
		for c, cell := range row {
			if c == len(width) {
				width = append(width, 0)
			}
			width[c] = max(width[c], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range table {
		line := " "
		for c, cell := range row {
			pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(cell))
			if c < right {
				line += " " + pad + cell
			} else {
				line += "  " + cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
