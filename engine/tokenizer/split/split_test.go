package split

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	of := map[string]Func{"gpt-2": GPT2, "smollm": SmolLM, "llama-bpe": Llama3, "qwen2": Qwen2, "deepseek-v3": DeepSeek3}
	for _, r := range readRows[row](t, "testdata/splits.jsonl") {
		if got := pieces(of[r.Pre], r.Text); !slices.Equal(got, r.Bytes) {
			t.Errorf("%s splits %q into %v, want %v", r.Pre, r.Text, got, r.Bytes)
		}
		seen[r.Pre]++
	}
	for name := range of {
		if seen[name] < 300 {
			t.Errorf("%s was compared on %d texts", name, seen[name])
		}
	}
}

// stageOf makes a Stage of expressions that does not know what is written out.
func stageOf(t testing.TB, exprs ...string) Stage {
	var all []Stage
	for _, e := range exprs {
		find, err := compile(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, func(s string, l *Limit, yield func(string)) { cut(s, find(s, l, false), Isolated, yield) })
	}
	return Sequence(all...)
}

// TestSplittersMatchTheirExpressions compares with the engine for expressions that are not known,
// on texts that rapid makes up.
func TestSplittersMatchTheirExpressions(t *testing.T) {
	ascii := func(expr string) string {
		return strings.Replace(expr, `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`, 1)
	}
	for name, exprs := range map[string][]string{
		"gpt-2": {exprGPT2}, "smollm": {`\p{N}`, exprGPT2}, "llama-bpe": {ascii(exprLlama3)}, "qwen2": {ascii(exprQwen2)}, "deepseek-v3": {exprDeepSeek1, exprDeepSeek2, exprDeepSeek3},
	} {
		stage := stageOf(t, exprs...)
		rapid.Check(t, func(t *rapid.T) {
			s := texts().Draw(t, "text")
			want := []int{}
			if s != "" {
				for _, piece := range stagePieces(stage, s) {
					want = append(want, len(piece))
				}
			}
			if got := pieces(pres[name].Func, s); !slices.Equal(got, want) {
				t.Fatalf("%s splits %q into %v, want %v", name, s, got, want)
			}
		})
	}
}

// TestKnownExpressionsAreWrittenOut: tokenizer.json has them as text, and DeepSeek's as a row.
func TestKnownExpressionsAreWrittenOut(t *testing.T) {
	for _, exprs := range [][]string{{exprGPT2}, {exprLlama3}, {exprQwen2}, {exprDeepSeek1, exprDeepSeek2, exprDeepSeek3}} {
		if f, ok := Fuse(exprs); !ok || f == nil {
			t.Errorf("%q is not known", exprs)
		}
	}
	for _, exprs := range [][]string{nil, {`a`}, {exprDeepSeek2}, {exprDeepSeek1, exprDeepSeek2}} {
		if _, ok := Fuse(exprs); ok {
			t.Errorf("%q is known", exprs)
		}
	}
	for _, name := range Names() {
		p, ok := ByName(name)
		if !ok || p.Func == nil {
			t.Errorf("%s: %+v, %v", name, p, ok)
		}
	}
	if _, ok := ByName("none"); ok {
		t.Error("a name that there is not is known")
	}
}

func stagePieces(s Stage, text string) []string {
	var all []string
	l := NewLimit(len(text))
	if s(text, &l, func(piece string) { all = append(all, piece) }); l.Err != nil {
		panic(l.Err)
	}
	return all
}

func TestBehaviors(t *testing.T) {
	const text = "-a--b-"
	for _, r := range []struct {
		b      Behavior
		invert bool
		want   string
	}{
		{Isolated, false, "- a - - b -"}, {Removed, false, "a b"}, {MergedWithPrevious, false, "- a- - b-"}, {MergedWithNext, false, "-a - -b -"}, {Contiguous, false, "- a -- b -"},
		{Isolated, true, "- a - - b -"}, {Removed, true, "- - - -"}, {MergedWithPrevious, true, "-a - -b -"}, {MergedWithNext, true, "- a- - b-"}, {Contiguous, true, "- a -- b -"},
	} {
		expr, err := Expression("-", r.b, r.invert)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Stage{Literal("-", r.b, r.invert), expr} {
			if got := strings.Join(stagePieces(s, text), " "); got != r.want {
				t.Errorf("%d, inverted %v: %q, want %q", r.b, r.invert, got, r.want)
			}
		}
	}
	if got := stagePieces(Literal("", Removed, false), "ab"); !slices.Equal(got, []string{"ab"}) {
		t.Errorf("at nothing: %q", got)
	}
}

// TestExpressionsKeepAllBytes, also those that are no part of a character, and matches of nothing
// cut nothing.
func TestExpressionsKeepAllBytes(t *testing.T) {
	for _, expr := range []string{`a*`, `x*?`, `\p{L}+`, `[^a]`, `(?=b)`, `$`} {
		s := stageOf(t, expr)
		rapid.Check(t, func(t *rapid.T) {
			text := string(rapid.SliceOfN(rapid.SampledFrom([]byte("ab \xc3\xa9\xff\x80")), 1, 30).Draw(t, "text"))
			if got := stagePieces(s, text); strings.Join(got, "") != text || slices.Contains(got, "") {
				t.Fatalf("%s cuts %q into %q", expr, text, got)
			}
		})
	}
}

// TestAnExpressionThatGoesBackAndForthIsStopped: it fails the limit, instead of taking longer than
// the universe is old; and it is one limit for all pieces of a text, and all steps (S3).
func TestAnExpressionThatGoesBackAndForthIsStopped(t *testing.T) {
	slow, err := Expression(`(x+x+)+y`, Isolated, false)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := Replace(`(x+x+)+y`, "")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLimit(1)
	slow("xxy"+strings.Repeat("x", 1000), &l, func(string) {})
	if l.Err != ErrSlow {
		t.Fatal(l.Err)
	}
	// Where one piece has failed, the others cost nothing: these would take hours.
	pieces := 0
	Sequence(Whitespace(), slow)(strings.Repeat(strings.Repeat("x", 1000)+" ", 10_000), &l, func(string) { pieces++ })
	if pieces > 0 || replace(strings.Repeat("x", 1000), &l) != "" {
		t.Errorf("%d pieces behind the limit", pieces)
	}
	spent := Limit{end: time.Now().Add(-time.Hour)}
	if Sequence(Whitespace(), slow)("a b", &spent, func(string) { pieces++ }); pieces > 0 || spent.Err != ErrSlow {
		t.Errorf("%d pieces in no time: %v", pieces, spent.Err)
	}
}

func TestReplace(t *testing.T) {
	f, err := Replace(`b+`, "$0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLimit(0)
	if got := f("abbac\xffb", &l); got != "a$0ac\xff$0" {
		t.Errorf("%q", got)
	}
	if got := f("", &l); got != "" {
		t.Errorf("of nothing %q", got)
	}
	if _, err := Replace("(", ""); err == nil {
		t.Error("an expression that cannot be read is taken")
	}
}

// texts makes up texts of the characters that splitters tell apart.
func texts() *rapid.Generator[string] {
	parts := []string{" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "a", "B", "é", "你", "か", "ー", "\u0301", "\u200d", "\x00", "1", "23", "٣", "½", "'", "'s", "'LL", "'re", ".", "!", "—", "😀", "<", "|"}
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
	for name, s := range pres {
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
	for name, s := range pres {
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
