package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/serve/recorder"
)

// Post holds that what processes heard of each other is what they said: no message comes from
// nowhere, is changed on its way or heard more often than said. Cores cannot see that, each is
// told a story of its own; drivers and links stand between them. (Whatever was said may be lost,
// with its link.)
type Post struct {
	said  map[letter]int           // how often, less how often it was heard
	left  map[letter]time.Duration // the most that was left of the deadline of a Prealloc
	lives map[[3]string]string     // files by core, role and boot
	heard []arrival
	files map[string]int         // by core
	open  map[string][]time.Time // the last step of files without an end, by core
}

// clockSlack is how far the clocks of two processes may be apart: of one machine, whose clock is
// set while it runs, or of machines that keep theirs together. It counts for killed processes alone.
const clockSlack = 100 * time.Millisecond

// letter is a message as both ends know it.
type letter struct {
	what    string
	from    string // core that says it
	room    room.ID
	lease   room.Lease
	conn    room.Conn
	n       [3]int // what else is counted in it
	last    bool
	outcome room.Outcome
}

// arrival is a letter that was heard.
type arrival struct {
	letter
	file string
	line int
	at   time.Time
	left time.Duration // of a Prealloc's deadline
}

// Delivery is the verdict of a Post.
type Delivery struct {
	Heard   int      // messages that were heard and said
	Excused int      // heard behind the end of a file in which it may have been said, as that process was killed
	Unsaid  []string // heard, and nobody said it
}

// NewPost returns a Post that has seen no file.
func NewPost() *Post {
	return &Post{said: map[letter]int{}, left: map[letter]time.Duration{}, lives: map[[3]string]string{}, files: map[string]int{}, open: map[string][]time.Time{}}
}

// Watch replays a file and keeps what was said and heard in it. It is Check, and refuses a second
// file of one life: what is in both was said and heard once.
func (p *Post) Watch(file string) (*Report, error) {
	rooms := map[[2]uint64]room.ID{} // of a gateway's attempts
	from := len(p.heard)
	last := time.Duration(0)
	r, err := play(file, func(m *moment) {
		if p.lives[m.of.life()] != "" {
			return
		}
		last = m.now
		p.hear(m, file, rooms)
		for _, x := range m.effects {
			p.say(x)
		}
	})
	if err == nil {
		err = r.twice(p.lives[r.life()])
	}
	if err != nil {
		return r, err
	}
	if r.Head.Boot != "" {
		p.lives[r.life()] = file
	}
	for i := range p.heard[from:] { // until now at holds the core's clock
		a := &p.heard[from+i]
		a.at = r.Head.Started.Add(a.at.Sub(time.Time{}))
	}
	p.files[r.Head.Core]++
	if r.End != recorder.EndClosed {
		p.open[r.Head.Core] = append(p.open[r.Head.Core], r.Head.Started.Add(last))
	}
	return r, nil
}

// life is whose file it is.
func (r *Report) life() [3]string { return lifeOf(r.Head) }

func lifeOf(h recorder.Header) [3]string { return [3]string{h.Core, h.Role, h.Boot} }

// twice refuses a file when another of the same life was read, "" for none: it is a copy.
func (r *Report) twice(other string) error {
	if other == "" {
		return nil
	}
	return fmt.Errorf("replay: %s: the same life as %s, %s %s: name one of them", recorder.Printable(r.File), recorder.Printable(other), r.Head.Role, r.Head.Boot)
}

// say keeps what an effect says.
func (p *Post) say(x any) {
	switch x := x.(type) {
	case *decode.Effect:
		switch x.Kind {
		case decode.SendPrealloc:
			l := preallocLetter(&x.Prealloc)
			p.said[l]++
			p.left[l] = max(p.left[l], x.Prealloc.Left) // the wire knows nothing below 0
		case decode.SendCancel:
			p.said[cancelLetter(&x.Cancel)]++
		case decode.End, decode.Refuse:
			p.said[endLetter(recorder.CoreDecode, x.Room, x.Outcome)]++
		}
	case *prefill.Effect:
		switch x.Kind {
		case prefill.Settle:
			p.said[settledLetter(&x.Settled)]++
		case prefill.Write:
			p.said[chunkLetter(x.Room, x.Lease, x.Conn, x.Chunk, x.FirstBlock, int32(len(x.Blocks)), x.Last)]++
		case prefill.End, prefill.Refuse:
			p.said[endLetter(recorder.CorePrefill, x.Room, x.Outcome)]++
		}
	case *relay.Effect:
		if x.Kind == relay.Open {
			p.said[legLetter(x.Leg.String(), x.Room)]++
		}
	}
}

// hear keeps what an event brought.
func (p *Post) hear(m *moment, file string, rooms map[[2]uint64]room.ID) {
	heard := func(l letter) {
		p.heard = append(p.heard, arrival{letter: l, file: file, line: m.line, at: time.Time{}.Add(m.now)})
	}
	switch ev := m.event.(type) {
	case *prefill.Event:
		switch ev.Kind {
		case prefill.Request:
			heard(legLetter("prefill", ev.Room))
		case prefill.Prealloc:
			heard(preallocLetter(&ev.Prealloc))
			p.heard[len(p.heard)-1].left = ev.Prealloc.Left
		case prefill.Cancel:
			heard(cancelLetter(&ev.Cancel))
		}
	case *decode.Event:
		switch ev.Kind {
		case decode.Request:
			heard(legLetter("decode", ev.Room))
		case decode.Settled:
			heard(settledLetter(&ev.Settled))
		case decode.ChunkArrived:
			heard(chunkLetter(ev.Room, ev.Lease, ev.Conn, ev.Chunk, ev.FirstBlock, ev.N, ev.Last))
		}
	case *relay.Event:
		attempt := [2]uint64{ev.Req, uint64(ev.Attempt)}
		switch {
		case ev.Kind == relay.Pair && ev.OK:
			rooms[attempt] = ev.Room
		case ev.Kind == relay.LegEnd && ev.Said && !ofDriver(ev.Outcome):
			heard(endLetter(ev.Leg.String(), rooms[attempt], ev.Outcome))
		}
	}
}

// ofDriver says that a worker may end a leg so without its core: a limit of the driver or of what
// stands before it was reached.
func ofDriver(o room.Outcome) bool { return o.Cause == room.Overload || o.Cause == room.ClientError }

func preallocLetter(x *room.Prealloc) letter { // the time that is left goes down on the way
	return letter{what: "Prealloc", from: recorder.CoreDecode, room: x.Room, lease: x.Lease, conn: x.Conn, n: [3]int{x.Tokens, x.From}}
}

func cancelLetter(x *room.Cancel) letter {
	return letter{what: "Cancel", from: recorder.CoreDecode, room: x.Room, lease: x.Lease, outcome: room.Outcome{Cause: x.Cause}}
}

func settledLetter(x *room.Settled) letter {
	return letter{what: "Settled", from: recorder.CorePrefill, room: x.Room, lease: x.Lease, outcome: x.Outcome, n: [3]int{x.Chunks}}
}

func chunkLetter(id room.ID, l room.Lease, c room.Conn, chunk, first, n int32, last bool) letter {
	return letter{what: "a chunk", from: recorder.CorePrefill, room: id, lease: l, conn: c, n: [3]int{int(chunk), int(first), int(n)}, last: last}
}

func legLetter(leg string, id room.ID) letter {
	return letter{what: "the " + leg + " leg", from: recorder.CoreRelay, room: id}
}

func endLetter(leg string, id room.ID, o room.Outcome) letter {
	return letter{what: "the end of a leg", from: leg, room: id, outcome: o}
}

// Judge compares, when all files of a fleet were watched.
func (p *Post) Judge() Delivery {
	var d Delivery
	for i := range p.heard {
		a := &p.heard[i]
		switch n := p.said[a.letter]; {
		case n > 0:
			p.said[a.letter] = n - 1
			if a.left > p.left[a.letter] {
				d.Unsaid = append(d.Unsaid, a.extended(p.left[a.letter]))
				continue
			}
			d.Heard++
		case p.files[a.from] == 0 || slices.ContainsFunc(p.open[a.from], func(end time.Time) bool { return !a.at.Before(end.Add(-clockSlack)) }):
			d.Excused++
		default:
			d.Unsaid = append(d.Unsaid, a.String())
		}
	}
	return d
}

func (a *arrival) String() string { return a.words() + ": nobody said it (core of " + a.from + ")" }

// extended says of a Prealloc that more was left of its deadline when it came than when it was sent.
func (a *arrival) extended(said time.Duration) string {
	return fmt.Sprintf("%s: nobody said that %v are left of its deadline, %v were", a.words(), a.left, said)
}

func (a *arrival) words() string {
	s := fmt.Sprintf("%s, line %d: %s of room %s", recorder.Printable(a.file), a.line, a.what, a.room)
	if a.lease.Seq != 0 {
		s += fmt.Sprintf(", lease %s, %v", a.lease, a.n)
	}
	if a.outcome != (room.Outcome{}) {
		s += ", " + a.outcome.String()
	}
	return s
}

// String says what was delivered.
func (d Delivery) String() string {
	s := fmt.Sprintf("%d messages between them were heard as they were said", d.Heard)
	if d.Excused > 0 {
		s += fmt.Sprintf(", %d more came from where no trace is, or behind its end", d.Excused)
	}
	if len(d.Unsaid) > 0 {
		s += fmt.Sprintf("; %d WERE SAID BY NOBODY:\n  %s", len(d.Unsaid), strings.Join(d.Unsaid[:min(len(d.Unsaid), unsaidMax)], "\n  "))
	}
	return s
}

// unsaidMax is how many are shown.
const unsaidMax = 10
