package sample

import (
	"errors"
	"testing"

	"baton/engine/grammar"
)

// TestAGrammarOverMoreTokensThanLogits: the mask is as long as the automaton's, whatever the model has.
func TestAGrammarOverMoreTokensThanLogits(t *testing.T) {
	tok := vocabulary(t)
	for _, n := range []int{1, 65, tok.Vocab() - 70, tok.Vocab(), tok.Vocab() + 200} {
		g, err := grammar.Compile(&grammar.Spec{Kind: grammar.KindRegex, Regex: "(?s).*"}, tok, tok.Vocab())
		if err != nil {
			t.Fatal(err)
		}
		p := Default()
		p.Temperature = 0
		s, err := New(Start{Params: &p, Tokenizer: tok, Grammar: g.Start()})
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, n)
		logits[n-1] = 1
		if c := s.Pick(logits, new(Scratch)); int(c.ID) >= min(n, tok.Vocab()) {
			t.Errorf("of %d logits token %d is chosen", n, c.ID)
		}
	}
}

// TestAnEndThatTheGrammarDoesNotAllowIsRefused: as every other token (G2).
func TestAnEndThatTheGrammarDoesNotAllowIsRefused(t *testing.T) {
	tok := vocabulary(t)
	g, err := grammar.Compile(&grammar.Spec{Kind: grammar.KindChoice, Choice: []string{"abc"}}, tok, tok.Vocab())
	if err != nil {
		t.Fatal(err)
	}
	p := Default()
	s, err := New(Start{Params: &p, Tokenizer: tok, Grammar: g.Start()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Push(Choice{ID: tok.EOS()[0]}); ok || s.Finished() {
		t.Error("the end is taken before abc")
	}
}

// TestTokensBeyondTheVocabularyAreRefused: of prompt and output.
func TestTokensBeyondTheVocabularyAreRefused(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.PresencePenalty, p.RepetitionPenalty = 1, 1.5
	for _, id := range []int32{-1, int32(tok.Vocab())} {
		for _, b := range []Start{{Params: &p, Tokenizer: tok, Prompt: []int32{id}}, {Params: &p, Tokenizer: tok, Generated: []int32{id}}} {
			if _, err := New(b); !errors.Is(err, ErrGenerated) {
				t.Errorf("token %d: %v", id, err)
			}
		}
	}
}

func TestTheSmallestRepetitionPenalty(t *testing.T) {
	p := Default()
	for v, want := range map[float64]string{1e-60: "repetition_penalty", 0: "repetition_penalty", RepetitionMin: "", RepetitionMax: ""} {
		p.RepetitionPenalty = v
		if param, _ := p.Validate(100); param != want {
			t.Errorf("%v: %q", v, param)
		}
	}
}
