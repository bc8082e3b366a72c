package grammar

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// charNode returns the start of one character inside a JSON string: any valid UTF-8 that needs
// no escape, or any escape; a surrogate only as the first or second of a pair.
func (b *builder) charNode() int32 {
	hex := func(to int32) int32 { return b.bytes(edge{'0', '9', to}, edge{'A', 'F', to}, edge{'a', 'f', to}) }
	two := hex(hex(end))
	low := b.net.text(`\u`, b.bytes(edge{'D', 'D', b.bytes(edge{'C', 'F', two}, edge{'c', 'f', two})}, edge{'d', 'd', b.bytes(edge{'C', 'F', two}, edge{'c', 'f', two})}))
	pair := hex(hex(low))
	d := b.bytes(edge{'0', '7', two}, edge{'8', '9', pair}, edge{'A', 'B', pair}, edge{'a', 'b', pair})
	three := hex(two)
	u := b.bytes(edge{'0', '9', three}, edge{'A', 'C', three}, edge{'D', 'D', d}, edge{'E', 'F', three},
		edge{'a', 'c', three}, edge{'d', 'd', d}, edge{'e', 'f', three})
	escape := b.bytes(edge{'"', '"', end}, edge{'/', '/', end}, edge{'\\', '\\', end}, edge{'b', 'b', end}, edge{'f', 'f', end},
		edge{'n', 'n', end}, edge{'r', 'r', end}, edge{'t', 't', end}, edge{'u', 'u', u})
	edges := []edge{{' ', '!', end}, {'#', '[', end}, {'\\', '\\', escape}, {']', 0x7f, end}}
	return b.bytes(append(edges, b.runeEdges([]rune{0x80, utf8.MaxRune}, end)...)...)
}

// set is a set of characters: pairs of first and last, ascending and apart.
type set []rune

// without returns the characters of s that are not in list, which is ascending.
func (s set) without(list ...rune) set {
	var out set
	for i := 0; i+1 < len(s); i += 2 {
		lo := s[i]
		for _, r := range list {
			if r < lo || r > s[i+1] {
				continue
			}
			if r > lo {
				out = append(out, lo, r-1)
			}
			lo = r + 1
		}
		if lo <= s[i+1] {
			out = append(out, lo, s[i+1])
		}
	}
	return out
}

var (
	everyRune        = set{0, utf8.MaxRune}
	everyRuneButLine = everyRune.without('\n')
)

// class returns the start of one character of s. In JSON it is as it stands in a string, in
// canonical form.
func (b *builder) class(s set, json bool, to int32) int32 {
	if !b.spend(1+len(s)/4) || len(s) == 0 {
		return b.bytes()
	}
	if len(s) == 2 && s[0] == s[1] { // one character
		if !utf8.ValidRune(s[0]) {
			return b.bytes()
		}
		if json {
			return b.net.text(string(appendRune(nil, s[0])), to)
		}
		return b.net.text(string(s[0]), to)
	}
	if s[len(s)-1] < utf8.RuneSelf && !(json && s.escaped()) {
		return b.bytes(b.classEdges(s, json, to)...)
	}
	// Characters of several bytes: built once, and called.
	return b.call(b.classRule(s, json), to)
}

// classRule returns the rule of one character of s.
func (b *builder) classRule(s set, json bool) int32 {
	if !b.spend(4 + len(s)/4) {
		return 0
	}
	key := []byte{0}
	if json {
		key[0] = 1
	}
	for _, r := range s {
		key = binary.LittleEndian.AppendUint32(key, uint32(r))
	}
	rule, ok := b.classes[string(key)]
	if !ok {
		b.spend(len(s))
		rule = b.ruleOf("a class of characters", b.bytes(b.classEdges(s, json, end)...))
		b.classes[string(key)] = rule
	}
	return rule
}

// escaped says whether a character of s is written in more than one in a JSON string.
func (s set) escaped() bool { return s[0] < ' ' || s.has('"') || s.has('\\') }

func (b *builder) classEdges(s set, json bool, to int32) []edge {
	if !json {
		return b.runeEdges(s, to)
	}
	var escaped []string
	for r := rune(0); r < ' '; r++ {
		if s.has(r) {
			escaped = append(escaped, string(appendRune(nil, r)[1:]))
		}
	}
	for _, r := range []rune{'"', '\\'} {
		if s.has(r) {
			escaped = append(escaped, string(r))
		}
	}
	var plain set
	for i := 0; i+1 < len(s); i += 2 {
		if s[i+1] >= ' ' {
			plain = append(plain, max(s[i], ' '), s[i+1])
		}
	}
	edges := b.runeEdges(plain.without('"', '\\'), to)
	if len(escaped) > 0 {
		edges = append(edges, edge{'\\', '\\', b.texts(escaped, to)})
	}
	return edges
}

func (s set) has(r rune) bool {
	for i := 0; i+1 < len(s); i += 2 {
		if s[i] <= r && r <= s[i+1] {
			return true
		}
	}
	return false
}

// runeEdges returns the edges of the UTF-8 of the characters of s.
func (b *builder) runeEdges(s set, to int32) []edge {
	var seqs []byteSeq
	for i := 0; i+1 < len(s); i += 2 {
		seqs = appendSeqs(seqs, s[i], s[i+1])
	}
	return b.seqEdges(seqs, 0, to)
}

func (b *builder) seqEdges(seqs []byteSeq, at int, to int32) []edge {
	var edges []edge
	tails := map[int]int32{} // continuation bytes without a limit, by how many: shared
	for len(seqs) > 0 && b.err == nil {
		same := 1
		for same < len(seqs) && seqs[same].lo[at] == seqs[0].lo[at] && seqs[same].hi[at] == seqs[0].hi[at] && seqs[same].n == seqs[0].n {
			same++
		}
		q := seqs[0]
		next := to
		if rest := q.n - at - 1; rest > 0 {
			if same == 1 && q.open(at+1) {
				if _, ok := tails[rest]; !ok {
					t := to
					for range rest {
						t = b.bytes(edge{0x80, 0xbf, t})
					}
					tails[rest] = t
				}
				next = tails[rest]
			} else {
				next = b.bytes(b.seqEdges(seqs[:same], at+1, to)...)
			}
		}
		edges = append(edges, edge{q.lo[at], q.hi[at], next})
		seqs = seqs[same:]
	}
	return edges
}

// byteSeq is a run of characters as ranges of their bytes, each independent of the others.
type byteSeq struct {
	lo, hi [4]byte
	n      int
}

// open says whether all bytes from at on are any continuation byte.
func (q *byteSeq) open(at int) bool {
	for ; at < q.n; at++ {
		if q.lo[at] != 0x80 || q.hi[at] != 0xbf {
			return false
		}
	}
	return true
}

// appendSeqs cuts lo to hi into runs that byteSeq can say, leaving the surrogates out.
func appendSeqs(out []byteSeq, lo, hi rune) []byteSeq {
	if lo > hi {
		return out
	}
	if lo <= 0xdfff && hi >= 0xd800 {
		return appendSeqs(appendSeqs(out, lo, 0xd7ff), 0xe000, hi)
	}
	for _, most := range []rune{0x7f, 0x7ff, 0xffff} { // characters of one run have one length
		if lo <= most && hi > most {
			return appendSeqs(appendSeqs(out, lo, most), most+1, hi)
		}
	}
	n := utf8.RuneLen(hi)
	for i := 1; i < n; i++ { // all but the first byte that differs run from 80 to BF
		m := rune(1)<<(6*i) - 1
		if lo&^m != hi&^m {
			if lo&m != 0 {
				return appendSeqs(appendSeqs(out, lo, lo|m), (lo|m)+1, hi)
			}
			if hi&m != m {
				return appendSeqs(appendSeqs(out, lo, hi&^m-1), hi&^m, hi)
			}
		}
	}
	q := byteSeq{n: n}
	utf8.EncodeRune(q.lo[:], lo)
	utf8.EncodeRune(q.hi[:], hi)
	return append(out, q)
}

// otherName returns the start, behind its quote, of a name that is none of exclude. Where there is
// something to exclude, names are in canonical form, since an escape could hide a name.
func (b *builder) otherName(exclude []string, to int32) int32 {
	if len(exclude) == 0 {
		return b.repeat(b.charRule(), 0, -1, b.byte('"', to))
	}
	for _, s := range exclude {
		if !b.spend(4 + len(s)/4) {
			return end
		}
	}
	list := make([][]rune, len(exclude))
	for i, s := range exclude {
		list[i] = []rune(s)
	}
	slices.SortFunc(list, slices.Compare)
	closing := b.byte('"', to)
	free := b.hole()
	b.fill(free, closing, b.class(everyRune, true, free))
	return b.notOf(list, 0, closing, free)
}

// notOf returns the start of what follows the first at characters that all of list have in
// common, so that none of list comes out.
func (b *builder) notOf(list [][]rune, at int, closing, free int32) int32 {
	if !b.spend(32) { // also the depth is bounded by it
		return end
	}
	var starts []int32
	if len(list[0]) == at {
		list = list[1:]
	} else {
		starts = append(starts, closing)
	}
	var next []rune
	for len(list) > 0 && b.err == nil {
		r, same := list[0][at], 1
		for same < len(list) && list[same][at] == r {
			same++
		}
		next = append(next, r)
		starts = append(starts, b.class(set{r, r}, true, b.notOf(list[:same], at+1, closing, free)))
		list = list[same:]
	}
	starts = append(starts, b.class(everyRune.without(next...), true, free))
	return b.split(starts...)
}
