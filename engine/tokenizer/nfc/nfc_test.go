package nfc

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// blocks are those of tools/tokenizer/nfc.py.
var blocks = [][2]rune{{0x41, 0x5a}, {0xc0, 0x17f}, {0x300, 0x36f}, {0x300, 0x36f}, {0x340, 0x345}, {0x591, 0x5c7}, {0x930, 0x95f}, {0x9c7, 0x9df},
	{0xb47, 0xb5d}, {0xdca, 0xdde}, {0xf40, 0xfb9}, {0x1025, 0x102e}, {0x1100, 0x1112}, {0x1161, 0x1175}, {0x11a7, 0x11c2},
	{0x1b05, 0x1b43}, {0x1e00, 0x1eff}, {0x1f00, 0x1fff}, {0x20d0, 0x20f0}, {0x2126, 0x212b}, {0x2adc, 0x2adc}, {0x304b, 0x309a},
	{0xac00, 0xac60}, {0xf900, 0xf910}, {0xfb1d, 0xfb4e}, {0x11099, 0x110ba}, {0x114b9, 0x114be}, {0x1d15e, 0x1d16f}, {0x2f800, 0x2f810}}

// splitmix is the generator of tools/tokenizer/nfc.py.
type splitmix uint64

func (s *splitmix) below(n uint64) uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

func each(text func(r rune) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if utf8.ValidRune(r) && !yield(text(r)) {
				return
			}
		}
	}
}

func random(yield func(string) bool) {
	r := splitmix(1)
	for range 20000 {
		var b strings.Builder
		for range 1 + r.below(12) {
			k := blocks[r.below(uint64(len(blocks)))]
			b.WriteRune(k[0] + rune(r.below(uint64(k[1]-k[0]+1))))
		}
		if !yield(b.String()) {
			return
		}
	}
}

// TestEqualToReference compares every code point alone, behind and between marks, and random texts.
func TestEqualToReference(t *testing.T) {
	texts := map[string]iter.Seq[string]{
		"alone":   each(func(r rune) string { return string(r) }),
		"behind":  each(func(r rune) string { return "a\u0345" + string(r) }),
		"between": each(func(r rune) string { return "e" + string(r) + "\u0323\u0301" }),
		"random":  random,
	}
	f, err := os.Open("testdata/sums.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		name, want, _ := strings.Cut(sc.Text(), " ")
		if testing.Short() && name != "random" {
			continue
		}
		h := sha256.New()
		for s := range texts[name] {
			h.Write([]byte(String(s)))
			h.Write([]byte{0xff})
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if n != len(texts) {
		t.Errorf("%d sums for %d kinds of text", n, len(texts))
	}
}

func TestKnownForms(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"plain":                            "plain",
		"e\u0301":                          "é",
		"e\u0323\u0301":                    "ẹ\u0301",
		"é\u0323":                          "ẹ\u0301",
		"\u212b":                           "Å",
		"\u1112\u1161\u11ab":               "한",
		"\uac00\u11a8":                     "각",
		"x\xff\u0301e\u0301\x80\xcc":       "x\xff\u0301é\x80\xcc",
		"a\x80\u0301":                      "a\x80\u0301",
		"\u0301" + "e" + "\u0301":          "\u0301é",
		"a" + strings.Repeat("\u0316", 40): "a" + strings.Repeat("\u0316", 40), // nothing is put between
	} {
		if got := String(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestManyMarksAreNotQuadratic holds N2: half a million marks in the wrong order, sorted by swaps
// of neighbours, would run into the time limit of the test program.
func TestManyMarksAreNotQuadratic(t *testing.T) {
	n := 1 << 18
	got := String("a" + strings.Repeat("\u0301", n) + strings.Repeat("\u0323", n))
	want := "ạ" + strings.Repeat("\u0323", n-1) + strings.Repeat("\u0301", n)
	if got != want {
		t.Error("the marks are not in order")
	}
}

func FuzzString(f *testing.F) {
	f.Add("e\u0301\u0323\xffé")
	f.Add("\u1112\u1161\u11ab\uac00\u11a8")
	f.Fuzz(func(t *testing.T, s string) {
		once := String(s)
		if twice := String(once); twice != once { // N1
			t.Fatalf("%q becomes %q, then %q", s, once, twice)
		}
		if utf8.ValidString(s) != utf8.ValidString(once) {
			t.Fatalf("%q becomes %q", s, once)
		}
	})
}
