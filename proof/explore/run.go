package explore

import (
	"fmt"
	"slices"
	"time"
)

// search is one exploration. States are numbered in the order in which they are found, which
// is breadth first; only those of the frontier are kept whole.
type search[S any, E comparable] struct {
	sys     System[S, E]
	o       Options
	seen    *index
	parent  []int32  // per state: where it was found from; -1 for the first
	via     []uint32 // per state: the event that led to it
	done    []byte   // per state: bit 0 Done, bit 1 DoneAlone
	events  []E      // every event ever possible, by number
	class   []Class  // per event
	number  map[E]uint32
	from    []int    // per state: the first of its fair edges in to and by; one more at the end
	to      []int32  // per fair edge: the state it leads to
	by      []uint32 // per fair edge: its event
	work    S        // the state that an event is being tried on
	spare   []S      // states no longer needed, whose memory a Copier may reuse
	sights  []int
	audit   *audit
	report  Report
	copier  Copier[S]
	island  Islander[S]
	witness Witness[S]
}

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
	x := &search[S, E]{sys: sys, o: o, seen: newIndex(), number: map[E]uint32{}, audit: newAudit(o.Audit)}
	x.copier, _ = sys.(Copier[S])
	x.island, _ = sys.(Islander[S])
	x.witness, _ = sys.(Witness[S])
	if x.witness != nil {
		x.sights = make([]int, len(x.witness.Witnesses()))
	}
	start := time.Now()
	finished := x.explore()
	x.report.States = len(x.parent)
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
	first := x.sys.Init()
	key := x.sys.Key(&first, nil)
	x.add(-1, 0, key)
	frontier, next := []S{first}, []S(nil)
	var possible []E
	at := int32(0)
	for len(frontier) > 0 {
		for i := range frontier {
			s := &frontier[i]
			x.done = append(x.done, x.over(s))
			x.from = append(x.from, len(x.to))
			possible = x.sys.Events(s, possible[:0])
			for _, e := range possible {
				n := x.intern(e)
				if x.o.Ask == PROMPT && (x.class[n] == Timer || x.class[n] == Retry) {
					continue
				}
				x.copy(s)
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
				} else {
					next = append(next, x.work)
					x.renew()
				}
				x.edge(at, id, n)
			}
			at++
			if len(x.parent) > x.o.StatesMax {
				x.report.Capped = true
				return false
			}
		}
		if x.copier != nil {
			x.spare = append(x.spare, frontier...)
		}
		clear(frontier)
		frontier, next = next, frontier[:0]
		if len(frontier) > 0 {
			x.report.Depth++
		}
	}
	x.from = append(x.from, len(x.to))
	return true
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

// copy makes work equal to s.
func (x *search[S, E]) copy(s *S) {
	if x.copier == nil {
		x.work = x.sys.Clone(s)
		return
	}
	x.copier.CopyInto(&x.work, s)
}

// renew gives work memory of its own, now that what was in it stands in the frontier.
func (x *search[S, E]) renew() {
	var none S
	x.work = none
	if n := len(x.spare); n > 0 {
		x.work, x.spare[n-1] = x.spare[n-1], none
		x.spare = x.spare[:n-1]
	}
}

func (x *search[S, E]) add(from int32, by uint32, key []byte) (id int32, old bool) {
	id, old = x.seen.find(key)
	if !old {
		x.parent = append(x.parent, from)
		x.via = append(x.via, by)
	}
	return id, old
}

// edge remembers a transition that some question counts as fair. Done states need none:
// a run that reaches one has kept its promise.
func (x *search[S, E]) edge(from, to int32, by uint32) {
	for _, q := range []Question{TERM, ALONE, PROMPT} {
		if x.o.Ask&q != 0 && q.fair(x.class[by]) && x.done[from]&q.goal() == 0 {
			x.to = append(x.to, to)
			x.by = append(x.by, by)
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

func (x *search[S, E]) intern(e E) uint32 {
	n, ok := x.number[e]
	if !ok {
		n = uint32(len(x.events))
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
	for ; i > 0; i = x.parent[i] {
		t = append(t, x.events[x.via[i]])
	}
	slices.Reverse(t)
	return t
}

func (x *search[S, E]) fail(broken, reason string, trace []E) {
	x.report.Broken, x.report.Reason = broken, reason
	x.report.Trace, x.report.Chart = draw(x.sys, trace, broken+": "+reason)
}
