package explore

// judge looks for a trap (X2) in the graph of the events that are fair for q, reports the one
// with the shortest way to it, and counts deadlines (X3).
//
// The components come in reverse topological order, so that one pass finds both.
func (x *search[S, E]) judge(q Question) {
	states, ends := components(x.parent.n, x.successors(q))
	g := &fairness{
		chain: make([]int32, x.parent.n),
		group: make([]int32, x.parent.n),
		open:  make([]int32, len(x.events)),
		taken: make([]bool, len(x.events)),
	}
	begin := int32(0)
	for n, end := range ends {
		for _, v := range states[begin:end] {
			g.group[v] = int32(n + 1)
		}
		begin = end
	}
	trap, traps := int32(-1), 0
	begin = 0
	for n, end := range ends {
		set := states[begin:end]
		begin = end
		if !x.traps(q, g, int32(n+1), set) {
			continue
		}
		traps++
		for _, v := range set {
			if trap < 0 || v < trap {
				trap = v
			}
		}
	}
	if g.endless {
		g.deadlines = -1
	}
	switch q {
	case TERM:
		x.report.DeadlinesTerm = int(g.deadlines)
	case ALONE:
		x.report.DeadlinesAlone = int(g.deadlines)
	}
	x.report.Deadends += traps
	if trap >= 0 {
		x.fail(q.String(), neverEnds, x.trace(trap))
	}
}

// neverEnds is what is wrong with a trap.
const neverEnds = "never ends"

// fairness is what judge learns as it walks through the components.
type fairness struct {
	group     []int32 // per state: its component, from 1; 0 if it is done
	chain     []int32 // per state: deadlines that may still run out from here
	deadlines int32   // the greatest chain
	endless   bool    // a deadline lies on a cycle
	open      []int32 // per event, scratch: in how many states of the component it is possible
	taken     []bool  // per event, scratch: whether it leads back into the component
}

// successors returns the fair edges of a state for q: none if it is done.
func (x *search[S, E]) successors(q Question) func(v int32, i uint32) (to int32, ok bool) {
	return func(v int32, i uint32) (int32, bool) {
		k := x.from.at(int(v)) + i
		if k >= x.from.at(int(v)+1) || x.done.at(int(v))&q.goal() != 0 {
			return 0, false
		}
		to := x.to.at(int(k))
		if !q.fair(x.class[x.by.at(int(k))]) || x.done.at(int(to))&q.goal() != 0 {
			return -1, true
		}
		return to, true
	}
}

// traps says whether a fair run can stay in the component for ever, and adds its deadlines
// to the chain of what follows it.
func (x *search[S, E]) traps(q Question, g *fairness, own int32, set []int32) bool {
	if x.done.at(int(set[0]))&q.goal() != 0 {
		return false
	}
	var used []uint16
	inner, leaving := 0, 0
	longest := int32(0)
	for _, v := range set {
		for k := x.from.at(int(v)); k < x.from.at(int(v)+1); k++ {
			by, to := x.by.at(int(k)), x.to.at(int(k))
			if !q.fair(x.class[by]) {
				continue
			}
			expiry := int32(0)
			if x.class[by] == Timer {
				expiry = 1
			}
			if g.open[by] == 0 {
				used = append(used, by)
			}
			g.open[by]++
			if g.group[to] == own && x.done.at(int(to))&q.goal() == 0 {
				g.taken[by] = true
				g.endless = g.endless || expiry > 0
				inner++
			} else {
				longest = max(longest, g.chain[to]+expiry)
				leaving++
			}
		}
	}
	for _, v := range set {
		g.chain[v] = longest
	}
	g.deadlines = max(g.deadlines, longest)
	fair := inner > 0 || leaving == 0
	for _, by := range used {
		// An event that is possible all the time and always leads out is taken some time.
		if int(g.open[by]) == len(set) && !g.taken[by] {
			fair = false
		}
		g.open[by], g.taken[by] = 0, false
	}
	return fair
}

// components is Tarjan's algorithm without recursion. next(v, i) is the i-th edge of v: to is
// -1 for one that does not count, ok is false behind the last. It returns the states component
// by component, and where each component ends.
func components(states int, next func(v int32, i uint32) (to int32, ok bool)) (flat, ends []int32) {
	type call struct {
		v int32
		i uint32
	}
	var (
		order   = make([]int32, states) // when a state was met, from 1
		low     = make([]int32, states)
		waiting = make([]bool, states)
		stack   []int32
		calls   []call
		met     int32
	)
	flat = make([]int32, 0, states)
	enter := func(v int32) {
		met++
		order[v], low[v], waiting[v] = met, met, true
		stack = append(stack, v)
		calls = append(calls, call{v: v})
	}
	for root := range int32(states) {
		if order[root] != 0 {
			continue
		}
		enter(root)
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			if to, ok := next(c.v, c.i); ok {
				c.i++
				switch {
				case to < 0:
				case order[to] == 0:
					enter(to)
				case waiting[to]:
					low[c.v] = min(low[c.v], order[to])
				}
				continue
			}
			v := c.v
			calls = calls[:len(calls)-1]
			if n := len(calls); n > 0 {
				low[calls[n-1].v] = min(low[calls[n-1].v], low[v])
			}
			if low[v] != order[v] {
				continue
			}
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				waiting[top] = false
				flat = append(flat, top)
				if top == v {
					break
				}
			}
			ends = append(ends, int32(len(flat)))
		}
	}
	return flat, ends
}
