package tokenizer_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"baton/engine/tokenizer"
	"baton/proof/realmodel"
)

// smollm2 opens the tokenizer of a real model.
func smollm2(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.FromGGUF(realmodel.SmolLM2(t))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func lines(t testing.TB, path string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	n := 0
	for ; sc.Scan(); n++ {
		each(sc.Bytes())
	}
	if n == 0 {
		t.Fatalf("%s is empty", path)
	}
}

func TestSmolLM2MatchesLlamaCpp(t *testing.T) {
	tok := smollm2(t)
	lines(t, "testdata/golden.jsonl", func(line []byte) {
		var r struct {
			Name, Text   string
			ParseSpecial bool    `json:"parse_special"`
			PromptIDs    []int32 `json:"prompt_ids"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(r.Text, r.ParseSpecial); !slices.Equal(got, r.PromptIDs) {
			t.Errorf("%s: %v, want %v", r.Name, got, r.PromptIDs)
		}
		if got := tok.Decode(r.PromptIDs, false); got != r.Text {
			t.Errorf("%s comes back as %q", r.Name, got)
		}
	})
	if got := tok.EOS(); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("end tokens %v", got)
	}
	if tok.AddBOS() || tok.BOS() != 1 || tok.Vocab() != 49152 {
		t.Errorf("BOS %d, %v; %d tokens", tok.BOS(), tok.AddBOS(), tok.Vocab())
	}
}

func TestSmolLM2MatchesReference(t *testing.T) {
	tok := smollm2(t)
	lines(t, "testdata/smollm2.jsonl", func(line []byte) {
		var r struct {
			Text  string
			Plain []int32
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(r.Text, false); !slices.Equal(got, r.Plain) {
			t.Errorf("%.80q is %v, want %v", r.Text, got, r.Plain)
		}
	})
}

// TestManyMayEncodeAtOnce: what a tokenizer learns on the way is shared safely (for -race).
func TestManyMayEncodeAtOnce(t *testing.T) {
	tok := smollm2(t)
	text := strings.Repeat("The quick brown fox jumps over 13 lazy dogs. ", 50)
	want := tok.Encode(text, true)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if !slices.Equal(tok.Encode(text, true), want) {
				t.Error("another result")
			}
		})
	}
	all.Wait()
}

func BenchmarkSmolLM2(b *testing.B) {
	tok := smollm2(b)
	prose, err := os.ReadFile("../../tools/recall/README.md")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(prose), 8)
	b.SetBytes(int64(len(text)))
	var ids []int32
	for b.Loop() {
		ids = tok.AppendEncode(ids[:0], text, true)
	}
	b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkFromGGUF(b *testing.B) {
	f := realmodel.SmolLM2(b)
	for b.Loop() {
		if _, err := tokenizer.FromGGUF(f); err != nil {
			b.Fatal(err)
		}
	}
}
