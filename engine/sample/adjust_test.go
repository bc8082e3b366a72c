package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// digits is an automaton over some ids: it allows each of them but the one that came last, and is
// done after so many.
type digits struct {
	ids  []int32
	last int32
	left int
}

func (d *digits) Allowed(mask []uint64) {
	for _, id := range d.ids {
		if id != d.last {
			mask[id>>6] |= 1 << (id & 63)
		}
	}
}

func (d *digits) Words() int { return 1 }

func (d *digits) Push(id int32) bool {
	if id == endID {
		return true
	}
	if id == d.last || !slices.Contains(d.ids, id) || d.left == 0 {
		return false
	}
	d.last, d.left = id, d.left-1
	return true
}

func (d *digits) Done() bool { return d.left == 0 }

// changed changes logits by the words of the parameters alone, token by token.
func changed(p *Params, logits []float32, prompt, output []int32, allowed func(int32) bool, eos []int32) []float32 {
	out := slices.Clone(logits)
	count := map[int32]int{}
	for _, id := range output {
		count[id]++
	}
	for i := range out {
		id, x := int32(i), out[i]
		for _, b := range p.LogitBias {
			if b.ID == id {
				x += float32(b.Add)
			}
		}
		banned := len(p.AllowedIDs) > 0 && !slices.Contains(p.AllowedIDs, id) || !allowed(id)
		for _, w := range p.Bad {
			n := len(w) - 1
			banned = banned || w[n] == id && len(output) >= n && slices.Equal(output[len(output)-n:], w[:n])
		}
		if len(output) < p.MinTokens && (slices.Contains(eos, id) || slices.Contains(p.StopIDs, id)) {
			banned = true
		}
		if banned {
			x = float32(math.Inf(-1))
		}
		if slices.Contains(prompt, id) || count[id] > 0 {
			if x > 0 {
				x /= float32(p.RepetitionPenalty)
			} else {
				x *= float32(p.RepetitionPenalty)
			}
		}
		if n := count[id]; n > 0 {
			x -= float32(p.PresencePenalty) + float32(float32(p.FrequencyPenalty)*float32(n))
		}
		out[i] = x
	}
	return out
}

// TestLogitsAreChangedAsTheParametersSay compares a sequence with the reference at every token of
// random outputs, with logits that one request has and another has not.
func TestLogitsAreChangedAsTheParametersSay(t *testing.T) {
	tok := vocabulary(t)
	const few = 12 // ids are drawn among few, so that they repeat
	id := rapid.Int32Range(0, few-1)
	ids := rapid.SliceOfN(id, 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		p := Default()
		p.MaxTokens, p.IgnoreEOS = 100, true
		p.RepetitionPenalty = rapid.SampledFrom([]float64{1, 0.5, 1.3}).Draw(t, "repetition")
		p.PresencePenalty = rapid.SampledFrom([]float64{0, 0.5, -2}).Draw(t, "presence")
		p.FrequencyPenalty = rapid.SampledFrom([]float64{0, 0.25, -0.5}).Draw(t, "frequency")
		p.MinTokens = rapid.IntRange(0, 5).Draw(t, "min")
		allow := ids.Draw(t, "allowed")
		slices.Sort(allow)
		p.AllowedIDs = slices.Compact(allow)
		bias := ids.Draw(t, "bias")
		slices.Sort(bias)
		for i, id := range slices.Compact(bias) {
			p.LogitBias = append(p.LogitBias, Bias{id, float64(i) - 1.5})
		}
		for range rapid.IntRange(0, 3).Draw(t, "bad") {
			p.Bad = append(p.Bad, rapid.SliceOfN(id, 1, 3).Draw(t, "word"))
		}
		prompt, output := ids.Draw(t, "prompt"), rapid.SliceOfN(id, 0, 8).Draw(t, "output")
		var grammar *digits
		allowed := func(int32) bool { return true }
		start := Start{Params: &p, Tokenizer: tok, Prompt: prompt}
		if rapid.Bool().Draw(t, "grammar") {
			grammar = &digits{ids: []int32{1, 3, 5, 7, 300}, last: -1, left: 100}
			start.Grammar = grammar
			output = nil
			for range rapid.IntRange(0, 6).Draw(t, "digits") {
				k := int32(1)
				if len(output) > 0 {
					k = (output[len(output)-1] + 2) % 8
				}
				output = append(output, k)
			}
			allowed = func(id int32) bool { return id != grammar.last && slices.Contains(grammar.ids, id) }
		}
		if param, m := p.Validate(tok.Vocab()); param != "" {
			t.Fatal(m)
		}
		s, err := New(start)
		if err != nil {
			t.Fatal(err)
		}
		var scratch Scratch
		for i := 0; ; i++ {
			logits := noise(tok.Vocab(), uint64(i))
			want := changed(&p, logits, prompt, output[:i], allowed, tok.EOS())
			got := s.adjust(logits, &scratch)
			for id := range want {
				if got[id] != want[id] {
					t.Fatalf("logit %d is %v, want %v (it was %v)", id, got[id], want[id], logits[id])
				}
			}
			if s.plain() && !slices.Equal(got, logits) {
				t.Fatal("what is called plain is not")
			}
			best := argMax(want)
			c := s.Pick(logits, &scratch)
			if dead := math.IsInf(float64(want[best]), -1); dead != (c.ID == NoToken) {
				t.Fatalf("the choice is %d, where the best allowed logit is %v", c.ID, want[best])
			}
			if i == len(output) {
				return
			}
			if _, ok := s.Push(Choice{ID: output[i]}); !ok {
				t.Fatalf("%d is refused", output[i])
			}
		}
	})
}

func noise(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	l := make([]float32, n)
	for i := range l {
		l[i] = float32(r.NormFloat64()) * 4
	}
	return l
}

// TestGrammarsEndTheOutput: an end token ends it even if it is to be ignored, a grammar that is done
// ends it without one, and what a grammar does not allow is not added.
func TestGrammarsEndTheOutput(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.MaxTokens, p.IgnoreEOS, p.KeepSpecial = 100, true, true
	start := func(left int) *Sequence {
		s, err := New(Start{Params: &p, Tokenizer: tok, Grammar: &digits{ids: []int32{7, 8}, last: -1, left: left}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start(2)
	if _, ok := s.Push(Choice{ID: 9}); ok || s.Len() != 0 || s.Finished() {
		t.Error("a token was taken that the grammar does not allow")
	}
	if _, ok := s.Push(Choice{ID: NoToken}); ok {
		t.Error("no token was taken for one")
	}
	if a, ok := s.Push(Choice{ID: 7}); !ok || a.Finished {
		t.Errorf("the first gives %+v", a)
	}
	if b, ok := s.Push(Choice{ID: 8}); !ok || !b.Finished || b.Reason != ReasonStop {
		t.Errorf("the last gives %+v", b)
	}
	s = start(9)
	if e, ok := s.Push(Choice{ID: endID}); !ok || !e.Finished || e.Reason != ReasonStop || e.Text != "" {
		t.Errorf("the end gives %+v", e)
	}
}

// TestContinuedSequencesGoOn holds P6: cut anywhere, with everything that looks back, the rest is
// the same, text that was held back included.
func TestContinuedSequencesGoOn(t *testing.T) {
	tok := vocabulary(t)
	prompt := tok.Encode("the code of alpha is", false)
	for name, change := range map[string]func(*Params){
		"seeded": func(p *Params) { p.Seed = 7 },
		"penalties": func(p *Params) {
			p.Seed, p.RepetitionPenalty, p.PresencePenalty, p.FrequencyPenalty = 3, 1.2, 0.5, 0.25
		},
		"stop":       func(p *Params) { p.Seed, p.Stop = 11, []string{"never this", "e", "a b"} },
		"min tokens": func(p *Params) { p.Seed, p.MinTokens, p.Stop = 5, 9, []string{"a"} },
		"bad words":  func(p *Params) { p.Temperature, p.Bad = 0, [][]int32{{300, 301}, {5}} },
		"grammar":    func(p *Params) { p.Seed = 21 },
		"logprobs":   func(p *Params) { p.Seed, p.Logprobs = 4, 2 },
	} {
		p := Default()
		p.MaxTokens = 24
		change(&p)
		start := func(generated []int32) *Sequence {
			b := Start{Params: &p, Tokenizer: tok, Prompt: prompt, Generated: generated}
			if name == "grammar" {
				b.Grammar = &digits{ids: []int32{40, 41, 300, 301, 302}, last: -1, left: 20}
			}
			s, err := New(b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return s
		}
		var scratch Scratch
		finish := func(s *Sequence) (pieces []Piece) {
			for !s.Finished() {
				p, ok := s.Push(s.Pick(noise(tok.Vocab(), uint64(s.Len())), &scratch))
				if !ok {
					t.Fatalf("%s: a choice is refused", name)
				}
				pieces = append(pieces, p)
			}
			return pieces
		}
		whole := finish(start(nil))
		var ids []int32
		for cut := range whole {
			rest := finish(start(ids))
			if got, want := fmt.Sprintf("%+v", rest), fmt.Sprintf("%+v", whole[cut:]); got != want {
				t.Fatalf("%s: cut at %d it goes on as\n%s, want\n%s", name, cut, got, want)
			}
			ids = append(ids, whole[cut].IDs...)
		}
		if _, err := New(Start{Params: &p, Tokenizer: tok, Prompt: prompt, Generated: ids, Grammar: start(nil).grammar}); err == nil {
			t.Errorf("%s: a finished output is continued", name)
		}
	}
	p := Default()
	if _, err := New(Start{Params: &p, Tokenizer: tok, Generated: []int32{9}, Grammar: &digits{ids: []int32{7}, last: -1, left: 3}}); err == nil {
		t.Error("an output is continued that its grammar does not allow")
	}
}

// TestAdjustedPickAllocatesNothing: also with everything that changes logits, and a long prompt.
func TestAdjustedPickAllocatesNothing(t *testing.T) {
	s, logits, scratch := busy(t)
	if n := testing.AllocsPerRun(100, func() { s.Pick(logits, scratch) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// busy returns a sequence with all that looks back, behind a prompt of all tokens.
func busy(t testing.TB) (*Sequence, []float32, *Scratch) {
	tok := vocabulary(t)
	p := Default()
	p.MaxTokens, p.MinTokens, p.RepetitionPenalty, p.PresencePenalty, p.FrequencyPenalty = 1000, 500, 1.1, 0.5, 0.1
	p.LogitBias, p.Bad, p.TopP = []Bias{{4, 1}, {9, -1}}, [][]int32{{1, 2}, {3}}, 0.9
	prompt := make([]int32, 20000)
	for i := range prompt {
		prompt[i] = int32(i % tok.Vocab())
	}
	s, err := New(Start{Params: &p, Tokenizer: tok, Prompt: prompt, Grammar: &digits{ids: []int32{7, 8, 9, 300}, last: -1, left: 100000}})
	if err != nil {
		t.Fatal(err)
	}
	logits, scratch := noise(tok.Vocab(), 3), new(Scratch)
	for range 30 {
		s.Push(s.Pick(logits, scratch))
	}
	return s, logits, scratch
}

func BenchmarkAdjustedPick(b *testing.B) {
	s, logits, scratch := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Pick(logits, scratch)
	}
}

// TestLogprobsAreThoseBeforeAnythingChangesLogits is P5 of a Sequence: with all that changes logits,
// those of the chosen token and of the best are of what the model said.
func TestLogprobsAreThoseBeforeAnythingChangesLogits(t *testing.T) {
	tok := vocabulary(t)
	logits := noise(tok.Vocab(), 5)
	plain := Default()
	plain.Temperature, plain.Logprobs = 0, 3
	want := Pick(&plain, logits, 0, new(Scratch))
	top := slices.Clone(want.Top)
	for name, change := range map[string]func(*Params){
		"bias":       func(p *Params) { p.LogitBias = []Bias{{want.ID, -50}} },
		"bad words":  func(p *Params) { p.Bad = [][]int32{{want.ID}} },
		"allowed":    func(p *Params) { p.AllowedIDs = []int32{top[2].ID} },
		"repetition": func(p *Params) { p.RepetitionPenalty = 2 },
	} {
		p := plain
		change(&p)
		s, err := New(Start{Params: &p, Tokenizer: tok, Prompt: []int32{want.ID}})
		if err != nil {
			t.Fatal(err)
		}
		c := s.Pick(logits, new(Scratch))
		if !slices.EqualFunc(c.Top, top, func(a, b TopLogprob) bool { return a.ID == b.ID && a.Logprob == b.Logprob }) {
			t.Errorf("%s: the best are %v, want %v", name, c.Top, top)
		}
		if c.ID == want.ID {
			t.Errorf("%s: the best token is chosen all the same: the test shows nothing", name)
		}
		if i := slices.IndexFunc(top, func(x TopLogprob) bool { return x.ID == c.ID }); i >= 0 && c.Logprob != top[i].Logprob {
			t.Errorf("%s: the chosen token has %v, want %v", name, c.Logprob, top[i].Logprob)
		}
	}
}

// TestPenaltiesOfOutputLeaveThePromptAlone: only repetition_penalty looks at the prompt.
func TestPenaltiesOfOutputLeaveThePromptAlone(t *testing.T) {
	tok := vocabulary(t)
	p := Default()
	p.PresencePenalty, p.FrequencyPenalty = 1, 0.5
	s, err := New(Start{Params: &p, Tokenizer: tok, Prompt: []int32{300, 300, 301}})
	if err != nil {
		t.Fatal(err)
	}
	s.Push(Choice{ID: 301})
	s.Push(Choice{ID: 301})
	l := s.adjust(make([]float32, tok.Vocab()), new(Scratch))
	if l[300] != 0 || l[301] != -2 {
		t.Errorf("the prompt's token has %v and the output's %v, want 0 and -2", l[300], l[301])
	}
}

// TestModelsOfFewerTokensThanTheVocabulary: logits may end before the ids that a tokenizer has, the
// ends and a prompt's tokens among them; and where no logit is a number, no token is chosen.
func TestModelsOfFewerTokensThanTheVocabulary(t *testing.T) {
	tok := vocabulary(t)
	last := int32(tok.Vocab() - 1)
	p := Default()
	p.Temperature, p.MinTokens, p.RepetitionPenalty = 0, 2, 1.5
	p.LogitBias, p.StopIDs, p.Bad = []Bias{{last, 5}}, []int32{last}, [][]int32{{last}}
	s, err := New(Start{Params: &p, Tokenizer: tok, Prompt: []int32{last}})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Pick([]float32{1, 3}, new(Scratch)); c.ID != 1 { // the ends lie behind
		t.Errorf("token %d is chosen of two", c.ID)
	}
	p = Default()
	p.LogitBias = []Bias{{1, 5}}
	if s, err = New(Start{Params: &p, Tokenizer: tok}); err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	if c := s.Pick([]float32{nan, nan, nan}, new(Scratch)); c.ID != NoToken {
		t.Errorf("token %d is chosen where no logit is a number", c.ID)
	}
}
