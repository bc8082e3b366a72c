package gate

import (
	"fmt"
	"slices"

	"baton/proof/explore"
)

// naive is a second explorer, which shares nothing with proof/explore but the question. States
// are kept in a Go map by their whole keys. Traps are found backwards, from where a fair run may
// rest or go on, until nothing falls out any more; the deadlines by walking every edge until no
// bound grows. It is slow, keeps everything, and is short enough to be read.
type naive[S any, E comparable] struct {
	sys    explore.System[S, E]
	number map[string]int
	states []S
	depth  []int
	edges  [][]edge[E] // per state
	report explore.Report
}

type edge[E comparable] struct {
	e  E
	to int
}

// agree explores sys twice and says where the two explorers differ. It compares nothing if there
// are more states than that, or if keys were found wanting, which is no part of this.
func agree[S any, E comparable](sys explore.System[S, E], o explore.Options, statesMax int) (compared bool, err error) {
	o.StatesMax = statesMax
	main := explore.Run(sys, o)
	if main.Capped || main.Broken == "KEY" {
		return false, nil
	}
	n := &naive[S, E]{sys: sys, number: map[string]int{}}
	n.run(o.Ask)
	for _, row := range []struct {
		what       string
		main, here any
	}{
		{"states", main.States, n.report.States},
		{"transitions", main.Transitions, n.report.Transitions},
		{"depth", main.Depth, n.report.Depth},
		{"states that are done", main.Done, n.report.Done},
		{"what is broken", main.Broken, n.report.Broken},
		{"the reason", main.Broken + main.Reason, n.report.Broken + n.report.Reason},
		{"length of a shortest trace", len(main.Trace), len(n.report.Trace)},
		{"traps", main.Deadends, n.report.Deadends},
		{"deadlines of TERM", main.DeadlinesTerm, n.report.DeadlinesTerm},
		{"deadlines of ALONE", main.DeadlinesAlone, n.report.DeadlinesAlone},
	} {
		if row.main != row.here {
			return true, fmt.Errorf("gate: two explorers differ in %s: %v and %v", row.what, row.main, row.here)
		}
	}
	return true, nil
}

func (n *naive[S, E]) run(ask explore.Question) {
	n.add(n.sys.Init(), 0)
	for at := 0; at < len(n.states); at++ {
		n.report.Depth = max(n.report.Depth, n.depth[at])
		if n.sys.Done(&n.states[at]) {
			n.report.Done++
		}
		n.edges = append(n.edges, nil)
		for _, e := range n.sys.Events(&n.states[at], nil) {
			if c := n.sys.Class(e); ask == explore.PROMPT && (c == explore.Timer || c == explore.Retry) {
				continue
			}
			next := n.sys.Clone(&n.states[at])
			n.report.Transitions++
			if reason := try(n.sys, &next, e); reason != "" {
				n.breaks("SAFETY", reason, n.depth[at]+1)
				n.report.States = len(n.states)
				return
			}
			n.edges[at] = append(n.edges[at], edge[E]{e, n.add(next, n.depth[at]+1)})
		}
	}
	n.report.States = len(n.states)
	for _, q := range []explore.Question{explore.TERM, explore.ALONE, explore.PROMPT} {
		if ask&q != 0 && n.report.Broken == "" {
			n.judge(q)
		}
	}
}

func (n *naive[S, E]) add(s S, depth int) int {
	key := string(n.sys.Key(&s, nil))
	at, ok := n.number[key]
	if !ok {
		at = len(n.states)
		n.number[key] = at
		n.states = append(n.states, s)
		n.depth = append(n.depth, depth)
	}
	return at
}

// try applies e and returns what is wrong, also if that is said by a panic.
func try[S any, E comparable](sys explore.System[S, E], s *S, e E) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			reason = fmt.Sprintf("panic: %v", p)
		}
	}()
	if err := sys.Apply(s, e); err != nil {
		return err.Error()
	}
	return ""
}

func (n *naive[S, E]) breaks(what, reason string, length int) {
	n.report.Broken, n.report.Reason, n.report.Trace = what, reason, make([]string, length)
}

// fair says which events a fair run may not put off for ever.
func fair(q explore.Question, c explore.Class) bool {
	switch c {
	case explore.Progress:
		return true
	case explore.Delivery:
		return q != explore.ALONE
	case explore.Timer, explore.Retry:
		return q != explore.PROMPT
	}
	return false
}

// judge keeps the open states in which a fair run can stay for ever: from each of them, every
// event can be met once more, either taken or impossible, without leaving them.
func (n *naive[S, E]) judge(q explore.Question) {
	stay := make([]bool, len(n.states))
	open := make([]bool, len(n.states))
	back := make([][]int, len(n.states)) // fair edges between open states, from their ends
	out := make([][]edge[E], len(n.states))
	events := map[E]bool{}
	for at := range n.states {
		open[at] = !n.over(q, at)
		stay[at] = open[at]
		for _, x := range n.edges[at] {
			if open[at] && fair(q, n.sys.Class(x.e)) {
				out[at] = append(out[at], x)
				back[x.to] = append(back[x.to], at)
				events[x.e] = true
			}
		}
	}
	n.deadlines(q, open, out)
	for changed := true; changed; {
		changed = false
		for e := range events {
			if !slices.Contains(stay, true) {
				return
			}
			meets := n.meets(e, stay, out, back)
			for at := range stay {
				if stay[at] && !meets[at] {
					stay[at], changed = false, true
				}
			}
		}
	}
	n.traps(q, stay, out)
}

func (n *naive[S, E]) over(q explore.Question, at int) bool {
	if i, ok := n.sys.(explore.Islander[S]); ok && q == explore.ALONE {
		return i.DoneAlone(&n.states[at])
	}
	return n.sys.Done(&n.states[at])
}

// meets marks the states from which a run can stay and, after at least one event or by standing
// still where nothing is possible, meet e: take it, or stand where it is not possible.
func (n *naive[S, E]) meets(e E, stay []bool, out [][]edge[E], back [][]int) []bool {
	good := make([]bool, len(stay)) // in which e is met at once
	for at := range stay {
		if !stay[at] {
			continue
		}
		possible, taken, goesOn := false, false, len(out[at]) == 0
		for _, x := range out[at] {
			possible = possible || x.e == e
			taken = taken || x.e == e && stay[x.to]
			goesOn = goesOn || stay[x.to]
		}
		good[at] = taken || !possible && goesOn
	}
	reach := append([]bool(nil), good...)
	var todo []int
	for at := range good {
		if good[at] {
			todo = append(todo, at)
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[at] {
			if stay[from] && !reach[from] {
				reach[from] = true
				todo = append(todo, from)
			}
		}
	}
	return reach
}

// traps counts the sets of states that reach each other among those in which a run can stay
// and that satisfy the definition, and keeps the way to the nearest.
func (n *naive[S, E]) traps(q explore.Question, stay []bool, out [][]edge[E]) {
	seen := make([]bool, len(stay))
	nearest := -1
	for at := range stay {
		if !stay[at] || seen[at] {
			continue
		}
		set := n.together(at, stay, out)
		for v := range set {
			seen[v] = true
		}
		if !n.trap(set, out) {
			continue
		}
		n.report.Deadends++
		for v := range set {
			if nearest < 0 || n.depth[v] < nearest {
				nearest = n.depth[v]
			}
		}
	}
	if nearest >= 0 {
		n.breaks(q.String(), "never ends", nearest)
	}
}

// together is everything that at reaches and that reaches at.
func (n *naive[S, E]) together(at int, stay []bool, out [][]edge[E]) map[int]bool {
	reach := func(from int) map[int]bool {
		in, todo := map[int]bool{from: true}, []int{from}
		for len(todo) > 0 {
			v := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, x := range out[v] {
				if stay[x.to] && !in[x.to] {
					in[x.to] = true
					todo = append(todo, x.to)
				}
			}
		}
		return in
	}
	set := map[int]bool{at: true}
	for v := range reach(at) {
		if v != at && reach(v)[at] {
			set[v] = true
		}
	}
	return set
}

// trap tries the definition: what is possible in all states of the set is taken inside.
func (n *naive[S, E]) trap(set map[int]bool, out [][]edge[E]) bool {
	open, taken := map[E]int{}, map[E]bool{}
	inner, leaving := 0, 0
	for v := range set {
		for _, x := range out[v] {
			open[x.e]++
			if set[x.to] {
				taken[x.e] = true
				inner++
			} else {
				leaving++
			}
		}
	}
	if inner == 0 && leaving > 0 {
		return false
	}
	for e, k := range open {
		if k == len(set) && !taken[e] {
			return false
		}
	}
	return true
}

// endless is a number of deadlines that no scope comes near to: a bound that grows beyond it
// grows for ever.
const endless = 100

// deadlines walks every fair edge until no bound grows.
func (n *naive[S, E]) deadlines(q explore.Question, open []bool, out [][]edge[E]) {
	bound := make([]int, len(out))
	most := 0
	for changed := true; changed && most < endless; {
		changed = false
		for at := len(out) - 1; at >= 0; at-- {
			for _, x := range out[at] {
				k := bound[x.to]
				if !open[x.to] {
					k = 0
				}
				if n.sys.Class(x.e) == explore.Timer {
					k++
				}
				if k > bound[at] {
					bound[at], changed = k, true
					most = max(most, k)
				}
			}
		}
	}
	if most >= endless {
		most = -1
	}
	switch q {
	case explore.TERM:
		n.report.DeadlinesTerm = most
	case explore.ALONE:
		n.report.DeadlinesAlone = most
	}
}
