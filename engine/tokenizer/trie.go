package tokenizer

// trie finds the names of added tokens in a text: leftmost first, longest among those that
// begin at the same place.
type trie struct {
	nodes []trieNode
	first [256]bool // bytes with which a name begins
}

type trieNode struct {
	id    int32 // -1: no name ends here
	edges map[byte]int32
}

func newTrie() *trie { return &trie{nodes: []trieNode{{id: -1}}} }

func (t *trie) add(name string, id int32) {
	if name == "" {
		return // a token without a name cannot be found in a text
	}
	t.first[name[0]] = true
	at := int32(0)
	for i := 0; i < len(name); i++ {
		to, ok := t.nodes[at].edges[name[i]]
		if !ok {
			to = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: -1})
			if t.nodes[at].edges == nil {
				t.nodes[at].edges = map[byte]int32{}
			}
			t.nodes[at].edges[name[i]] = to
		}
		at = to
	}
	t.nodes[at].id = id
}

// find returns place, length and token of the first name in s, or len(s), 0, -1. Its time is
// the length of s times the length of the longest name at most.
func (t *trie) find(s string) (at, n int, id int32) {
	for i := 0; i < len(s); i++ {
		if !t.first[s[i]] {
			continue
		}
		if n, id := t.longest(s[i:]); n > 0 {
			return i, n, id
		}
	}
	return len(s), 0, -1
}

func (t *trie) longest(s string) (n int, id int32) {
	at := int32(0)
	for i := 0; i < len(s); i++ {
		to, ok := t.nodes[at].edges[s[i]]
		if !ok {
			break
		}
		at = to
		if t.nodes[at].id >= 0 {
			n, id = i+1, t.nodes[at].id
		}
	}
	return n, id
}
