package explore

import (
	"fmt"
	"slices"
	"time"
)

// search is one exploration. States are numbered in the order in which they are found, which
// is breadth first. None is kept whole but those on the way to the one at hand: see recall.
type search[S any, E comparable] struct {
	sys     System[S, E]
	o       Options
	seen    *index
	parent  pages[int32]  // per state: where it was found from; -1 for the first
	via     pages[uint16] // per state: the event that led to it
	done    pages[byte]   // per state: bit 0 Done, bit 1 DoneAlone
	events  []E           // every event ever possible, by number
	class   []Class       // per event
	number  map[E]uint16
	from    pages[uint32] // per state: the first of its fair edges in to and by; one more at the end
	to      pages[int32]  // per fair edge: the state it leads to
	by      pages[uint16] // per fair edge: its event
	work    S             // the state that an event is being tried on
	path    []stand[S]    // the way to the state at hand, one for each depth
	missing []int32       // scratch of recall
	sights  []int
	audit   *audit
	report  Report
	copier  Copier[S]
	island  Islander[S]
	witness Witness[S]
}

// stand is a state that is kept whole.
type stand[S any] struct {
	id int32
	s  S
}

// eventsMax is how many different events a system may have: their numbers are kept in 16 bits.
const eventsMax = 1 << 16

const (
	isDone byte = 1 << iota
	isDoneAlone
)

// Run explores sys. It panics if PROMPT is asked together with another question, or a
// demanded witness has no such name: these are mistakes of the scope.
func Run[S any, E comparable](sys System[S, E], o Options) Report {
	if o.Ask&PROMPT != 0 && o.Ask != PROMPT {
		panic("explore: PROMPT needs a graph of its own, ask it alone")
	}
	if o.StatesMax == 0 {
		o.StatesMax = StatesMaxDefault
	}
	x := &search[S, E]{sys: sys, o: o, seen: newIndex(), number: map[E]uint16{}, audit: newAudit(o.Audit)}
	x.copier, _ = sys.(Copier[S])
	x.island, _ = sys.(Islander[S])
	x.witness, _ = sys.(Witness[S])
	if x.witness != nil {
		x.sights = make([]int, len(x.witness.Witnesses()))
	}
	start := time.Now()
	finished := x.explore()
	x.report.States = x.parent.n
	x.report.Exploring = time.Since(start)
	x.sum()
	if finished {
		start = time.Now()
		x.doubt()
		for _, q := range []Question{TERM, ALONE, PROMPT} {
			if o.Ask&q != 0 && x.report.Broken == "" {
				x.judge(q)
			}
		}
		x.report.Judging = time.Since(start)
	}
	return x.report
}

// explore visits all states, breadth first. It returns false if it met a violation or gave up.
func (x *search[S, E]) explore() bool {
	x.path = []stand[S]{{s: x.sys.Init()}}
	key := x.sys.Key(&x.path[0].s, nil)
	x.add(-1, 0, key)
	var possible []E
	for at, depth, end := int32(0), 0, int32(1); at < end; at++ {
		s := x.recall(at, depth)
		x.done.add(x.over(s))
		x.from.add(uint32(x.to.n))
		possible = x.sys.Events(s, possible[:0])
		for _, e := range possible {
			n := x.intern(e)
			if x.o.Ask == PROMPT && (x.class[n] == Timer || x.class[n] == Retry) {
				continue
			}
			x.copy(&x.work, s)
			x.report.Transitions++
			if err := attempt(x.sys, &x.work, e); err != nil {
				x.fail("SAFETY", err.Error(), append(x.trace(at), e))
				return false
			}
			x.look(&x.work)
			key = x.sys.Key(&x.work, key[:0])
			id, old := x.add(at, n, key)
			if old {
				x.audit.offer(twin{at, n, id})
			}
			x.edge(at, id, n)
		}
		if x.parent.n > x.o.StatesMax {
			x.report.Capped = true
			return false
		}
		if at+1 == end && x.parent.n > int(end) { // those of one depth are through
			end = int32(x.parent.n)
			depth++
			x.report.Depth = depth
		}
	}
	x.from.add(uint32(x.to.n))
	return true
}

// recall makes a state again, by its events from the last state on the way to it that is still
// there. States of one depth that follow each other share most of that way, because they are
// numbered in the order of the states before them: to go through all of one depth takes a few
// events per state, and memory for one state per depth, where whole states of two depths would
// not fit.
func (x *search[S, E]) recall(id int32, depth int) *S {
	for ; depth >= len(x.path) || x.path[depth].id != id; depth-- {
		x.missing = append(x.missing, id)
		id = x.parent.at(int(id))
	}
	for n := len(x.missing); n > 0; n = len(x.missing) {
		id, x.missing = x.missing[n-1], x.missing[:n-1]
		if depth++; depth == len(x.path) {
			x.path = append(x.path, stand[S]{})
		}
		x.copy(&x.path[depth].s, &x.path[depth-1].s)
		x.path[depth].id = id
		if err := x.sys.Apply(&x.path[depth].s, x.events[x.via.at(int(id))]); err != nil {
			panic(fmt.Sprintf("explore: an event that went well now says %q: Apply must do the same each time", err))
		}
	}
	return &x.path[depth].s
}

// attempt applies e; a panic of the system is a violation like any other.
func attempt[S any, E comparable](sys Path[S, E], s *S, e E) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return sys.Apply(s, e)
}

// copy makes dst equal to src.
func (x *search[S, E]) copy(dst, src *S) {
	if x.copier == nil {
		*dst = x.sys.Clone(src)
		return
	}
	x.copier.CopyInto(dst, src)
}

func (x *search[S, E]) add(from int32, by uint16, key []byte) (id int32, old bool) {
	id, old = x.seen.find(key)
	if !old {
		x.parent.add(from)
		x.via.add(by)
	}
	return id, old
}

// edge remembers a transition that some question counts as fair. Done states need none:
// a run that reaches one has kept its promise.
func (x *search[S, E]) edge(from, to int32, by uint16) {
	for _, q := range []Question{TERM, ALONE, PROMPT} {
		if x.o.Ask&q != 0 && q.fair(x.class[by]) && x.done.at(int(from))&q.goal() == 0 {
			x.to.add(to)
			x.by.add(by)
			return
		}
	}
}

func (q Question) goal() byte {
	if q == ALONE {
		return isDoneAlone
	}
	return isDone
}

func (x *search[S, E]) over(s *S) byte {
	var d byte
	if x.sys.Done(s) {
		d = isDone
		x.report.Done++
	}
	if x.island != nil && x.island.DoneAlone(s) || x.island == nil && d != 0 {
		d |= isDoneAlone
	}
	return d
}

func (x *search[S, E]) intern(e E) uint16 {
	n, ok := x.number[e]
	if !ok {
		if len(x.events) == eventsMax {
			panic("explore: too many different events: raise eventsMax")
		}
		n = uint16(len(x.events))
		x.number[e] = n
		x.events = append(x.events, e)
		x.class = append(x.class, x.sys.Class(e))
	}
	return n
}

func (x *search[S, E]) look(s *S) {
	if x.witness == nil {
		return
	}
	shows := x.witness.Shows(s)
	for i := range x.sights {
		x.sights[i] += int(shows >> i & 1)
	}
}

// sum reports the witnesses.
func (x *search[S, E]) sum() {
	var names []string
	if x.witness != nil {
		names = x.witness.Witnesses()
	}
	for i, name := range names {
		x.report.Seen = append(x.report.Seen, Sight{name, x.sights[i]})
	}
	for _, must := range x.o.Must {
		i := slices.Index(names, must)
		if i < 0 {
			panic(fmt.Sprintf("explore: the system has no witness %q, only %q", must, names))
		}
		if x.sights[i] == 0 {
			x.report.Missing = append(x.report.Missing, must)
		}
	}
}

// trace lists the events of a shortest way to state i.
func (x *search[S, E]) trace(i int32) []E {
	var t []E
	for ; i > 0; i = x.parent.at(int(i)) {
		t = append(t, x.events[x.via.at(int(i))])
	}
	slices.Reverse(t)
	return t
}

func (x *search[S, E]) fail(broken, reason string, trace []E) {
	x.report.Broken, x.report.Reason = broken, reason
	x.report.Trace, x.report.Chart = draw(x.sys, trace, broken+": "+reason)
}
