package grammar

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// expression writes a random regular expression.
func expression(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "é", "漢", "😀", ".", `\d`, `\w`, `\s`, `\S`, `[^a]`, `[a-f]`, `[^\x00-\x7f]`, `\pL`, `\p{Greek}`, `(?i:k)`, `(?s:.)`, `[[:alpha:]]`, `\x{7ff}`, `[߿-ࠀ]`, `[퟾-]`, `\n`, `^`, `$`, `\z`, ``}
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	x := func() string { return expression(r, depth-1) }
	switch r.IntN(7) {
	case 0:
		return x() + "|" + x()
	case 1:
		return "(?:" + x() + ")*"
	case 2:
		return "(" + x() + ")?"
	case 3:
		return "(?:" + x() + ")+?"
	case 4:
		return "(?:" + x() + "){1,3}"
	}
	return x() + x()
}

// sample writes a random text of what expressions like.
func sample(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(7) {
		b.WriteString([]string{"a", "b", "f", "k", "K", "K", "é", "漢", "😀", " ", "\n", "1", "_", "Ω", "\u07ff", "\u0800", "\ud7ff", "\ue000", "-"}[r.IntN(19)])
	}
	return b.String()
}

func TestExpressionsMatchWhatGoMatches(t *testing.T) { // G2, G3
	matched := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 5))
		text := expression(r, 3)
		oracle, err := regexp.Compile(`^(?:` + text + `)$`)
		if err != nil {
			continue
		}
		n := newNet()
		err = (&Spec{Kind: KindRegex, Regex: text}).build(n)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		m, err := n.settle(allBytes())
		if err != nil {
			continue // nothing fits, as in a^
		}
		for range 30 {
			s := sample(r)
			at := m.begin()
			for i := range len(s) {
				if at = m.step(at, m.class[s[i]]); at == &dead {
					break
				}
			}
			if want := oracle.MatchString(s); at.accept != want {
				t.Fatalf("seed %d: %q on %q: %v, Go says %v", seed, text, s, at.accept, want)
			}
			if at.accept {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Fatalf("only %d texts matched: the test says little", matched)
	}
}

func TestTextsOfExpressionsMatch(t *testing.T) { // G1, G2
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		text := expression(r, 3)
		oracle, err := regexp.Compile(`^(?:` + text + `)$`)
		if err != nil {
			continue
		}
		g, err := compile(&Spec{Kind: KindRegex, Regex: text}, recallVocabulary())
		if err != nil {
			continue
		}
		got := g.textOf(walk(t, g, r, r.IntN(20), nil))
		if !oracle.MatchString(got) || !utf8.ValidString(got) {
			t.Fatalf("seed %d: %q wrote %q", seed, text, got)
		}
	}
}

func TestSequencesMatchWhatGoMatches(t *testing.T) {
	spec := &Spec{Kind: KindSequence, Parts: []Part{
		{Until: "aab"},
		{Regex: `\s*`},
		{Any: [][]Part{{{Text: "<x>"}, {Schema: []byte(`{"enum":[1,true]}`)}, {Text: "</x>"}}, {{Text: "é"}}}, Min: 1, Max: 3},
		{Text: "!", Min: 0, Max: 1},
	}}
	// The first aab ends what is before it: after it none of that part may come.
	oracle := regexp.MustCompile(`(?s)^(.*?aab)\s*(?:<x>(?:1|true)</x>|é){1,3}!?$`)
	g := compiled(t, spec, recallVocabulary())
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		got := g.textOf(walk(t, g, r, r.IntN(20), nil))
		if sub := oracle.FindStringSubmatch(got); sub == nil || strings.Index(got, "aab")+3 != len(sub[1]) {
			t.Fatalf("seed %d: wrote %q", seed, got)
		}
	}
	for text, want := range map[string]bool{
		"aab<x>1</x>": true, "aaabé": true, "aab \n éé<x>true</x>!": true, "xaaxaabé!": true,
		"aab": false, "aa<x>1</x>": false, "aabéééé": false, "aabé!!": false, "aab<x>2</x>": false,
	} {
		if why, got := accepts(g, rand.New(rand.NewPCG(1, 1)), text); got != want {
			t.Errorf("%q: %v (%s)", text, got, why)
		}
	}
}

func TestPatternsMayWriteCharactersAsECMADoes(t *testing.T) {
	g := compiled(t, schemaSpec(`{"type":"string","pattern":"^[\\u00e9-\\u00ea]\\\\u00e9$"}`), recallVocabulary())
	for text, want := range map[string]bool{`"é\\u00e9"`: true, `"ê\\u00e9"`: true, `"éé"`: false, `"é\u00e9"`: false} {
		if why, got := accepts(g, rand.New(rand.NewPCG(1, 1)), text); got != want {
			t.Errorf("%s: %v (%s)", text, got, why)
		}
	}
}

func TestControlTokensStandOnlyWhereASequenceNamesThem(t *testing.T) {
	texts := []string{"", "", "", "", "<", "c", ">", "/", "1", "x", "\xf8", "</c>", "\xf9", "\xfa"}
	v := vocabularyOf(texts, []int32{0})
	v.control = map[string]int32{"<c>": 1, "</c>": 2, "<other>": 3}
	spec := &Spec{Kind: KindSequence, Parts: []Part{
		{Until: "</c>", Special: true}, {Text: "<c>", Special: true}, {Text: "<c>"}, {Text: "<none>", Special: true, Min: 0, Max: 1},
		{Schema: []byte(`{"const":1}`)}}}
	g := compiled(t, spec, v)
	for _, row := range []struct {
		ids  []int32
		want bool
	}{
		{[]int32{9, 2, 1, 4, 5, 6, 8, 0}, true},
		{[]int32{11, 4, 5, 6, 4, 5, 6, 8, 0}, true},
		{[]int32{4, 7, 5, 6, 1, 4, 5, 6, 8, 0}, true},
		{[]int32{3}, false}, {[]int32{1}, false}, {[]int32{10}, false}, {[]int32{-1}, false}, {[]int32{14}, false},
		{[]int32{12}, false}, {[]int32{13}, false}, {[]int32{2, 12}, false}, // bytes that UTF-8 does not have are no marks
		{[]int32{2, 2}, false}, {[]int32{2, 1, 1}, false}, {[]int32{4, 2, 1, 4, 5, 6, 1}, false},
	} {
		s, mask, want := g.Start(), make([]uint64, g.Words()), make([]uint64, g.Words())
		ok := true
		for _, id := range row.ids {
			s.Allowed(mask)
			if naive(s, want); !slices.Equal(mask, want) {
				t.Fatalf("%v: mask %b, token by token %b", row.ids, mask, want)
			}
			ok = ok && s.Push(id)
		}
		if ok != row.want {
			t.Errorf("%v: %v", row.ids, ok)
		}
	}
	for _, bad := range []Part{{Regex: "a", Special: true}, {Special: true}} {
		if msg := (&Spec{Kind: KindSequence, Parts: []Part{bad}}).Validate(); msg == "" {
			t.Errorf("%v passes", bad)
		}
	}
}

// TestCodePointsOfECMAScript: \u00e9 is a character also beside others, in classes and behind a
// backslash that is one; two halves of a pair are the character that they stand for.
func TestCodePointsOfECMAScript(t *testing.T) {
	for pattern, want := range map[string]string{
		`[\u0041\u0042]`:              `[\x{0041}\x{0042}]`,
		`\u0041\u0042\u0043`:          `\x{0041}\x{0042}\x{0043}`,
		`\\u0041`:                     `\\u0041`,
		`\\\u0041`:                    `\\\x{0041}`,
		`\ud83d\ude00`:                `\x{1f600}`,
		`[\ud83d\ude00-\ud83d\ude0f]`: `[\x{1f600}-\x{1f60f}]`,
		`\ud83dx\ude00`:               `\x{d83d}x\x{de00}`,
		`\u00`:                        `\u00`,
		`\u004g`:                      `\u004g`,
		`a\`:                          `a\`,
	} {
		if got := fromECMA(pattern); got != want {
			t.Errorf("%s is read as %s, want %s", pattern, got, want)
		}
	}
	g := compiled(t, schemaSpec(`{"type":"string","pattern":"^[\\u0041\\u0042]\\ud83d\\ude00$"}`), recallVocabulary())
	r := rand.New(rand.NewPCG(1, 17))
	for text, want := range map[string]bool{`"A😀"`: true, `"B😀"`: true, `"C😀"`: false, `"A"`: false} {
		if why, ok := accepts(g, r, text); ok != want {
			t.Errorf("%s: %v %s", text, ok, why)
		}
	}
}
