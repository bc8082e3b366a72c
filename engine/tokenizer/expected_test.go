package tokenizer

import (
	"encoding/binary"
	"os"
	"testing"
	"unicode/utf8"
)

// idsSum is the sum of tools/tokenizer/expected.py: the ids with special tokens, -1, the ids
// without.
func idsSum(special, plain []int32) uint32 {
	h := uint32(0x811c9dc5)
	add := func(id int32) {
		for i := range 4 {
			h = (h ^ uint32(id)>>(8*i)&0xff) * 0x01000193
		}
	}
	for _, id := range special {
		add(id)
	}
	add(-1)
	for _, id := range plain {
		add(id)
	}
	return h
}

// compare holds tok against the sums that a reference implementation gave for the corpus.
func compare(t *testing.T, name string, tok *Tokenizer) {
	t.Helper()
	b, err := os.ReadFile("testdata/expected/" + name + ".sums")
	if err != nil {
		t.Fatal(err)
	}
	texts := corpus()
	if len(b) != 4*(len(texts)+1) || binary.LittleEndian.Uint32(b) != corpusSum() {
		t.Fatalf("the sums of %s are not of this corpus: make them again, see tools/tokenizer/expected.py", name)
	}
	wrong := 0
	for i, text := range texts {
		special, plain := tok.Encode(text, true), tok.Encode(text, false)
		if idsSum(special, plain) == binary.LittleEndian.Uint32(b[4*(i+1):]) {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%s: text %d, %.200q, is %.60d, and without special tokens %.60d", name, i, text, special, plain)
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d texts differ", name, wrong, len(texts))
	}
}

// roundTrip holds T1, T2 and T4 for the corpus; want says what comes back.
func roundTrip(t *testing.T, tok *Tokenizer, want func(text string) string) {
	t.Helper()
	for _, text := range corpus() {
		ids := tok.Encode(text, false)
		s, streamed := tok.Stream(), ""
		for _, id := range ids {
			if tok.Kind(id) == Control {
				t.Fatalf("%q has the control token %d", text, id)
			}
			piece := s.Push(id)
			if !utf8.ValidString(piece) {
				t.Fatalf("%q: piece %q", text, piece)
			}
			streamed += piece
		}
		streamed += s.Flush()
		if got := tok.Decode(ids, true); got != want(text) || streamed != got {
			t.Fatalf("%q comes back as %q, streamed %q", text, got, streamed)
		}
	}
}
