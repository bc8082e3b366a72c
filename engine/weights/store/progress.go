package store

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	barEvery  = 100 * time.Millisecond // redraws on a terminal: smooth, and cheap for it
	lineEvery = 5 * time.Second        // lines elsewhere: a log stays readable
	barCells  = 30
)

// Meter reports how far a transfer, or a load, is: a bar on a terminal, a line now and then
// elsewhere. A nil Meter reports nothing. One goroutine at a time.
type Meter struct {
	w     io.Writer
	bar   bool // a terminal: one line, drawn again and again
	what  string
	total int64 // bytes in all, 0 if not known
	first int64 // bytes that were there before: they do not count for the rate
	done  int64
	began time.Time
	last  time.Time
}

// NewMeter starts a meter of total bytes (0: not known), of which first were there before. It
// writes to w; with nil there is none.
func NewMeter(w io.Writer, what string, first, total int64) *Meter {
	if w == nil {
		return nil
	}
	f, isFile := w.(*os.File)
	now := time.Now()
	return &Meter{w: w, bar: isFile && term.IsTerminal(int(f.Fd())), what: what, total: total, first: first, done: first, began: now, last: now}
}

// Add counts n bytes more.
func (m *Meter) Add(n int) {
	if m == nil {
		return
	}
	m.done += int64(n)
	every := lineEvery
	if m.bar {
		every = barEvery
	}
	if now := time.Now(); now.Sub(m.last) >= every && (m.total <= 0 || m.done < m.total) { // End says that it is all
		m.last = now
		m.print(now)
	}
}

// Set says how many bytes there are by now, and how many there will be: both may have grown, or
// shrunk when a part began anew.
func (m *Meter) Set(done, total int64) {
	if m == nil {
		return
	}
	m.total, m.first = total, min(m.first, done)
	m.Add(int(done - m.done))
}

// End prints the last state and leaves the line.
func (m *Meter) End() {
	if m == nil {
		return
	}
	m.print(time.Now())
	if m.bar {
		fmt.Fprintln(m.w)
	}
}

func (m *Meter) print(now time.Time) {
	s := m.text(now.Sub(m.began))
	if m.bar {
		fmt.Fprintf(m.w, "\r%s\x1b[K", s)
		return
	}
	fmt.Fprintln(m.w, s)
}

func (m *Meter) text(took time.Duration) string {
	rate := float64(m.done-m.first) / max(took.Seconds(), 1e-3)
	if m.total <= 0 {
		return fmt.Sprintf("%s %s, %s/s", m.what, size(m.done), size(int64(rate)))
	}
	s := fmt.Sprintf("%3d %% %s of %s, %s/s", m.done*100/m.total, size(m.done), size(m.total), size(int64(rate)))
	if left := m.total - m.done; left > 0 && rate > 0 {
		s += fmt.Sprintf(", %s left", time.Duration(float64(left)/rate*1e9).Round(time.Second))
	}
	if !m.bar {
		return m.what + " " + s
	}
	full := int(min(m.done, m.total) * barCells / m.total)
	return m.what + " [" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "] " + s
}

// size writes a number of bytes in decimal units, as disks and networks count.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
