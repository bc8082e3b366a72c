package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// TestPhiloxKnownAnswers are the vectors of the authors' library, Random123 (kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	rows := []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, r := range rows {
		if got := philox(r.counter, r.key); got != r.want {
			t.Errorf("philox(%x, %x) is %x, want %x", r.counter, r.key, got, r.want)
		}
	}
}

// TestUniformNeverChanges pins values: a changed function would change the answers of all seeds,
// and workers of two versions would disagree. They come from another implementation (Python).
func TestUniformNeverChanges(t *testing.T) {
	for _, r := range []struct {
		seed             uint64
		choice, position uint32
		want             float64
	}{
		{0, 0, 0, 0.8805201978886142},
		{42, 1, 7, 0.5702609322085634},
		{18446744073709551615, 4294967295, 4294967295, 0.2618831606351677},
		{4294967296, 0, 1, 0.3868248585612939},
	} {
		if got := Uniform(r.seed, r.choice, r.position); got != r.want {
			t.Errorf("Uniform(%d, %d, %d) is %v, want %v", r.seed, r.choice, r.position, got, r.want)
		}
	}
}

func TestUniformDependsOnEachArgument(t *testing.T) {
	seen := map[float64]bool{}
	n := 0
	for _, seed := range []uint64{0, 1, 1 << 32, math.MaxUint64} {
		for choice := uint32(0); choice < 5; choice++ {
			for position := uint32(0); position < 50; position++ {
				u := Uniform(seed, choice, position)
				if u < 0 || u >= 1 {
					t.Fatalf("%v", u)
				}
				seen[u] = true
				n++
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d values of %d arguments", len(seen), n)
	}
}

// TestUniformIsUniform counts in 64 cells along positions, along seeds, and along choices; the
// 99.9999th percentile of chi-square with 63 degrees of freedom is 134.
func TestUniformIsUniform(t *testing.T) {
	for name, f := range map[string]func(i int) float64{
		"positions": func(i int) float64 { return Uniform(42, 0, uint32(i)) },
		"seeds":     func(i int) float64 { return Uniform(uint64(i), 0, 0) },
		"choices":   func(i int) float64 { return Uniform(42, uint32(i), 7) },
	} {
		const n, cells = 64_000, 64
		var count [cells]int
		for i := range n {
			count[int(f(i)*cells)]++
		}
		chi := 0.0
		for _, c := range count {
			d := float64(c) - n/cells
			chi += d * d / (n / cells)
		}
		if chi > 134 {
			t.Errorf("%s: chi-square %v", name, chi)
		}
	}
}

func params(change func(*Params)) *Params {
	p := Default()
	change(&p)
	return &p
}

func TestGreedyTakesTheLowestOfEqualBest(t *testing.T) { // P1
	p := params(func(p *Params) { p.Temperature = 0 })
	if c := Pick(p, []float32{1, 3, 3, 2}, 0, new(Scratch)); c.ID != 1 {
		t.Errorf("token %d", c.ID)
	}
	p.Temperature = 9e-7
	if c := Pick(p, []float32{1, 3, 3, 2}, 0, new(Scratch)); c.ID != 1 {
		t.Errorf("temperature %v takes token %d", p.Temperature, c.ID)
	}
}

// reference keeps and weighs tokens as the specification says, by sorting everything.
func reference(p *Params, logits []float32) map[int32]float64 {
	type tok struct {
		id int32
		w  float64
	}
	var all []tok
	high := float64(slices.Max(logits))
	for i, x := range logits {
		all = append(all, tok{int32(i), math.Exp((float64(x) - high) / p.Temperature)})
	}
	sort.SliceStable(all, func(a, b int) bool { return logits[all[a].id] > logits[all[b].id] })
	if p.TopK > 0 && p.TopK < len(all) {
		all = all[:p.TopK]
	}
	total := 0.0
	for _, a := range all {
		total += a.w
	}
	sum := 0.0
	for i, a := range all {
		if sum += a.w; sum >= p.TopP*total {
			all = all[:i+1]
			break
		}
	}
	kept, total := map[int32]float64{}, 0
	for _, a := range all {
		if a.w >= p.MinP {
			kept[a.id] = a.w
			total += a.w
		}
	}
	for id := range kept {
		kept[id] /= total
	}
	return kept
}

// TestDrawsFollowTheKeptProbabilities draws at 20,000 positions and compares frequencies with
// the reference: nothing that it drops is ever drawn, and the rest as often as it should be.
func TestDrawsFollowTheKeptProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 400)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	logits[7] = logits[3] // equal ones
	rows := map[string]*Params{
		"plain":       params(func(p *Params) {}),
		"temperature": params(func(p *Params) { p.Temperature = 0.3 }),
		"hot":         params(func(p *Params) { p.Temperature = 2 }),
		"top_k":       params(func(p *Params) { p.TopK = 10 }),
		"top_k 1":     params(func(p *Params) { p.TopK = 1 }),
		"top_p":       params(func(p *Params) { p.TopP = 0.8 }),
		"min_p":       params(func(p *Params) { p.MinP = 0.05 }),
		"min_p 1":     params(func(p *Params) { p.MinP = 1 }),
		"all":         params(func(p *Params) { p.Temperature, p.TopK, p.TopP, p.MinP = 1.5, 50, 0.9, 0.02 }),
		"k and min_p": params(func(p *Params) { p.TopK, p.MinP = 20, 0.1 }),
	}
	for name, p := range rows {
		const n = 20_000
		var s Scratch
		count := map[int32]int{}
		for i := range n {
			count[Pick(p, logits, i, &s).ID]++
		}
		want := reference(p, logits)
		for id, c := range count {
			if want[id] == 0 {
				t.Errorf("%s: token %d was drawn %d times and is dropped", name, id, c)
			}
		}
		for id, w := range want {
			// five standard deviations
			if d := math.Abs(float64(count[id]) - n*w); d > 5*math.Sqrt(n*w*(1-w))+1 {
				t.Errorf("%s: token %d was drawn %d times of %d, probability %v", name, id, count[id], n, w)
			}
		}
	}
}

// TestKeptTokensAreThoseOfTheReference on made-up logits with many ties.
func TestKeptTokensAreThoseOfTheReference(t *testing.T) {
	var s Scratch
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = float32(rapid.IntRange(-6, 6).Draw(t, "logit"))
		}
		p := params(func(p *Params) {
			p.Temperature = rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "temperature")
			p.TopK = rapid.SampledFrom([]int{-1, 0, 1, 5, 64, 1000}).Draw(t, "top_k")
			p.TopP = rapid.SampledFrom([]float64{1, 0.95, 0.51, 0.01}).Draw(t, "top_p")
			p.MinP = rapid.SampledFrom([]float64{0, 0.013, 0.2}).Draw(t, "min_p")
		})
		want := reference(p, logits)
		kept := s.keep(p, logits, float64(slices.Max(logits)))
		if len(kept) != len(want) {
			t.Fatalf("%d kept, want %d", len(kept), len(want))
		}
		for _, k := range kept {
			if _, ok := want[k.id]; !ok {
				t.Fatalf("token %d is kept", k.id)
			}
		}
	})
}

// TestPickIsAFunctionOfItsArguments: a Scratch that was used before changes nothing (P1).
func TestPickIsAFunctionOfItsArguments(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var used Scratch
	for i := range 300 {
		logits := make([]float32, 1+r.IntN(2000))
		for j := range logits {
			logits[j] = float32(r.NormFloat64() * 4)
		}
		p := params(func(p *Params) {
			p.Seed, p.Choice = r.Uint64(), uint32(r.IntN(4))
			p.TopK, p.TopP, p.MinP, p.Logprobs = r.IntN(100), 1-r.Float64()/2, r.Float64()/10, r.IntN(4)-1
		})
		before := slices.Clone(logits)
		a, b := Pick(p, logits, i, &used), Pick(p, logits, i, new(Scratch))
		if a.ID != b.ID || a.Logprob != b.Logprob || !slices.EqualFunc(a.Top, b.Top, func(x, y TopLogprob) bool { return x.ID == y.ID && x.Logprob == y.Logprob }) {
			t.Fatalf("%+v and %+v", a, b)
		}
		if !slices.Equal(before, logits) {
			t.Fatal("the logits were written")
		}
	}
}

func TestLogprobsAreThoseOfTheUnmodifiedLogits(t *testing.T) { // P5
	logits := []float32{0, 2, 1, 2, -1}
	p := params(func(p *Params) { p.Temperature, p.TopK, p.Logprobs = 0.1, 1, 3 })
	c := Pick(p, logits, 0, new(Scratch))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x))
	}
	want := func(id int32) float64 { return float64(logits[id]) - math.Log(sum) }
	if c.ID != 1 || math.Abs(float64(c.Logprob)-want(1)) > 1e-6 {
		t.Errorf("token %d, %v, want %v", c.ID, c.Logprob, want(1))
	}
	var ids []int32
	for _, x := range c.Top {
		ids = append(ids, x.ID)
		if math.Abs(float64(x.Logprob)-want(x.ID)) > 1e-6 {
			t.Errorf("token %d has %v, want %v", x.ID, x.Logprob, want(x.ID))
		}
	}
	if !slices.Equal(ids, []int32{1, 3, 2}) {
		t.Errorf("the best are %v", ids)
	}
	p.Logprobs = 0
	if c := Pick(p, logits, 0, new(Scratch)); len(c.Top) != 0 || c.Logprob == 0 {
		t.Errorf("with 0: %+v", c)
	}
	p.Logprobs = 20
	if c := Pick(p, logits, 0, new(Scratch)); len(c.Top) != 5 {
		t.Errorf("with 20 of 5 tokens: %d", len(c.Top))
	}
	p.Logprobs = -1
	if c := Pick(p, logits, 0, new(Scratch)); c.Top != nil || c.Logprob != 0 {
		t.Errorf("with -1: %+v", c)
	}
}

// TestBrokenLogitsDoNotPanic: a model that computes NaN must not take the worker with it.
func TestBrokenLogitsDoNotPanic(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, r := range map[string]struct {
		logits []float32
		want   int32
	}{
		"all NaN":        {[]float32{nan, nan}, 0},
		"some NaN":       {[]float32{nan, 1, nan}, 1},
		"infinite":       {[]float32{0, inf, inf}, 1},
		"all minus":      {[]float32{-inf, -inf}, 0},
		"NaN and minus":  {[]float32{nan, -inf}, 0},
		"one and minus":  {[]float32{-inf, -5}, 1},
		"largest floats": {[]float32{-math.MaxFloat32, math.MaxFloat32}, 1},
		"one token":      {[]float32{-3}, 0},
	} {
		for _, temperature := range []float64{0, 1e-6, 1, 2} {
			p := params(func(p *Params) { p.Temperature, p.TopK, p.TopP, p.MinP, p.Logprobs = temperature, 2, 0.9, 0.1, 2 })
			c := Pick(p, r.logits, 3, new(Scratch))
			if c.ID != r.want {
				t.Errorf("%s at %v: token %d, want %d", name, temperature, c.ID, r.want)
			}
			for _, x := range append(c.Top, TopLogprob{Logprob: c.Logprob}) {
				if l := float64(x.Logprob); math.IsNaN(l) || math.IsInf(l, 0) {
					t.Errorf("%s: log-probability %v cannot be written as JSON", name, l)
				}
			}
		}
	}
}

func TestPickAllocatesNothingInSteadyState(t *testing.T) { // P2
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for name, p := range map[string]*Params{
		"greedy": params(func(p *Params) { p.Temperature = 0 }),
		"plain":  params(func(p *Params) {}),
		"all":    params(func(p *Params) { p.TopK, p.TopP, p.MinP, p.Logprobs = 500, 0.9, 0.01, 5 }),
	} {
		var s Scratch
		position := 0
		Pick(p, logits, position, &s)
		if n := testing.AllocsPerRun(50, func() { position++; Pick(p, logits, position, &s) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 49152)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for _, row := range []struct {
		name string
		p    *Params
	}{
		{"greedy", params(func(p *Params) { p.Temperature = 0 })},
		{"plain", params(func(p *Params) {})},
		{"top_k-40", params(func(p *Params) { p.TopK = 40 })},
		{"top_p-0.9", params(func(p *Params) { p.TopP = 0.9 })},
		{"greedy-logprobs-5", params(func(p *Params) { p.Temperature, p.Logprobs = 0, 5 })},
	} {
		b.Run(row.name, func(b *testing.B) {
			var s Scratch
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				Pick(row.p, logits, i, &s)
			}
		})
	}
}

func TestWeightIsTheExponential(t *testing.T) {
	for x := 0.0; x >= weightless; x -= 0.00123 {
		if got, want := weight(x), math.Exp(x); math.Abs(got/want-1) > 1e-11 {
			t.Fatalf("weight(%v) is %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{-60.001, -1e300, math.Inf(-1), math.NaN()} {
		if got := weight(x); got != 0 {
			t.Errorf("weight(%v) is %v", x, got)
		}
	}
	if weight(0) != 1 {
		t.Errorf("weight(0) is %v", weight(0))
	}
}

// TestDrawsAreOfTheChoice: choices with one seed draw different tokens at the same position, each
// that of its own number.
func TestDrawsAreOfTheChoice(t *testing.T) {
	logits := make([]float32, 1000) // all alike, so that the number alone decides
	var s Scratch
	seen := map[int32]bool{}
	for choice := range uint32(8) {
		p := params(func(p *Params) { p.Seed, p.Choice = 7, choice })
		id := Pick(p, logits, 3, &s).ID
		if want := int32(Uniform(7, choice, 3) * 1000); id != want {
			t.Errorf("choice %d draws token %d, want %d", choice, id, want)
		}
		seen[id] = true
	}
	if len(seen) < 7 {
		t.Errorf("eight choices draw %d different tokens", len(seen))
	}
}
