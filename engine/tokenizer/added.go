package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"baton/engine/tokenizer/split"
)

// addedFlags say how an added token is found (added_tokens of tokenizer.json; a GGUF file has
// none of them).
type addedFlags uint8

const (
	stripLeft  addedFlags = 1 << iota // takes the white space in front of it
	stripRight                        // and behind
	singleWord                        // not inside a word
)

// added finds the names of added tokens in a text: leftmost first, longest among those that
// begin at the same place. Its time is the length of the text times the length of the longest
// name at most.
type added struct {
	first [256]bool // bytes with which a name begins
	only  int       // the byte with which all begin, -1 if there are several
	nodes []addedNode
	label []byte // of edges: a node's edges stand together, in ascending order
	to    []int32
	flags map[int32]addedFlags
}

type addedNode struct {
	id    int32 // -1: no name ends here
	edges int32 // the first one
	count int32
}

// addedName is a name to be found, and its token.
type addedName struct {
	name string
	id   int32
}

// newAdded builds the trie; of equal names the last counts. It returns nil for no names: a token
// without a name cannot be found.
func newAdded(names []addedName, flags map[int32]addedFlags) *added {
	names = slices.DeleteFunc(slices.Clone(names), func(n addedName) bool { return n.name == "" })
	slices.SortStableFunc(names, func(a, b addedName) int { return strings.Compare(a.name, b.name) })
	if len(names) == 0 {
		return nil
	}
	a := &added{nodes: []addedNode{{id: -1}}, flags: flags, only: int(names[0].name[0])}
	for _, n := range names {
		a.first[n.name[0]] = true
		if int(n.name[0]) != a.only {
			a.only = -1
		}
	}
	type stretch struct { // names[lo:hi] have depth bytes in common, which lead to node
		lo, hi, depth int
		node          int32
	}
	for work := []stretch{{0, len(names), 0, 0}}; len(work) > 0; {
		s := work[0]
		work = work[1:]
		for s.lo < s.hi && len(names[s.lo].name) == s.depth {
			a.nodes[s.node].id = names[s.lo].id
			s.lo++
		}
		a.nodes[s.node].edges = int32(len(a.label))
		for lo := s.lo; lo < s.hi; {
			b := names[lo].name[s.depth]
			hi := lo
			for hi < s.hi && names[hi].name[s.depth] == b {
				hi++
			}
			node := int32(len(a.nodes))
			a.nodes = append(a.nodes, addedNode{id: -1})
			a.label, a.to = append(a.label, b), append(a.to, node)
			a.nodes[s.node].count++
			work = append(work, stretch{lo, hi, s.depth + 1, node})
			lo = hi
		}
	}
	return a
}

// step returns the node to which byte b leads, -1 if none.
func (a *added) step(node int32, b byte) int32 {
	n := &a.nodes[node]
	labels := a.label[n.edges : n.edges+n.count]
	if len(labels) <= 8 {
		for i, l := range labels {
			if l == b {
				return a.to[int(n.edges)+i]
			}
		}
		return -1
	}
	if i, ok := slices.BinarySearch(labels, b); ok {
		return a.to[int(n.edges)+i]
	}
	return -1
}

// match is an added token in a text. With white space that it takes, lo and hi are more than its
// name.
type match struct {
	lo, hi int
	id     int32
}

// find returns the first match in s from byte from on that accept takes, given the place of the
// name. White space in front of from belongs to the match before.
func (a *added) find(s string, from int, accept func(lo, hi int, id int32) bool) (match, bool) {
	for i := from; i < len(s); i++ {
		if a.only >= 0 {
			n := strings.IndexByte(s[i:], byte(a.only))
			if n < 0 {
				break
			}
			i += n
		} else if !a.first[s[i]] {
			continue
		}
		hi, id := -1, int32(-1)
		for at, node := i, int32(0); at < len(s); {
			if node = a.step(node, s[at]); node < 0 {
				break
			}
			at++
			if t := a.nodes[node].id; t >= 0 && accept(i, at, t) {
				hi, id = at, t
			}
		}
		if id < 0 {
			continue
		}
		f := a.flags[id]
		if f&singleWord != 0 && (endsInWord(s[:i]) || beginsWithWord(s[hi:])) {
			i = hi - 1
			continue
		}
		lo := i
		if f&stripLeft != 0 {
			lo = max(from, len(strings.TrimRightFunc(s[:i], isSpace)))
		}
		if f&stripRight != 0 {
			hi = len(s) - len(strings.TrimLeftFunc(s[hi:], isSpace))
		}
		return match{lo, hi, id}, true
	}
	return match{}, false
}

func isSpace(r rune) bool { return split.Of(r)&split.Space != 0 }

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && split.Of(r)&split.Word != 0
}

func beginsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && split.Of(r)&split.Word != 0
}

// looksSpecial says whether the name of an added token that is not marked as special is that of
// one all the same: DeepSeek's <｜Assistant｜> and Qwen's <|repo_name|> structure a prompt, and who
// could write them could forge a turn. It is the list of llama.cpp's conversion.
func looksSpecial(name string) bool {
	for _, form := range [][2]string{{"<|", "|>"}, {"<｜", "｜>"}, {"<unused", ">"}} {
		if len(name) >= len(form[0])+len(form[1]) && strings.HasPrefix(name, form[0]) && strings.HasSuffix(name, form[1]) {
			return true
		}
	}
	return slices.Contains([]string{"<pad>", "<mask>", "<2mass>", "[@BOS@]"}, name)
}
