package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of an automaton.
const (
	// nodesMost bounds an automaton. A schema of 256 KiB of names and enums has about as many; at 28
	// bytes each they take 3.5 MiB.
	nodesMost = 1 << 17
	// edgesMost bounds its edges (12 bytes each).
	edgesMost = 1 << 19
	// depthMost is how many levels a document nests where its schema nests without end.
	// OpenAI allows schemas 10 deep, and parsers in use refuse documents beyond hundreds.
	depthMost = 64
	// unreachable stands for a need that no depth meets.
	unreachable = 1 << 20
)

// net is a recursive transition network over bytes: rules that call each other, each an automaton.
// It is built back to front: what makes a piece takes the node that comes after and returns the
// node that it begins with.
type net struct {
	nodes []node
	edges []edge
	eps   []int32
	rules []rule
	marks []string // control tokens that may stand for texts: see markByte
	chars int32    // the node at which characters of JSON strings begin, -1 none
	err   error    // the first bound that was passed; what is built after it counts for nothing
}

// rule begins at a node and ends at nodeEnd.
type rule struct {
	start int32
	at    string // which part of the Spec it stands for, for messages
}

type node struct {
	kind     nodeKind
	deep     bool  // a call that counts in the depth
	rule     int32 // call and repeat
	to       int32 // call and repeat
	min, max int32 // repeat; max -1: no bound
	first, n int32 // bytes: its edges; split: its targets
}

type nodeKind uint8

const (
	nodeEnd    nodeKind = iota // the rule ends: on where it was called from
	nodeBytes                  // one of its edges
	nodeSplit                  // any of its targets, without a byte
	nodeCall                   // the rule, then on at to
	nodeRepeat                 // the rule min to max times, then on at to
)

type edge struct {
	lo, hi byte
	to     int32
}

// end is the node at which every rule ends: which one it was is known from the stack.
const end int32 = 0

var errTooLarge = errors.New("it is too large")

// markByte is the first of the bytes that stand for control tokens. UTF-8 has none of them, so that
// in the automaton a control token is a character of its own that no text contains.
const markByte = 0xf8

// mark returns the byte that stands for the control token of this name.
func (n *net) mark(name string) byte {
	i := slices.Index(n.marks, name)
	if i < 0 {
		if i = len(n.marks); i == MarksMax {
			n.fail("more than %d parts with different names are special", MarksMax)
			return markByte
		}
		n.marks = append(n.marks, name)
	}
	return markByte + byte(i)
}

func newNet() *net { return &net{nodes: []node{{kind: nodeEnd}}, chars: -1} }

func (n *net) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

func (n *net) add(x node) int32 {
	if n.err != nil || len(n.nodes) >= nodesMost || len(n.edges) > edgesMost || len(n.eps) > edgesMost {
		n.fail("%w: its automaton needs more than %d nodes; write fewer or smaller alternatives, counts or classes", errTooLarge, nodesMost)
		return end
	}
	n.nodes = append(n.nodes, x)
	return int32(len(n.nodes) - 1)
}

// bytes returns a node with these edges.
func (n *net) bytes(edges ...edge) int32 {
	first := int32(len(n.edges))
	n.edges = append(n.edges, edges...)
	return n.add(node{kind: nodeBytes, first: first, n: int32(len(edges))})
}

// byte returns a node that takes one byte.
func (n *net) byte(b byte, to int32) int32 { return n.bytes(edge{b, b, to}) }

// split returns a node that goes on at any of these, the first of them first.
func (n *net) split(to ...int32) int32 {
	if len(to) == 1 {
		return to[0]
	}
	return n.fill(n.hole(), to...)
}

// hole returns a node that fill completes: for loops.
func (n *net) hole() int32 { return n.add(node{kind: nodeSplit}) }

func (n *net) fill(hole int32, to ...int32) int32 {
	if n.err == nil {
		n.nodes[hole].first, n.nodes[hole].n = int32(len(n.eps)), int32(len(to))
		n.eps = append(n.eps, to...)
	}
	return hole
}

// text returns a node that takes these bytes.
func (n *net) text(s string, to int32) int32 {
	for i := len(s) - 1; i >= 0; i-- {
		to = n.byte(s[i], to)
	}
	return to
}

// texts returns a node that takes one of these texts, which it sorts: a trie.
func (n *net) texts(list []string, to int32) int32 {
	list = slices.Clone(list)
	slices.Sort(list)
	return n.trie(slices.Compact(list), 0, to)
}

func (n *net) trie(list []string, at int, to int32) int32 {
	if len(list) == 1 {
		return n.text(list[0][at:], to)
	}
	var starts []int32
	if len(list) > 0 && len(list[0]) == at {
		starts, list = append(starts, to), list[1:]
	}
	var edges []edge
	for len(list) > 0 && n.err == nil {
		b, same := list[0][at], 1
		for same < len(list) && list[same][at] == b {
			same++
		}
		edges = append(edges, edge{b, b, n.trie(list[:same], at+1, to)})
		list = list[same:]
	}
	if len(edges) > 0 || len(starts) == 0 {
		starts = append(starts, n.bytes(edges...))
	}
	return n.split(starts...)
}

func (n *net) call(rule, to int32) int32 { return n.add(node{kind: nodeCall, rule: rule, to: to}) }

// nest is a call that is one level deeper in the document.
func (n *net) nest(rule, to int32) int32 {
	return n.add(node{kind: nodeCall, deep: true, rule: rule, to: to})
}

// repeat returns a node that takes rule min to max times; max -1 is no bound.
func (n *net) repeat(rule int32, min, max int, to int32) int32 {
	return n.add(node{kind: nodeRepeat, rule: rule, min: int32(min), max: int32(max), to: to})
}

// newRule returns a rule whose start is still to be set: for recursion.
func (n *net) newRule(at string) int32 {
	n.rules = append(n.rules, rule{start: -1, at: at})
	return int32(len(n.rules) - 1)
}

func (n *net) ruleOf(at string, start int32) int32 {
	r := n.newRule(at)
	n.rules[r].start = start
	return r
}

func (n *net) targets(x *node) []int32  { return n.eps[x.first : x.first+x.n] }
func (n *net) edgesOf(x *node) []edge   { return n.edges[x.first : x.first+x.n] }
func (n *net) startOf(rule int32) int32 { return n.rules[rule].start }

// needs returns for each node how many more levels of depth the shortest way from it to the end
// of its rule takes, if only the bytes of has can be written; unreachable if there is no way. No
// state of a grammar goes where the need is more than is left, so a text can always be finished.
func (n *net) needs(has *[256]bool) []int32 {
	need := make([]int32, len(n.nodes))
	for i := range need {
		need[i] = unreachable
	}
	from := n.callers()
	queue := []int32{end}
	need[end] = 0
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, i := range from.of(at) {
			if v := n.needOf(i, need, has); v < need[i] {
				need[i] = v
				queue = append(queue, i)
			}
		}
	}
	return need
}

func (n *net) needOf(i int32, need []int32, has *[256]bool) int32 {
	x := &n.nodes[i]
	v := int32(unreachable)
	switch x.kind {
	case nodeEnd:
		v = 0
	case nodeBytes:
		for _, e := range n.edgesOf(x) {
			if need[e.to] < v && anyOf(has, e.lo, e.hi) {
				v = need[e.to]
			}
		}
	case nodeSplit:
		for _, t := range n.targets(x) {
			v = min(v, need[t])
		}
	case nodeCall:
		v = max(need[n.startOf(x.rule)], need[x.to])
		if x.deep {
			v = max(need[n.startOf(x.rule)]+1, need[x.to])
		}
	case nodeRepeat:
		if v = need[x.to]; x.min > 0 {
			v = max(v, need[n.startOf(x.rule)])
		}
	}
	if v > depthMost {
		return unreachable
	}
	return v
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

func (n *net) callers() *reverse {
	r := &reverse{first: make([]int32, len(n.nodes)+1)}
	n.eachLink(func(_, to int32) { r.first[to+1]++ })
	for i := range n.nodes {
		r.first[i+1] += r.first[i]
	}
	r.list = make([]int32, r.first[len(n.nodes)])
	at := slices.Clone(r.first)
	n.eachLink(func(from, to int32) {
		r.list[at[to]] = from
		at[to]++
	})
	return r
}

func (n *net) eachLink(do func(from, to int32)) {
	for i := range n.nodes {
		x := &n.nodes[i]
		switch x.kind {
		case nodeBytes:
			for _, e := range n.edgesOf(x) {
				do(int32(i), e.to)
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
			return fmt.Errorf("%s is repeated and may be empty: make it match at least one byte", n.rules[x.rule].at)
		}
	}
	t := tarjan{net: n, empty: empty, index: make([]int32, len(n.nodes)), low: make([]int32, len(n.nodes)), done: make([]bool, len(n.nodes))}
	for i := range n.nodes {
		if t.index[i] == 0 {
			t.visit(int32(i))
		}
	}
	if t.loop >= 0 && t.looped {
		return fmt.Errorf("%s refers to itself with nothing in between: it has no shortest form", n.rules[t.loop].at)
	}
	return nil
}

// empties says of each node whether the end of its rule can be reached without a byte.
func (n *net) empties() []bool {
	empty := make([]bool, len(n.nodes))
	from := n.callers()
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

// tarjan finds the circles among the steps that take no byte, and whether a call is on one.
type tarjan struct {
	*net
	empty  []bool
	index  []int32 // order of the visit from 1; 0 not yet
	low    []int32
	done   []bool
	stack  []int32
	count  int32
	loop   int32
	looped bool
}

func (t *tarjan) visit(i int32) {
	t.count++
	t.index[i], t.low[i] = t.count, t.count
	t.stack = append(t.stack, i)
	t.eachStep(i, func(to, _ int32) {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[i] = min(t.low[i], t.low[to])
		} else if !t.done[to] {
			t.low[i] = min(t.low[i], t.index[to])
		}
	})
	if t.low[i] != t.index[i] {
		return
	}
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
		t.eachStep(c, func(to, rule int32) {
			if rule >= 0 && !t.done[to] && t.low[to] == t.index[i] {
				t.loop, t.looped = rule, true
			}
		})
	}
	for _, c := range circle {
		t.done[c] = true
	}
}

// eachStep calls do with the nodes that a state gets to from i without a byte, and the rule if
// the step is a call.
func (t *tarjan) eachStep(i int32, do func(to, rule int32)) {
	x := &t.nodes[i]
	switch x.kind {
	case nodeSplit:
		for _, to := range t.targets(x) {
			do(to, -1)
		}
	case nodeCall, nodeRepeat:
		start := t.startOf(x.rule)
		do(start, x.rule)
		if t.empty[start] || x.kind == nodeRepeat && x.min == 0 {
			do(x.to, -1)
		}
	}
}

// quote writes a name for a message, cut to a bearable length.
func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
