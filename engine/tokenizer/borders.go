package tokenizer

import "unicode/utf8"

// borders says which two characters may stand next to each other inside a token: between others
// no merge can come about, so a long piece (Gemma does not split text at all) is cut there, and
// what was one piece of a page becomes words that the cache knows. It is a set of hashes in 2^21 bits:
// to take a pair for one that is in it costs time and changes nothing.
type borders []uint64

const borderBits = 21 // Gemma has about 90,000 pairs

func newBorders() borders { return make(borders, 1<<borderBits/64) }

func borderAt(a, b rune) (word int, bit uint64) {
	h := (uint64(uint32(a))<<21 ^ uint64(uint32(b))) * 0x9e3779b97f4a7c15 >> (64 - borderBits)
	return int(h >> 6), 1 << (h & 63)
}

func (b borders) join(left, right rune) {
	word, bit := borderAt(left, right)
	b[word] |= bit
}

// joinAcross notes that left and right may merge.
func (b borders) joinAcross(left, right string) {
	l, _ := utf8.DecodeLastRuneInString(left)
	r, _ := utf8.DecodeRuneInString(right)
	b.join(l, r)
}

// cut returns the length of the stretch at the start of s that no merge leaves.
func (b borders) cut(s string) int {
	last, i := utf8.DecodeRuneInString(s)
	for i < len(s) {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if word, bit := borderAt(last, r); b[word]&bit == 0 {
			return i
		}
		last = r
		i += n
	}
	return i
}
