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

// compare holds tok against the sums that a reference implementation gave for the corpus, but for
// the texts that skip takes.
func compare(t *testing.T, name string, tok *Tokenizer, skip func(text string) bool) {
	t.Helper()
	b, err := os.ReadFile("testdata/expected/" + name + ".sums")
	if err != nil {
		t.Fatal(err)
	}
	texts := corpus()
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	if len(b) < 8 || number(0) != corpusSum() || number(1) == 0 || len(b) != 4*(2+(len(texts)-1)/int(number(1))+1) {
		t.Fatalf("the sums of %s are not of this corpus: make them again, see tools/tokenizer/expected.py", name)
	}
	wrong := 0
	for i := 0; i < len(texts); i += int(number(1)) {
		text := texts[i]
		if skip != nil && skip(text) {
			continue
		}
		special, plain := tok.Encode(text, true), tok.Encode(text, false)
		if idsSum(special, plain) == number(2+i/int(number(1))) {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%s: text %d, %.200q, is %d, and without special tokens %d", name, i, text, special[:min(len(special), 60)], plain[:min(len(plain), 60)])
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d texts differ", name, wrong)
	}
}

// roundTrip holds T1, T2, T4 and T5 for the corpus; want says what comes back.
func roundTrip(t *testing.T, tok *Tokenizer, want func(text string) string) {
	t.Helper()
	for _, text := range corpus() {
		ids := tok.Encode(text, false)
		s, streamed, bytes := tok.Stream(), "", ""
		for _, id := range ids {
			bytes += tok.Text(id)
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
		if got := tok.Decode(ids, true); got != want(text) || streamed != got || bytes != got {
			t.Fatalf("%q comes back as %q, streamed %q, of tokens with the bytes %q", text, got, streamed, bytes)
		}
	}
}
