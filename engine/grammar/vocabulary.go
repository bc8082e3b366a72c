package grammar

import (
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

// newVocabulary takes the tokens of tok for which the model has a logit. Others can never be
// chosen, so a state that had no way but through them would be a dead end.
func newVocabulary(tok *tokenizer.Tokenizer, logits int) *vocabulary {
	texts := make([]string, max(0, min(tok.Vocab(), logits)))
	control := map[string]int32{}
	for id := range int32(len(texts)) {
		if text := tok.Text(id); !tok.IsSpecial(id) && len(text) <= tokenBytesMost {
			texts[id] = text
		} else if tok.IsSpecial(id) && !tok.IsEOS(id) {
			control[text] = id
		}
	}
	var ends []int32
	for _, id := range tok.EOS() {
		if int(id) < len(texts) {
			ends = append(ends, id)
		}
	}
	v := vocabularyOf(texts, ends)
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
