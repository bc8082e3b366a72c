package tokenizer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// vocabMost bounds the vocabulary: token ids are int32 on the wire and in logits; the largest
// vocabulary in use has 262,144 tokens.
const vocabMost = 1 << 22

// nameBytesMost bounds the name of a token: the longest in use are runs of 128 spaces.
const nameBytesMost = 4096

// endNames are the names of control tokens that end a generation in the models in use, also
// where the file's eos, eot and eom keys do not name them (the list of llama.cpp).
var endNames = []string{
	"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end▁of▁sentence|>",
	"<｜end▁of▁sentence｜>", "</s>", "<eos>", "<end_of_utterance>",
}

// markSpace is how vocabularies of characters write a space.
const markSpace = "▁"

// vocabulary is what both kinds of file say about tokens.
type vocabulary struct {
	names  []string // by id
	kinds  []Kind   // by id
	byName map[string]int32
}

// build returns a tokenizer with these tokens, but without merges and what cuts text. text gives
// the bytes that a token stands for.
func (v *vocabulary) build(ofBytes bool, text func(name string, k Kind) string) *Tokenizer {
	n := len(v.names)
	t := &Tokenizer{text: make([]string, n), kind: v.kinds, whole: make([]bool, n), unknown: -1, bos: -1, mainEOS: -1, cache: newCache(n)}
	if !ofBytes {
		t.chars = newCharTable()
	}
	for b := range t.bytes {
		t.bytes[b] = -1
	}
	var all strings.Builder // texts share one string: a quarter of a million small ones take twice the memory
	ends := make([]int, n)
	for i, name := range v.names {
		all.WriteString(text(name, v.kinds[i]))
		ends[i] = all.Len()
	}
	start := 0
	for i, name := range v.names {
		id, k := int32(i), v.kinds[i]
		s := all.String()[start:ends[i]]
		start = ends[i]
		t.text[id], t.whole[id] = s, utf8.ValidString(s)
		switch {
		case k == Byte && !ofBytes:
			t.bytes[s[0]] = id
		case !ofBytes && (k == Normal || k == User):
			if r, n := utf8.DecodeRuneInString(name); n == len(name) && n > 0 && !(r == utf8.RuneError && n == 1) {
				t.chars.add(r, id)
			}
		}
	}
	if ofBytes {
		for r, b := range byteOfRune {
			if id, ok := v.byName[string(rune(r))]; ok && b >= 0 && !v.kinds[id].Special() && v.kinds[id] != Unused {
				t.bytes[b] = id
				t.text[id] = string([]byte{byte(b)})
				t.whole[id] = b < utf8.RuneSelf
			}
		}
	}
	return t
}

// byteOfName returns the byte of a name such as <0x0A>.
func byteOfName(name string) (byte, bool) {
	var b byte
	if len(name) != len("<0x0A>") {
		return 0, false
	}
	if n, err := fmt.Sscanf(name, "<0x%02X>", &b); n != 1 || err != nil || fmt.Sprintf("<0x%02X>", b) != name {
		return 0, false
	}
	return b, true
}

// addMerges fills in the table of merges. A merge that would make a special token out of
// ordinary text is left out (T2).
func (t *Tokenizer) addMerges(v *vocabulary, n int, merge func(rank int) (left, right string, err error), last bool) error {
	if n > mergesMost {
		return fmt.Errorf("there are %d merges, allowed are %d", n, mergesMost)
	}
	t.merges = newMergeTable(n)
	if t.chars != nil && !slices.Contains(t.bytes[:], -1) {
		t.borders = newBorders()
	}
	var whole []byte
	for rank := range n {
		left, right, err := merge(rank)
		if err != nil {
			return err
		}
		var ids [3]int32
		whole = append(append(whole[:0], left...), right...)
		var ok [3]bool
		ids[0], ok[0] = v.byName[left]
		ids[1], ok[1] = v.byName[right]
		ids[2], ok[2] = v.byName[string(whole)]
		if i := slices.Index(ok[:], false); i >= 0 {
			return fmt.Errorf("merge %d (%q and %q) needs %q, which is no token", rank, left, right, []string{left, right, string(whole)}[i])
		}
		if v.kinds[ids[2]].Special() {
			continue
		}
		t.addMerge(v, ids, last)
	}
	return nil
}

func (t *Tokenizer) addMerge(v *vocabulary, ids [3]int32, last bool) {
	t.merges.add(ids[0], ids[1], ids[2], last)
	if t.borders == nil {
		return
	}
	if v.kinds[ids[0]] == Byte || v.kinds[ids[1]] == Byte {
		t.borders = nil // then characters do not tell what may merge
		return
	}
	t.borders.joinAcross(v.names[ids[0]], v.names[ids[1]])
}

// addEnds completes the set of end tokens: ids are those that the files name, the first one the
// main one.
func (t *Tokenizer) addEnds(ids []int32) {
	if len(ids) > 0 {
		t.mainEOS = ids[0]
	}
	t.eos = append(t.eos, ids...)
	for n, k := range t.kind {
		if k == Control && slices.Contains(endNames, t.text[n]) {
			t.eos = append(t.eos, int32(n))
		}
	}
	slices.Sort(t.eos)
	t.eos = slices.Compact(t.eos)
}

// sum computes the digest over everything that decides ids and texts: what a tokenizer holds, and
// what else its file says about how text is cut.
func (t *Tokenizer) sum(rest ...string) {
	h := xxh3.New()
	number := func(n uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	text := func(s string) {
		number(uint64(len(s)))
		h.WriteString(s)
	}
	for _, s := range rest {
		text(s)
	}
	for i, s := range t.text {
		text(s)
		h.Write([]byte{byte(t.kind[i])})
	}
	for i, p := range t.merges.pairs {
		number(p)
		number(uint64(t.merges.ids[i]))
		if t.merges.ranks != nil {
			number(uint64(t.merges.ranks[i]))
		}
	}
	text(fmt.Sprint(t.bos, t.addBOS, t.eos, t.unknown, t.fuse))
	t.digest = h.Sum64()
}

// byteOfRune maps the characters by which byte-level vocabularies write bytes back to them, -1
// for others: printable Latin-1 stands for itself, the other 68 bytes are U+0100 and up.
var byteOfRune = func() (m [0x100 + 68]int16) {
	up := 0x100
	for b := range 0x100 {
		m[b] = -1
		if 33 <= b && b <= 126 || 161 <= b && b <= 172 || 174 <= b {
			m[b] = int16(b)
			continue
		}
		m[up] = int16(b)
		up++
	}
	return m
}()

// unmapBytes returns the bytes for which a byte-level name stands, or the name itself if it is no
// such name.
func unmapBytes(name string) string {
	out := make([]byte, 0, len(name))
	for _, r := range name {
		if int(r) >= len(byteOfRune) || byteOfRune[r] < 0 {
			return name
		}
		out = append(out, byte(byteOfRune[r]))
	}
	return string(out)
}

// unmarkSpaces returns the text of a name that writes spaces as U+2581.
func unmarkSpaces(name string) string { return strings.ReplaceAll(name, markSpace, " ") }
