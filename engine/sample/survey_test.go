package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"baton/engine/kernel"
)

// TestSurveyedLogitsAreKeptAsOthers: with a survey, the same tokens are kept as without: to the token
// for top_k and min_p; for top_p, whose total is of single precision there, to one token.
func TestSurveyedLogitsAreKeptAsOthers(t *testing.T) {
	if kernel.Active() == kernel.Generic {
		t.Skip("there is no survey without kernels")
	}
	var s, plain Scratch
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(surveyMin, surveyMin+2000).Draw(t, "n")
		spread := rapid.SampledFrom([]float64{0.1, 1, 4, 30}).Draw(t, "spread")
		round := rapid.Bool().Draw(t, "ties")
		logits := make([]float32, n)
		for i := range logits {
			x := r.NormFloat64() * spread
			if round {
				x = math.Round(x)
			}
			logits[i] = float32(x)
		}
		for range rapid.IntRange(0, 2*n).Draw(t, "minus") / 2 * 2 {
			logits[r.IntN(n)] = never
		}
		logits[r.IntN(n)] = float32(spread)
		p := params(func(p *Params) {
			p.Temperature = rapid.SampledFrom([]float64{0.05, 0.5, 1, 2}).Draw(t, "temperature")
			p.TopK = rapid.SampledFrom([]int{-1, 1, 5, 64, 1000, 100000}).Draw(t, "top_k")
			p.TopP = rapid.SampledFrom([]float64{1, 0.95, 0.51, 0.01, 0.999999}).Draw(t, "top_p")
			p.MinP = rapid.SampledFrom([]float64{0, 0.013, 0.2, 1e-9, 1}).Draw(t, "min_p")
			p.Logprobs = rapid.IntRange(0, 20).Draw(t, "logprobs")
			if p.TopK <= 0 && p.TopP == 1 { // then nothing is kept by rank
				p.TopP = 0.9
			}
		})
		if !s.survey(logits) {
			t.Fatal("no survey")
		}
		if a, b := s.bestToken(logits), argMax(logits); a != b {
			t.Fatalf("the best is %d, without a survey %d", a, b)
		}
		high := float64(logits[argMax(logits)])
		order := func(k []weighed) (ids []int32) {
			k = slices.Clone(k)
			slices.SortFunc(k, compare)
			for _, x := range k {
				ids = append(ids, x.id)
			}
			slices.Sort(ids)
			return ids
		}
		a, b := order(s.keep(p, logits, high)), order(plain.keep(p, logits, high))
		if !slices.Equal(a, b) {
			extra := len(a) - len(b)
			short, long := a, b
			if extra > 0 {
				short, long = b, a
			}
			for _, id := range short {
				if _, ok := slices.BinarySearch(long, id); !ok {
					t.Fatalf("token %d is kept by one alone", id)
				}
			}
			if p.TopK > 0 || len(long)-len(short) > 1 && p.TopP < 0.99 {
				t.Fatalf("%d are kept, without a survey %d", len(a), len(b))
			}
		}
		var c, d Choice
		c.ID, d.ID = argMax(logits), argMax(logits)
		s.report(&c, logits, float32(high), p.Logprobs)
		plain.report(&d, logits, float32(high), p.Logprobs)
		if math.Abs(float64(c.Logprob-d.Logprob)) > 1e-5 || len(c.Top) != len(d.Top) {
			t.Fatalf("%v and %d others, without a survey %v and %d", c.Logprob, len(c.Top), d.Logprob, len(d.Top))
		}
		for i := range c.Top {
			if c.Top[i].ID != d.Top[i].ID || math.Abs(float64(c.Top[i].Logprob-d.Top[i].Logprob)) > 1e-5 {
				t.Fatalf("alternative %d is %+v, without a survey %+v", i, c.Top[i], d.Top[i])
			}
		}
	})
}

// TestSurveyedDrawsFollowTheProbabilities draws from a vocabulary with a few likely tokens in the
// middle of many that nearly never come.
func TestSurveyedDrawsFollowTheProbabilities(t *testing.T) {
	logits := make([]float32, 3011)
	for i := range logits {
		logits[i] = -14
	}
	logits[3], logits[700], logits[701], logits[3010] = 1, 2, 2, 0.5
	for name, p := range map[string]*Params{
		"plain": params(func(p *Params) {}),
		"cold":  params(func(p *Params) { p.Temperature = 0.4 }),
		"hot":   params(func(p *Params) { p.Temperature = 1.7 }),
		"min_p": params(func(p *Params) { p.MinP = 0.3 }),
		"top_p": params(func(p *Params) { p.TopP = 0.9 }),
		"top_k": params(func(p *Params) { p.TopK = 3 }),
	} {
		const n = 20_000
		var s Scratch
		count := map[int32]int{}
		for i := range n {
			count[Pick(p, logits, i, &s).ID]++
		}
		want := reference(p, logits)
		for id, w := range want {
			if d := math.Abs(float64(count[id]) - n*w); d > 5*math.Sqrt(n*w*(1-w))+1 {
				t.Errorf("%s: token %d was drawn %d times of %d, probability %v", name, id, count[id], n, w)
			}
		}
		for id := range count {
			if want[id] == 0 {
				t.Errorf("%s: token %d was drawn and is dropped", name, id)
			}
		}
	}
}

// TestWhatIsNoNumberIsNotSurveyed: kernels may pass over what stands beside it.
func TestWhatIsNoNumberIsNotSurveyed(t *testing.T) {
	var s Scratch
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		logits := make([]float32, surveyMin+r.IntN(500))
		for i := range logits {
			logits[i] = float32(r.NormFloat64())
		}
		logits[r.IntN(len(logits))] = float32(math.NaN())
		if s.survey(logits) {
			t.Fatal("it is")
		}
		if c := Pick(params(func(p *Params) { p.Temperature = 0 }), logits, 0, &s); c.ID != argMax(logits) {
			t.Fatalf("token %d", c.ID)
		}
	}
}
