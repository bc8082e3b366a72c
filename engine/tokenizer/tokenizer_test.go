package tokenizer

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"baton/engine/weights/gguf"
)

func readRows[T any](t testing.TB, path string) (rows []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var r T
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatalf("%s is empty", path)
	}
	return rows
}

func open(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // a tokenizer shares no memory with its file
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func recallTokenizer(t testing.TB) *Tokenizer { return open(t, "../recall/recall.gguf") }

func TestIDsMatchReference(t *testing.T) {
	tok := recallTokenizer(t)
	type row struct {
		Text    string
		Plain   []int32
		Special []int32
	}
	for _, r := range readRows[row](t, "testdata/ids.jsonl") {
		if got := tok.Encode(r.Text, false); !slices.Equal(got, r.Plain) {
			t.Errorf("%.80q is %v, want %v", r.Text, got, r.Plain)
		}
		if got := tok.Encode(r.Text, true); !slices.Equal(got, r.Special) {
			t.Errorf("%.80q with special tokens is %v, want %v", r.Text, got, r.Special)
		}
	}
}

// TestNothingIsSpecialUnlessAskedFor holds T2 for texts made of the names of special tokens.
func TestNothingIsSpecialUnlessAskedFor(t *testing.T) {
	tok := recallTokenizer(t)
	var names []string
	for id := int32(0); int(id) < tok.Vocab(); id++ {
		if tok.IsSpecial(id) {
			names = append(names, tok.Text(id))
		}
	}
	if len(names) != 5 {
		t.Fatalf("special tokens %q", names)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom([]string{"<|", "|>", "end", " ", "a"})), 1, 8).Draw(t, "parts")
		text := strings.Join(parts, "")
		ids := tok.Encode(text, false)
		if slices.ContainsFunc(ids, tok.IsSpecial) {
			t.Fatalf("%q is %v", text, ids)
		}
		if got := tok.Decode(ids, true); got != text {
			t.Fatalf("%q comes back as %q", text, got)
		}
	})
}

func TestSpecialTokensAreFoundWhenAskedFor(t *testing.T) {
	tok := recallTokenizer(t)
	got := tok.Encode("<|user|>a<|end|><|end|", true)
	want := append([]int32{2}, tok.Encode("a", false)...)
	want = append(append(want, 4), tok.Encode("<|end|", false)...)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s := tok.Decode(got, true); s != "a<|end|" {
		t.Errorf("without special tokens %q", s)
	}
	if s := tok.Decode(got, false); s != "<|user|>a<|end|><|end|" {
		t.Errorf("with special tokens %q", s)
	}
}

// TestStreamGivesWhatDecodeGives holds T4 for random tokens, so also for broken UTF-8.
func TestStreamGivesWhatDecodeGives(t *testing.T) {
	tok := recallTokenizer(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.OneOf(rapid.Int32Range(0, int32(tok.Vocab()-1)), rapid.Int32Range(0, 300), rapid.Int32Range(-3, 5000)), 0, 40).Draw(t, "ids")
		s, text := tok.Stream(), ""
		for _, id := range ids {
			p := s.Push(id)
			if !utf8.ValidString(p) {
				t.Fatalf("piece %q", p)
			}
			text += p
		}
		text += s.Flush()
		if want := tok.Decode(ids, true); text != want {
			t.Fatalf("stream gives %q, Decode %q", text, want)
		}
		if s.Flush() != "" {
			t.Fatal("a second Flush gives text")
		}
	})
}

func TestStreamHoldsHalfACharacter(t *testing.T) {
	tok := recallTokenizer(t)
	s := tok.Stream()
	ids := tok.Encode("😀", false)
	if len(ids) != 4 {
		t.Fatalf("the character is %d tokens, this test needs 4", len(ids))
	}
	for _, id := range ids[:3] {
		if p := s.Push(id); p != "" {
			t.Errorf("a part gives %q", p)
		}
	}
	if p := s.Push(ids[3]); p != "😀" {
		t.Errorf("the end gives %q", p)
	}
	s.Push(ids[0])
	if p := s.Push(tok.Encode("a", false)[0]); p != "\ufffda" {
		t.Errorf("a broken character and a letter give %q", p)
	}
	s.Push(ids[0])
	if p := s.Flush(); p != "\ufffd" {
		t.Errorf("Flush gives %q", p)
	}
}

func TestStreamOfWholeTokensAllocatesNothing(t *testing.T) {
	tok := recallTokenizer(t)
	s, ids := tok.Stream(), tok.Encode("The code of Maria is amber falcon.", false)
	if n := testing.AllocsPerRun(100, func() {
		for _, id := range ids {
			s.Push(id)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// naive is merging as its definition says: again and again the lowest rank, leftmost first.
func naive(t *Tokenizer, piece string) []int32 {
	var ids []int32
	for i := 0; i < len(piece); i++ {
		if t.bytes[piece[i]] >= 0 {
			ids = append(ids, t.bytes[piece[i]])
		}
	}
	for {
		best, at := merged{rank: 1 << 30}, -1
		for i := 0; i+1 < len(ids); i++ {
			if m, ok := t.merges.find(ids[i], ids[i+1]); ok && m.rank < best.rank {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Delete(ids, at+1, at+2)
		ids[at] = best.id
	}
}

// TestBothWaysOfMergingFollowTheDefinition, for pieces around the length at which they change.
func TestBothWaysOfMergingFollowTheDefinition(t *testing.T) {
	tok := recallTokenizer(t)
	r := rand.New(rand.NewPCG(1, 2))
	var m merger
	for range 3000 {
		b := make([]byte, r.IntN(3*scanMost))
		for i := range b {
			b[i] = "etaoin shrdlu"[r.IntN(13)]
		}
		m.ids = tok.symbols(m.ids[:0], string(b))
		if got, want := m.merge(nil, &tok.merges), naive(tok, string(b)); !slices.Equal(got, want) {
			t.Fatalf("%q is %v, want %v", b, got, want)
		}
	}
}

// TestLongPiecesAreNotQuadratic holds T3: a piece of 256 KiB with the square of it as work would
// run into the time limit of the test program.
func TestLongPiecesAreNotQuadratic(t *testing.T) {
	tok := recallTokenizer(t)
	for _, unit := range []string{"a", "the", " ", "!", "0"} {
		text := strings.Repeat(unit, 1<<18/len(unit))
		if got := tok.Decode(tok.Encode(text, false), false); got != text {
			t.Errorf("%d times %q does not come back", len(text)/len(unit), unit)
		}
	}
}

func TestIDsBeyondTheVocabularyAreNothing(t *testing.T) {
	tok := recallTokenizer(t)
	for _, id := range []int32{-1, int32(tok.Vocab()), 1 << 30} {
		if tok.Decode([]int32{id}, false) != "" || tok.Token(id) != nil || tok.Text(id) != "" || tok.IsSpecial(id) || tok.IsEOS(id) || tok.Stream().Push(id) != "" {
			t.Errorf("%d is something", id)
		}
	}
}

// FuzzTokenizer asks of every text that it comes back (T1), byte for byte also where it is not
// valid UTF-8, and that nothing is special (T2).
func FuzzTokenizer(f *testing.F) {
	tok := recallTokenizer(f)
	for _, r := range readRows[struct{ Text string }](f, "testdata/ids.jsonl") {
		f.Add(r.Text)
	}
	f.Add("\xff\xfe\x80<|end|>\xe2\x82")
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text, false)
		var b []byte
		s, streamed := tok.Stream(), ""
		for _, id := range ids {
			if tok.IsSpecial(id) {
				t.Fatalf("%q has the special token %d", text, id)
			}
			b = append(b, tok.Token(id)...)
			streamed += s.Push(id)
		}
		if string(b) != text {
			t.Fatalf("%q comes back as %q", text, b)
		}
		decoded := tok.Decode(ids, false)
		if utf8.ValidString(text) && decoded != text {
			t.Fatalf("%q is decoded to %q", text, decoded)
		}
		if streamed+s.Flush() != decoded {
			t.Fatalf("%q is streamed as %q", text, streamed)
		}
		tok.Encode(text, true) // must not panic
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := recallTokenizer(b)
	prose, err := os.ReadFile("../../tools/recall/README.md")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"prose": strings.Repeat(string(prose), 8), "one-piece": strings.Repeat("a", 32<<10)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var ids []int32
			for b.Loop() {
				ids = tok.AppendEncode(ids[:0], text, true)
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
