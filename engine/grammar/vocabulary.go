package grammar

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"baton/engine/tokenizer"
)

const (
	// plainMost is how many characters a plain token may have: longer ones are runs of one
	// character, and few.
	plainMost = 32
	// tokenBytesMost bounds the tokens that are used; longer ones are never allowed. The longest
	// in use are runs of 128 to 256 spaces.
	tokenBytesMost = 1024
	// maskWorkMost bounds the search for one mask: each step from a state by a class of bytes counts once,
	// for the nodes that it goes through and workPerStep. Masks of usual grammars take thousands;
	// one that takes all takes about 20 ms, and holds a step of the engine up for as long. Beyond, the
	// mask is cut: what was found and single bytes are allowed. A step counts the same whether it was
	// taken in an earlier search or not, so that a mask depends on the text alone (G4).
	maskWorkMost = 1 << 17
	workPerStep  = 8
)

// vocabulary is the tokens in the order in which masks look at them. It is read only.
type vocabulary struct {
	texts []string // by id: the bytes it stands for, "" if it can never be allowed
	words int
	ends  []int32   // they end an answer, and have no text
	has   [256]bool // there is a token of this byte alone

	control map[string]int32 // by name: tokens that have no text

	// A token is plain if it is characters of a JSON string as they stand: no quote, no escape,
	// no part of a character. They are most of a vocabulary, and inside a string all are allowed.
	plain tree
	other tree
	upTo  [][]uint64 // plain tokens of at most so many characters, 0 to plainMost
}

// tree is a byte trie in the order of a walk through it.
type tree struct {
	nodes []treeNode
	ids   []int32
}

type treeNode struct {
	skip  int32 // the node after all that begin with this one
	first int32 // its tokens in ids
	n     uint16
	depth uint16 // bytes before this one
	b     byte
}

type token struct {
	text string
	id   int32
}

func newVocabulary(tok *tokenizer.Tokenizer) *vocabulary {
	texts := make([]string, tok.Vocab())
	control := map[string]int32{}
	for id := range int32(len(texts)) {
		if text := tok.Text(id); !tok.IsSpecial(id) && len(text) <= tokenBytesMost {
			texts[id] = text
		} else if tok.IsSpecial(id) && !tok.IsEOS(id) {
			control[text] = id
		}
	}
	v := vocabularyOf(texts, tok.EOS())
	v.control = control
	return v
}

func vocabularyOf(texts []string, ends []int32) *vocabulary {
	v := &vocabulary{texts: texts, words: (len(texts) + 63) / 64, ends: ends}
	for _, id := range ends {
		texts[id] = ""
	}
	var all []token
	for id, text := range texts {
		if hasMark(text) {
			texts[id], text = "", ""
		}
		if text != "" {
			all = append(all, token{text, int32(id)})
			if len(text) == 1 {
				v.has[text[0]] = true
			}
		}
	}
	v.upTo = make([][]uint64, plainMost+1)
	for i := range v.upTo {
		v.upTo[i] = make([]uint64, v.words)
	}
	slices.SortFunc(all, func(a, b token) int {
		if c := strings.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(a.id - b.id)
	})
	var plain, other []token
	for _, t := range all {
		n := v.plainChars(t.text)
		if n == 0 {
			other = append(other, t)
			continue
		}
		plain = append(plain, t)
		bitmap(v.upTo[n]).add(t.id)
	}
	for n := 1; n <= plainMost; n++ {
		bitmap(v.upTo[n]).merge(v.upTo[n-1])
	}
	v.plain, v.other = newTree(plain), newTree(other)
	return v
}

// hasMark says whether text has bytes that stand for control tokens, and so never is UTF-8.
func hasMark(text string) bool {
	for i := range len(text) {
		if text[i] >= markByte {
			return true
		}
	}
	return false
}

// text returns the bytes that a token stands for, "" if it can never be allowed.
func (v *vocabulary) text(id int32) string {
	if id < 0 || int(id) >= len(v.texts) {
		return ""
	}
	return v.texts[id]
}

// plainChars returns how many characters a plain token has, 0 if s is not plain.
func (v *vocabulary) plainChars(s string) (n int) {
	if !utf8.ValidString(s) {
		return 0
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' || !v.has[s[i]] {
			return 0
		}
	}
	if n = utf8.RuneCountInString(s); n > plainMost {
		return 0
	}
	return n
}

func newTree(sorted []token) tree {
	t := tree{nodes: make([]treeNode, 0, 3*len(sorted)), ids: make([]int32, 0, len(sorted))}
	var open []int32 // the nodes of the last text
	last := ""
	for _, k := range sorted {
		same := 0
		for same < len(last) && same < len(k.text) && last[same] == k.text[same] {
			same++
		}
		for _, i := range open[same:] {
			t.nodes[i].skip = int32(len(t.nodes))
		}
		open = open[:same]
		for i := same; i < len(k.text); i++ {
			open = append(open, int32(len(t.nodes)))
			t.nodes = append(t.nodes, treeNode{b: k.text[i], depth: uint16(i), first: int32(len(t.ids))})
		}
		t.nodes[open[len(open)-1]].n++
		t.ids = append(t.ids, k.id)
		last = k.text
	}
	for _, i := range open {
		t.nodes[i].skip = int32(len(t.nodes))
	}
	return t
}

// bitmap is a set of token ids.
type bitmap []uint64

func (b bitmap) add(id int32) { b[id>>6] |= 1 << (id & 63) }

func (b bitmap) merge(from []uint64) {
	for i, w := range from {
		b[i] |= w
	}
}

// matcher is a machine over a vocabulary.
type matcher struct {
	*machine
	*vocabulary
	marks  []int32 // by byte from markByte: the control token, -1 if there is none
	walked []*live // of a walk, by depth
	search uint32  // counts the searches for masks
	work   int     // that is left to the present one
	found  bitmap  // working memory
}

// masked returns l, or the same state of the present age, with its mask known.
func (m *matcher) masked(l *live) *live {
	l = m.adopt(l)
	if l.has {
		return l
	}
	clear(m.found)
	m.search, m.work = m.search+1, maskWorkMost
	plainly, others := m.plainly(l)
	if plainly > 0 {
		m.found.merge(m.upTo[plainly])
	}
	m.walk(&m.other, l)
	if others != nil {
		m.walk(&m.plain, others)
	}
	l = m.adopt(l)
	for i, id := range m.marks {
		if id >= 0 && m.step(l, m.class[markByte+i]) != &dead {
			m.found.add(id)
		}
	}
	m.keep(l)
	return l
}

// keep stores what was found: as ids if that is smaller than a mask.
func (m *matcher) keep(l *live) {
	n := 0
	for _, w := range m.found {
		n += bits.OnesCount64(w)
	}
	l.has = true
	if 4*n < 8*len(m.found) {
		l.few = make([]int32, 0, n)
		for i, w := range m.found {
			for ; w != 0; w &= w - 1 {
				l.few = append(l.few, int32(i<<6+bits.TrailingZeros64(w)))
			}
		}
		m.maskBytes += 4 * n
		return
	}
	l.mask = append([]uint64(nil), m.found...)
	m.maskBytes += 8 * len(m.found)
}

// plainly returns up to how many characters a plain token may have because a place of l is in a
// string where any character may come, and the state of the other places, nil if there is none.
func (m *matcher) plainly(l *live) (chars int, others *live) {
	for _, p := range l.places {
		chars = max(chars, m.plainPlace(p))
	}
	if chars == 0 {
		return 0, l
	}
	m.start()
	for _, p := range l.places {
		if m.plainPlace(p) == 0 {
			m.places = append(m.places, p)
		}
	}
	if len(m.places) == 0 {
		return chars, nil
	}
	return chars, m.intern()
}

// plainPlace returns how many plain characters may come at p, at most plainMost, 0 if p is
// not where a character of a string begins.
func (m *matcher) plainPlace(p place) int {
	if p.node != m.chars || p.at == nil {
		return 0
	}
	x := &m.nodes[p.at.node]
	switch {
	case x.kind != nodeRepeat || m.startOf(x.rule) != m.chars:
		return 0
	case x.max < 0:
		return plainMost
	}
	return min(plainMost, int(x.max-p.at.count)+1)
}

// walk adds the tokens of t that may come at l, which is of the present age. Nothing is forgotten
// meanwhile, so what is kept may grow beyond its bounds by what maskWorkMost allows.
func (m *matcher) walk(t *tree, l *live) {
	m.walked = append(m.walked[:0], l)
	for i := int32(0); int(i) < len(t.nodes); {
		x := &t.nodes[i]
		if m.work < 0 && x.depth > 0 {
			i = x.skip
			continue
		}
		at := m.walked[x.depth]
		c := m.class[x.b]
		next := at.next[c]
		if next == nil {
			next = m.step(at, c)
		}
		if at.met[c] != m.search {
			at.met[c] = m.search
			m.work -= workPerStep + int(at.cost[c])
		}
		if next == &dead {
			i = x.skip
			continue
		}
		for _, id := range t.ids[x.first : int(x.first)+int(x.n)] {
			m.found.add(id)
		}
		m.walked = append(m.walked[:x.depth+1], next)
		i++
	}
}
