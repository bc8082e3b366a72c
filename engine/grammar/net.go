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
	// workMost bounds what Validate and Compile do for one Spec before there is an automaton: list
	// items, facts of alternatives, rules, nodes, edges, places of expressions. One unit stands for at
	// most about 32 bytes or 50 ns, so all of them for 32 MB and 50 ms. A schema of 256 KiB of names
	// and enums takes half.
	workMost = 1 << 20
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
	work  int      // units of workMost that are spent
	err   error    // the first bound that was passed; what is built after it counts for nothing
}

// rule begins at a node and ends at nodeEnd.
type rule struct {
	start int32
	at    string // which part of the Spec it stands for, for messages
	of    *value // instead of at: the schema; nil once check is done
}

// name says which part of the Spec a rule stands for.
func (r *rule) name() string {
	if r.of != nil {
		return r.of.at()
	}
	return r.at
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

// spend counts work and says whether there is some left.
func (n *net) spend(units int) bool {
	if n.err != nil {
		return false
	}
	if n.work += units; n.work > workMost {
		n.work = workMost
		n.fail("%w: its alternatives, references, lists, counts or classes multiply to more than %d steps of work; write fewer or smaller ones", errTooLarge, workMost)
	}
	return n.err == nil
}

// grown returns s with room for more items: by doubling, so that what is allocated in all is
// bounded by what is kept.
func grown[T any](s []T, more int) []T {
	if len(s)+more <= cap(s) {
		return s
	}
	return append(make([]T, 0, max(2*cap(s), len(s)+more, 64)), s...)
}

func (n *net) add(x node) int32 {
	if !n.spend(2) || len(n.nodes) >= nodesMost || len(n.edges) > edgesMost || len(n.eps) > edgesMost {
		n.fail("%w: its automaton needs more than %d nodes; write fewer or smaller alternatives, counts or classes", errTooLarge, nodesMost)
		return end
	}
	n.nodes = append(grown(n.nodes, 1), x)
	return int32(len(n.nodes) - 1)
}

// bytes returns a node with these edges.
func (n *net) bytes(edges ...edge) int32 {
	if !n.spend(len(edges)) {
		return end
	}
	first := int32(len(n.edges))
	n.edges = append(grown(n.edges, len(edges)), edges...)
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
	if n.spend(len(to)) {
		n.nodes[hole].first, n.nodes[hole].n = int32(len(n.eps)), int32(len(to))
		n.eps = append(grown(n.eps, len(to)), to...)
	}
	return hole
}

// text returns a node that takes these bytes.
func (n *net) text(s string, to int32) int32 {
	for i := len(s) - 1; i >= 0 && n.err == nil; i-- {
		to = n.byte(s[i], to)
	}
	return to
}

// texts returns a node that takes one of these texts, which it sorts: a trie.
func (n *net) texts(list []string, to int32) int32 {
	for _, s := range list {
		if !n.spend(4 + len(s)/16) {
			return end
		}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return n.trie(slices.Compact(list), 0, to)
}

func (n *net) trie(list []string, at int, to int32) int32 {
	if len(list) == 1 {
		return n.text(list[0][at:], to)
	}
	if len(list) > 1 { // what all have in common: they are sorted, so what the first and the last have
		first, last, same := list[0], list[len(list)-1], at
		for same < len(first) && same < len(last) && first[same] == last[same] {
			same++
		}
		if same > at {
			return n.text(first[at:same], n.trie(list, same, to))
		}
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
	n.spend(2)
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

// quote writes a name for a message, cut to a bearable length.
func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
