package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"baton/core/room"
	"baton/proof/explore"
	"baton/serve/recorder"
)

// Film is what several files show of one room, or of all rooms of one request: a row for each
// step that had to do with it, in the order of the wall clocks of the processes.
type Film struct {
	room  room.ID // one of the two is set
	rid   string
	rooms []room.ID // that belong to it
	reels []*reel
}

// reel is what one file shows.
type reel struct {
	head recorder.Header
	file string
	reqs []uint64 // requests of the gateway that belong to it
	part bool     // it has a part in it
	knew int      // rooms of the film when the file was read
	rows []row
}

// row is one step, or several alike in a row.
type row struct {
	reel  int
	at    time.Time
	last  time.Time // of several
	text  string
	alike string // equal for steps that need not all be shown
	more  int    // steps that it stands for, but one
	phase string // after it, in its reel
}

// rowsMax is what is kept of one file: a room has a few dozen steps that are not alike.
const rowsMax = 2000

// shownMax is what a person reads of a chart: the beginning and the end of a long one.
const shownMax = 120

// roomsMax bounds the rooms of a request: relay tries a few times for each of its choices.
const roomsMax = 1024

// OfRoom films one room, and the request that it was for.
func OfRoom(id room.ID) *Film { return &Film{room: id, rooms: []room.ID{id}} }

// OfRequest films all rooms of a request, which has that id on every part.
func OfRequest(rid string) *Film { return &Film{rid: rid} }

// Watch replays a file and notes which rooms and requests belong to the film. It is Check, and
// refuses a second file of one life.
func (f *Film) Watch(file string) (*Report, error) {
	l := &reel{file: file}
	r, err := play(file, func(m *moment) { f.link(l, m) })
	for _, other := range f.reels {
		if err == nil && r.Head.Boot != "" && r.life() == lifeOf(other.head) {
			err = r.twice(other.file)
		}
	}
	if err == nil {
		l.head, l.knew = r.Head, len(f.rooms)
		f.reels = append(f.reels, l)
	}
	return r, err
}

// link notes what belongs to it.
func (f *Film) link(l *reel, m *moment) {
	var says mentions
	says.of(m.event)
	named := f.rid != "" && (m.rid == f.rid || slices.ContainsFunc(says.reqs, func(q uint64) bool { return slices.Contains(l.reqs, q) }))
	if !named && !slices.ContainsFunc(says.rooms, func(id room.ID) bool { return slices.Contains(f.rooms, id) }) {
		return
	}
	l.part = true
	if len(l.reqs) < roomsMax {
		l.reqs = unique(append(l.reqs, says.reqs...))
	}
	if !named {
		return // a step of a batch names the rooms of others, too
	}
	for _, id := range says.rooms {
		if len(f.rooms) < roomsMax && !slices.Contains(f.rooms, id) {
			f.rooms = append(f.rooms, id)
		}
	}
}

// Draw replays the files that were watched again and draws what it is about.
func (f *Film) Draw() (string, error) {
	for i, l := range f.reels {
		keys := l.reqs
		if l.head.Core != recorder.CoreRelay {
			keys = nil
			for _, id := range f.rooms {
				keys = append(keys, uint64(id))
			}
		}
		if len(keys) == 0 || !l.part && l.knew == len(f.rooms) {
			continue
		}
		if err := f.shoot(i, keys, 1<<62); err != nil {
			return "", err
		}
	}
	return f.chart()
}

// shoot adds the rows of a file that are about the keys, up to a line.
func (f *Film) shoot(reel int, keys []uint64, until int) error {
	l := f.reels[reel]
	before := make([]string, len(keys))
	_, err := play(l.file, func(m *moment) {
		if m.line > until {
			return
		}
		named := keysOf(m.event)
		var byEffect [][]uint64
		for _, x := range m.effects {
			byEffect = append(byEffect, keysOf(x))
		}
		for i, key := range keys {
			event := slices.Contains(named, key)
			effect := slices.ContainsFunc(byEffect, func(k []uint64) bool { return slices.Contains(k, key) })
			if l.head.Core == recorder.CoreRelay && !event && !effect {
				continue // it cannot have changed, and looking it up takes time
			}
			phase := m.phase(key)
			if event || effect || phase != before[i] {
				l.add(row{reel: reel, at: l.head.Started.Add(m.now), phase: phase, text: sentence(m, key, event, byEffect), alike: kindsOf(m, key, byEffect) + phase})
			}
			before[i] = phase
		}
	})
	return err
}

// add takes a row, or counts it as one more of those before it.
func (l *reel) add(r row) {
	if n := len(l.rows); n > 0 && l.rows[n-1].alike == r.alike {
		l.rows[n-1].more++
		l.rows[n-1].last = r.at
		return
	}
	if len(l.rows) >= rowsMax { // keep the beginning and the newest
		l.rows = slices.Delete(l.rows, rowsMax/2, rowsMax/2+1)
	}
	l.rows = append(l.rows, r)
}

// sentence says what happened and what the core wanted done about the key.
func sentence(m *moment, key uint64, event bool, byEffect [][]uint64) string {
	s := about(m.event, key)
	var does []string
	for i, x := range m.effects {
		if slices.Contains(byEffect[i], key) || event && len(byEffect[i]) == 0 {
			does = append(does, about(x, key))
		}
	}
	if len(does) > 0 {
		s += " → " + strings.Join(does, ", ")
	}
	return s
}

func kindsOf(m *moment, key uint64, byEffect [][]uint64) string {
	s := kindOf(m.event)
	for i, x := range m.effects {
		if slices.Contains(byEffect[i], key) {
			s += " " + kindOf(x)
		}
	}
	return s
}

// ErrNotThere says that no file knows the room or the request.
var ErrNotThere = errors.New("replay: none of the files knows it")

// chart draws all rows.
func (f *Film) chart() (string, error) {
	var rows []row
	var columns []int // reels that have rows
	for i, l := range f.reels {
		if len(l.rows) > 0 {
			columns = append(columns, i)
			rows = append(rows, l.rows...)
		}
	}
	if len(rows) == 0 {
		return "", ErrNotThere
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
	slices.SortStableFunc(columns, func(a, b int) int { return f.reels[a].floor() - f.reels[b].floor() })
	head := []string{"", "time", "where", "what"}
	for _, i := range columns {
		head = append(head, f.reels[i].short())
	}
	table := [][]string{head}
	before := make([]string, len(f.reels))
	began := rows[0].at
	for i, r := range rows {
		line := []string{fmt.Sprint(i + 1), fmt.Sprintf("%.4fs", r.at.Sub(began).Seconds()), f.reels[r.reel].short(), cut(r.text)}
		if r.more > 0 {
			line[3] += fmt.Sprintf(" (and %d more until %.4fs)", r.more, r.last.Sub(began).Seconds())
		}
		for _, c := range columns {
			cell := ""
			if c == r.reel && r.phase != before[c] {
				if cell = r.phase; cell == "" {
					cell = "–"
				}
			}
			line = append(line, cell)
		}
		before[r.reel] = r.phase
		table = append(table, line)
	}
	if over := len(table) - shownMax; over > 0 {
		half := shownMax / 2
		between := [][]string{{"…", "", "", fmt.Sprintf("%d more rows", over)}}
		table = slices.Concat(table[:half], between, table[half+over:])
	}
	var b strings.Builder
	explore.Align(&b, table, 2)
	return fmt.Sprintf("row 1 is at %s\n%s", began.Format(time.RFC3339Nano), b.String()), nil
}

// short names a file's process in a chart.
func (l *reel) short() string {
	if l.head.Role == "gateway" {
		return l.head.Role
	}
	return fmt.Sprintf("%s %.4s", l.head.Name, l.head.Boot)
}

// floor puts gateways before prefill workers before decode workers.
func (l *reel) floor() int {
	return slices.Index([]string{recorder.CoreRelay, recorder.CorePrefill, recorder.CoreDecode}, l.head.Core)
}

// textMax is what of one step fits on a line beside the phases.
const textMax = 110

func cut(s string) string {
	if utf8.RuneCountInString(s) <= textMax {
		return s
	}
	return string([]rune(s)[:textMax-1]) + "…"
}
