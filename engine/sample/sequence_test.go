package sample

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

const (
	endID   = 4 // <|end|>
	startID = 0 // <|endoftext|>: also ends a generation
)

func vocabulary(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open("../recall/recall.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// play pushes ids until the sequence finishes and returns all text and the last piece.
func play(s *Sequence, ids []int32) (text string, last Piece, used int) {
	for _, id := range ids {
		last, _ = s.Push(Choice{ID: id})
		text += last.Text
		used++
		if last.Finished {
			break
		}
	}
	return text, last, used
}

// bytesOf returns text as tokens of one byte each, so that every border is one between tokens.
func bytesOf(t testing.TB, tok *tokenizer.Tokenizer, text string) []int32 {
	t.Helper()
	var ids []int32
	for i := 0; i < len(text); i++ {
		one := tok.Encode(text[i:i+1], false)
		if len(one) != 1 {
			t.Fatalf("byte %#x is %d tokens", text[i], len(one))
		}
		ids = append(ids, one...)
	}
	return ids
}

func TestSequencesEndForTheRightReason(t *testing.T) {
	tok := vocabulary(t)
	code := tok.Encode(" code", false)[0]
	rows := []struct {
		name            string
		change          func(*Params)
		text            string
		tail            []int32
		want            string
		reason, matched string
		left            int // tokens that are not used
	}{
		{"end token", func(p *Params) {}, "Hello", []int32{endID, code}, "Hello", "stop", "", 1},
		{"other end token", func(p *Params) {}, "Hello", []int32{startID, code}, "Hello", "stop", "", 1},
		{"end token ignored", func(p *Params) { p.IgnoreEOS = true; p.MaxTokens = 8 }, "Hello", []int32{endID, code, code}, "Hello code code", "length", "", 0},
		{"end token ignored, but a stop token", func(p *Params) { p.IgnoreEOS = true; p.StopIDs = []int32{endID} }, "Hello", []int32{endID, code}, "Hello", "stop", "<|end|>", 1},
		{"stop token", func(p *Params) { p.StopIDs = []int32{9, code} }, "Hello", []int32{code, code}, "Hello", "stop", " code", 1},
		{"length", func(p *Params) { p.MaxTokens = 3 }, "Hello", nil, "Hel", "length", "", 2},
		{"stop string", func(p *Params) { p.Stop = []string{"zzz", "lo w"} }, "Hello world", nil, "Hel", "stop", "lo w", 4},
		{"stop string at the start", func(p *Params) { p.Stop = []string{"Hell"} }, "Hello", nil, "", "stop", "Hell", 1},
		{"stop string of a part of a token", func(p *Params) { p.Stop = []string{"od"} }, "a", []int32{code, code}, "a c", "stop", "od", 1},
		{"stop string on the last token", func(p *Params) { p.MaxTokens = 5; p.Stop = []string{"lo"} }, "Hello", nil, "Hel", "stop", "lo", 0},
		{"held text comes out at the end", func(p *Params) { p.Stop = []string{"lox"} }, "Hello", []int32{endID}, "Hello", "stop", "", 0},
		{"held text comes out at the length", func(p *Params) { p.MaxTokens = 5; p.Stop = []string{"lox"} }, "Hello", nil, "Hello", "length", "", 0},
		{"the match that ends first", func(p *Params) { p.Stop = []string{"abcd", "bc"} }, "xabcd", nil, "xa", "stop", "bc", 1},
		{"of two that end together the longer", func(p *Params) { p.Stop = []string{"bc", "abc"} }, "xabcd", nil, "x", "stop", "abc", 1},
		{"half a character at the end", func(p *Params) { p.MaxTokens = 2 }, "é!", nil, "é", "length", "", 1},
		{"a part of a character at the length", func(p *Params) { p.MaxTokens = 1 }, "é!", nil, "\ufffd", "length", "", 2},
		{"the stop string stays, if it is wanted", func(p *Params) { p.Stop, p.IncludeStop = []string{"lo w"}, true }, "Hello world", nil, "Hello w", "stop", "lo w", 4},
		{"the stop token's text stays, if it is wanted", func(p *Params) { p.StopIDs, p.IncludeStop = []int32{code}, true }, "Hello", []int32{code, code}, "Hello code", "stop", " code", 1},
		{"an end token has no text", func(p *Params) { p.IncludeStop = true }, "Hello", []int32{endID}, "Hello", "stop", "", 0},
		{"special tokens have text, if it is wanted", func(p *Params) { p.IgnoreEOS, p.KeepSpecial, p.MaxTokens = true, true, 7 }, "Hello", []int32{endID, code}, "Hello<|end|> code", "length", "", 0},
		{"an end token's text stays, if both are wanted", func(p *Params) { p.IncludeStop, p.KeepSpecial = true, true }, "Hello", []int32{endID}, "Hello<|end|>", "stop", "", 0},
		{"no stop string of the first min_tokens", func(p *Params) { p.Stop, p.MinTokens = []string{"l"}, 3 }, "Hello", nil, "Hel", "stop", "l", 1},
		{"not even of the last of them", func(p *Params) { p.Stop, p.MinTokens = []string{"l"}, 4 }, "Hello", []int32{endID}, "Hello", "stop", "", 0},
		{"a stop string that begins there", func(p *Params) { p.Stop, p.MinTokens = []string{"llo"}, 4 }, "Hello!", nil, "He", "stop", "llo", 1},
		{"one that is inside of what may begin another", func(p *Params) { p.Stop, p.MinTokens = []string{"el", "ello!"}, 3 }, "Hellox!", []int32{endID}, "Hellox!", "stop", "", 0},
		{"again, behind one that did not count", func(p *Params) { p.Stop, p.MinTokens = []string{"aa"}, 2 }, "aaab", nil, "a", "stop", "aa", 1},
		{"min_tokens to the end", func(p *Params) { p.Stop, p.MinTokens, p.MaxTokens = []string{"lo"}, 5, 5 }, "Hello", nil, "Hello", "length", "", 0},
		{"a stop string of more bytes than characters", func(p *Params) { p.Stop = []string{"é!"} }, "aé!", nil, "a", "stop", "é!", 0},
	}
	for _, r := range rows {
		p := Default()
		p.MaxTokens = 100
		r.change(&p)
		ids := append(bytesOf(t, tok, r.text), r.tail...)
		s := NewSequence(p, tok)
		text, last, used := play(s, ids)
		if text != r.want || last.Reason != r.reason || last.Matched != r.matched || len(ids)-used != r.left || !last.Finished || !s.Finished() || s.Len() != used {
			t.Errorf("%s: %q, %q %q, %d tokens left; want %q, %q %q, %d", r.name, text, last.Reason, last.Matched, len(ids)-used, r.want, r.reason, r.matched, r.left)
		}
	}
}

// TestNoStopStringComesOut holds P3 and that the outcome depends on the text alone: one byte at
// a time and cut at random give the same.
func TestNoStopStringComesOut(t *testing.T) {
	tok := vocabulary(t)
	alphabet := rapid.SampledFrom([]string{"a", "b", "ab", "é", " ", "the", "\n"})
	word := func(from, to int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(alphabet, from, to), func(p []string) string { return strings.Join(p, "") })
	}
	rapid.Check(t, func(t *rapid.T) {
		text := word(0, 20).Draw(t, "text")
		p := Default()
		p.MaxTokens = 1000
		p.Stop = rapid.SliceOfN(word(1, 4), 0, 3).Draw(t, "stop")
		var single, cut []int32
		for i := 0; i < len(text); i++ {
			single = append(single, tok.Encode(text[i:i+1], false)...)
		}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			cut = append(cut, tok.Encode(rest[:n], false)...)
			rest = rest[n:]
		}
		a, lastA, _ := play(NewSequence(p, tok), append(single, endID))
		b, lastB, _ := play(NewSequence(p, tok), append(cut, endID))
		if a != b || lastA.Matched != lastB.Matched {
			t.Fatalf("%q and %q", a, b)
		}
		for _, w := range p.Stop {
			if strings.Contains(a, w) {
				t.Fatalf("%q came out with the stop string %q", a, w)
			}
		}
		if lastA.Matched == "" && a != text || lastA.Matched != "" && !strings.HasPrefix(text, a+lastA.Matched) {
			t.Fatalf("%q became %q, stopped by %q", text, a, lastA.Matched)
		}
	})
}

// TestTextIsNotHeldWithoutNeed: a client sees what cannot become a stop string at once.
func TestTextIsNotHeldWithoutNeed(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.MaxTokens, p.Stop = 100, []string{"END."}
	s := NewSequence(p, tok)
	want := []string{"a", "", "", "ENx", ""}
	for i, id := range bytesOf(t, tok, "aENxE") {
		if got, _ := s.Push(Choice{ID: id}); got.Text != want[i] {
			t.Errorf("piece %d is %q, want %q", i, got.Text, want[i])
		}
	}
	if f := s.Flush(); f.Text != "E" || !f.Finished || f.Reason != "" {
		t.Errorf("Flush gives %+v", f)
	}
	if f := s.Flush(); f.Text != "" || f.Finished {
		t.Errorf("a second Flush gives %+v", f)
	}
}

func TestPiecesCarryIDsAndLogprobs(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.Logprobs = 1
	s := NewSequence(p, tok)
	top := []TopLogprob{{ID: 270, Logprob: -0.5}}
	first, _ := s.Push(Choice{ID: 270, Logprob: -0.5, Top: top})
	top[0] = TopLogprob{ID: 1, Logprob: -9} // the Scratch is used again
	second, _ := s.Push(Choice{ID: endID, Logprob: -0.1, Top: top})
	if !slices.Equal(first.IDs, []int32{270}) || !slices.Equal(second.IDs, []int32{endID}) {
		t.Errorf("ids %v, %v", first.IDs, second.IDs)
	}
	l := first.Logprobs
	if len(l) != 1 || l[0].ID != 270 || string(l[0].Bytes) != tok.Text(270) || l[0].Logprob != -0.5 || len(l[0].Top) != 1 || l[0].Top[0].ID != 270 || string(l[0].Top[0].Bytes) != tok.Text(270) {
		t.Errorf("log-probabilities %+v", l)
	}
	if cap(first.IDs) != 1 {
		t.Error("the ids of a piece can be appended over")
	}
}

func TestNothingFollowsTheEnd(t *testing.T) { // P4
	tok := vocabulary(t)
	s := NewSequence(Default(), tok)
	s.Push(Choice{ID: endID})
	defer func() {
		if recover() == nil {
			t.Error("a token after the end is taken")
		}
	}()
	s.Push(Choice{ID: 300})
}

func TestPushOfWholeTokensAllocatesNothing(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.MaxTokens = MaxTokensMax
	s := NewSequence(p, tok)
	id := tok.Encode(" code", false)[0]
	n := testing.AllocsPerRun(100, func() { s.Push(Choice{ID: id}) }) // fewer than idsFirst
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestStopStringsCountBehindMinTokens holds P3 where there are min_tokens, against what it says: of all
// places where a stop string ends behind the text of the first tokens, the first ends the text.
func TestStopStringsCountBehindMinTokens(t *testing.T) {
	tok := vocabulary(t)
	word := func(from, to int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.SampledFrom([]rune("ab")), from, to, -1)
	}
	rapid.Check(t, func(t *rapid.T) {
		text, p := word(1, 16).Draw(t, "text"), Default()
		p.MaxTokens, p.MinTokens = 1000, rapid.IntRange(0, 12).Draw(t, "min")
		p.Stop = rapid.SliceOfN(word(1, 5), 1, 3).Draw(t, "stop")
		p.IncludeStop = rapid.Bool().Draw(t, "include")
		want, matched := text, ""
		for end := p.MinTokens + 1; end <= len(text) && matched == ""; end++ {
			for _, w := range p.Stop {
				if strings.HasSuffix(text[:end], w) && len(w) > len(matched) {
					if matched, want = w, text[:end-len(w)]; p.IncludeStop {
						want = text[:end]
					}
				}
			}
		}
		var ids []int32
		for i := range len(text) {
			ids = append(ids, tok.Encode(text[i:i+1], false)...)
		}
		got, last, _ := play(NewSequence(p, tok), append(ids, endID))
		if got != want || last.Matched != matched {
			t.Fatalf("%q of %q, %q; want %q, %q", got, text, last.Matched, want, matched)
		}
	})
}
