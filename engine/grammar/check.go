package grammar

import (
	"fmt"
	"slices"
)

// needs returns for each node how many more levels of depth the shortest way from it to the end
// of its rule takes, if only the bytes of has can be written; unreachable if there is no way. No
// state of a grammar goes where the need is more than is left, so a text can always be finished (G1).
//
// Nodes are taken up in the order of their needs, so the first way that is found is the shortest,
// and each link is looked at once.
func (n *net) needs(has *[256]bool) []int32 {
	need := make([]int32, len(n.nodes))
	for i := range need {
		need[i] = unreachable
	}
	from := n.callers(has)
	var levels [depthMost + 1][]int32
	need[end], levels[0] = 0, []int32{end}
	for at := 0; at < len(levels); at++ {
		for k := 0; k < len(levels[at]); k++ {
			for _, i := range from.of(levels[at][k]) {
				if need[i] != unreachable {
					continue
				}
				if v := n.needOf(&n.nodes[i], need, int32(at)); v <= depthMost {
					need[i] = v
					levels[v] = append(levels[v], i)
				}
			}
		}
	}
	return need
}

// needOf returns the need of x, one of whose links leads to a node of the need at, and none to one
// of less.
func (n *net) needOf(x *node, need []int32, at int32) int32 {
	switch x.kind {
	case nodeCall:
		start := need[n.startOf(x.rule)]
		if x.deep {
			start++
		}
		return max(start, need[x.to])
	case nodeRepeat:
		if x.min > 0 {
			return max(need[n.startOf(x.rule)], need[x.to])
		}
		return need[x.to]
	}
	return at // of bytes and splits the best way counts
}

func anyOf(has *[256]bool, lo, hi byte) bool {
	for b := int(lo); b <= int(hi); b++ {
		if has[b] {
			return true
		}
	}
	return false
}

// reverse says which nodes depend on a node.
type reverse struct {
	first []int32
	list  []int32
}

func (r *reverse) of(i int32) []int32 { return r.list[r.first[i]:r.first[i+1]] }

// callers returns which nodes lead to a node: by bytes of has, if that is not nil, and without a byte.
func (n *net) callers(has *[256]bool) *reverse {
	r := &reverse{first: make([]int32, len(n.nodes)+1)}
	n.eachLink(has, func(_, to int32) { r.first[to+1]++ })
	for i := range n.nodes {
		r.first[i+1] += r.first[i]
	}
	r.list = make([]int32, r.first[len(n.nodes)])
	at := slices.Clone(r.first)
	n.eachLink(has, func(from, to int32) {
		r.list[at[to]] = from
		at[to]++
	})
	return r
}

func (n *net) eachLink(has *[256]bool, do func(from, to int32)) {
	for i := range n.nodes {
		x := &n.nodes[i]
		switch x.kind {
		case nodeBytes:
			if has == nil {
				continue
			}
			for _, e := range n.edgesOf(x) {
				if anyOf(has, e.lo, e.hi) {
					do(int32(i), e.to)
				}
			}
		case nodeSplit:
			for _, t := range n.targets(x) {
				do(int32(i), t)
			}
		case nodeCall, nodeRepeat:
			do(int32(i), x.to)
			do(int32(i), n.startOf(x.rule))
		}
	}
}

// check refuses what the states could not walk through in bounded time: a rule that calls itself
// before it takes a byte, and a repetition of what may be empty.
func (n *net) check() error {
	if n.err != nil {
		return n.err
	}
	empty := n.empties()
	for i := range n.nodes {
		if x := &n.nodes[i]; x.kind == nodeRepeat && empty[n.startOf(x.rule)] {
			return fmt.Errorf("%s is repeated and may be empty: make it match at least one byte", n.rules[x.rule].name())
		}
	}
	t := tarjan{net: n, empty: empty, index: make([]int32, len(n.nodes)), low: make([]int32, len(n.nodes)), done: make([]bool, len(n.nodes))}
	for i := range n.nodes {
		if t.index[i] == 0 {
			t.visit(int32(i))
		}
	}
	if t.loop >= 0 && t.looped {
		return fmt.Errorf("%s refers to itself with nothing in between: it has no shortest form", n.rules[t.loop].name())
	}
	for i := range n.rules {
		n.rules[i].of = nil
	}
	return nil
}

// empties says of each node whether the end of its rule can be reached without a byte.
func (n *net) empties() []bool {
	empty := make([]bool, len(n.nodes))
	from := n.callers(nil)
	queue := []int32{end}
	empty[end] = true
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, i := range from.of(at) {
			x := &n.nodes[i]
			is := false
			switch x.kind {
			case nodeSplit:
				is = true
			case nodeCall:
				is = empty[n.startOf(x.rule)] && empty[x.to]
			case nodeRepeat:
				is = (x.min == 0 || empty[n.startOf(x.rule)]) && empty[x.to]
			}
			if is && !empty[i] {
				empty[i] = true
				queue = append(queue, i)
			}
		}
	}
	return empty
}

// tarjan finds the circles among the steps that take no byte, and whether a call is on one. It
// keeps its own stack, since chains are as long as a Spec is.
type tarjan struct {
	*net
	empty  []bool
	index  []int32 // order of the visit from 1; 0 not yet
	low    []int32
	done   []bool
	stack  []int32
	open   []visited
	count  int32
	loop   int32
	looped bool
}

// visited is a node under way and how many of its steps were taken.
type visited struct{ node, taken int32 }

func (t *tarjan) visit(from int32) {
	t.enter(from)
	for len(t.open) > 0 {
		v := &t.open[len(t.open)-1]
		i := v.node
		if to, _, ok := t.step(i, v.taken); ok {
			v.taken++
			if t.index[to] == 0 {
				t.enter(to)
			} else if !t.done[to] {
				t.low[i] = min(t.low[i], t.index[to])
			}
			continue
		}
		t.open = t.open[:len(t.open)-1]
		if len(t.open) > 0 {
			in := t.open[len(t.open)-1].node
			t.low[in] = min(t.low[in], t.low[i])
		}
		if t.low[i] == t.index[i] {
			t.close(i)
		}
	}
}

func (t *tarjan) enter(i int32) {
	t.count++
	t.index[i], t.low[i] = t.count, t.count
	t.stack, t.open = append(t.stack, i), append(t.open, visited{i, 0})
}

// close ends the circle that was entered at i.
func (t *tarjan) close(i int32) {
	from := len(t.stack) - 1
	for t.stack[from] != i {
		from--
	}
	circle := t.stack[from:]
	t.stack = t.stack[:from]
	for _, c := range circle {
		t.low[c] = t.index[i]
	}
	for _, c := range circle {
		for k := int32(0); ; k++ {
			to, rule, ok := t.step(c, k)
			if !ok {
				break
			}
			if rule >= 0 && !t.done[to] && t.low[to] == t.index[i] {
				t.loop, t.looped = rule, true
			}
		}
	}
	for _, c := range circle {
		t.done[c] = true
	}
}

// step returns the k-th node that a state gets to from i without a byte, and the rule if the step is
// a call, otherwise -1.
func (t *tarjan) step(i, k int32) (to, rule int32, ok bool) {
	x := &t.nodes[i]
	switch x.kind {
	case nodeSplit:
		if k < x.n {
			return t.eps[x.first+k], -1, true
		}
	case nodeCall, nodeRepeat:
		start := t.startOf(x.rule)
		switch {
		case k == 0:
			return start, x.rule, true
		case k == 1 && (t.empty[start] || x.kind == nodeRepeat && x.min == 0):
			return x.to, -1, true
		}
	}
	return 0, 0, false
}
