package split

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"pgregory.net/rapid"
)

func readRows[T any](t testing.TB, path string) (rows []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r T
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func pieces(split Func, s string) []int {
	out := []int{}
	for len(s) > 0 {
		n := split(s)
		out = append(out, n)
		s = s[n:]
	}
	return out
}

// TestSplittersMatchReference compares the pieces of hard texts with those of the reference
// implementation's regular expressions.
func TestSplittersMatchReference(t *testing.T) {
	seen := map[string]int{}
	type row struct {
		Pre, Text string
		Bytes     []int
	}
	for _, r := range readRows[row](t, "testdata/splits.jsonl") {
		if got := pieces(written[r.Pre].Func, r.Text); !slices.Equal(got, r.Bytes) {
			t.Errorf("%s splits %q into %v, want %v", r.Pre, r.Text, got, r.Bytes)
		}
		seen[r.Pre]++
	}
	for _, name := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2"} {
		if seen[name] < 200 {
			t.Errorf("%s was compared on %d texts", name, seen[name])
		}
	}
}

// TestSplittersMatchTheirExpressions compares with a regular-expression engine on texts that
// rapid makes up.
func TestSplittersMatchTheirExpressions(t *testing.T) {
	const (
		gpt2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
		llama3 = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
		qwen2  = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	)
	for name, expr := range map[string]string{"gpt-2": gpt2, "llama-bpe": llama3, "qwen2": qwen2} {
		re := regexp2.MustCompile(expr, regexp2.None)
		rapid.Check(t, func(t *rapid.T) {
			s := texts().Draw(t, "text")
			var want []int
			for m, err := re.FindStringMatch(s); m != nil; m, err = re.FindNextMatch(m) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, len(m.String()))
			}
			if got := pieces(written[name].Func, s); !slices.Equal(got, want) && len(got)+len(want) > 0 {
				t.Fatalf("%s splits %q into %v, want %v", name, s, got, want)
			}
		})
	}
}

// texts makes up texts of the characters that splitters tell apart.
func texts() *rapid.Generator[string] {
	parts := []string{" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "a", "B", "é", "你", "\u0301", "1", "23", "٣", "½", "'", "'s", "'LL", "'re", ".", "!", "—", "😀", "<", "|"}
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20), func(p []string) string {
		s := ""
		for _, x := range p {
			s += x
		}
		return s
	})
}

// TestSplittersTakeAnyBytes: a piece is never empty and never longer than the text, also where
// the text is not valid UTF-8.
func TestSplittersTakeAnyBytes(t *testing.T) {
	for name, s := range written {
		rapid.Check(t, func(t *rapid.T) {
			b := string(rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "bytes"))
			total := 0
			for _, n := range pieces(s.Func, b) {
				if n <= 0 {
					t.Fatalf("%s: a piece of %d bytes", name, n)
				}
				total += n
			}
			if total != len(b) {
				t.Fatalf("%s: pieces of %d bytes for %d", name, total, len(b))
			}
		})
	}
}

// TestPiecesEndBetweenCharacters of valid text.
func TestPiecesEndBetweenCharacters(t *testing.T) {
	for name, s := range written {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.String().Draw(t, "text")
			at := 0
			for _, n := range pieces(s.Func, text) {
				if !utf8.ValidString(text[at : at+n]) {
					t.Fatalf("%s cuts %q at %d", name, text, at+n)
				}
				at += n
			}
		})
	}
}
