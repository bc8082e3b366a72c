package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"baton/engine/kernel"
	"baton/engine/weights/gguf"
)

func open(t testing.TB, f *gguf.File, o Options) *Model {
	t.Helper()
	m, err := Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func pool(t testing.TB, m *Model, blocks int) *KV {
	t.Helper()
	kv, err := m.NewKV(blocks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kv.Close)
	return kv
}

// table returns the blocks [from, from+n) in order.
func table(from, n int) []int32 {
	b := make([]int32, n)
	for i := range b {
		b[i] = int32(from + i)
	}
	return b
}

// atEachLevel runs the test at every kernel level that this machine has.
func atEachLevel(t *testing.T, test func(t *testing.T)) {
	before := kernel.Active()
	defer kernel.Use(before)
	for _, l := range kernel.Levels() {
		if err := kernel.Use(l); err != nil {
			t.Fatal(err)
		}
		t.Run(l.String(), test)
	}
}

// distance is the root of the mean squared difference over that of want.
func distance(got []float32, want []float64) float64 {
	var e, n float64
	for i, v := range want {
		d := float64(got[i]) - v
		e += d * d
		n += v * v
	}
	return math.Sqrt(e / n)
}

var shapes = map[string]shape{
	"f32":    odd,
	"untied": {layers: 2, width: 96, ffn: 64, heads: 4, kvHeads: 4, headDim: 16, vocab: 64, ropeScale: 4},
	"llama3": {layers: 2, width: 64, ffn: 64, heads: 4, kvHeads: 1, headDim: 48, vocab: 40, ropeDim: 32, ropeFreqs: true, tied: true},
	"f16":    {layers: 2, width: 64, ffn: 96, heads: 2, kvHeads: 2, headDim: 64, vocab: 50, fallback: gguf.F16},
	"bf16":   {layers: 2, width: 64, ffn: 96, heads: 2, kvHeads: 2, headDim: 64, vocab: 50, fallback: gguf.BF16, tied: true},
	"q8_0":   {layers: 2, width: 256, ffn: 96, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, fallback: gguf.Q8_0, tied: true},
	"q4_0":   {layers: 2, width: 256, ffn: 96, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, fallback: gguf.Q4_0},
	"q4_1":   {layers: 2, width: 256, ffn: 96, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, fallback: gguf.Q4_1},
	"q5":     {layers: 2, width: 256, ffn: 96, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, fallback: gguf.Q5_0, types: map[string]gguf.Type{"attn_v": gguf.Q5_1}},
	"k_m": {layers: 2, width: 256, ffn: 512, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, fallback: gguf.Q4_K, tied: true,
		types: map[string]gguf.Type{"attn_v": gguf.Q6_K, "ffn_down": gguf.Q6_K, "token_embd": gguf.Q6_K, "attn_k": gguf.Q5_K}},
	// Query heads that fill no whole block of 32 columns alone: two by two, and only all together. The first has a
	// feed-forward of one block.
	"pairs": {layers: 2, width: 64, ffn: 32, heads: 6, kvHeads: 6, headDim: 16, vocab: 50, tied: true},
	"whole": {layers: 2, width: 64, ffn: 96, heads: 6, kvHeads: 2, headDim: 16, vocab: 50, tied: true, fallback: gguf.Q8_0},
	"mixed": {layers: 2, width: 256, ffn: 256, heads: 8, kvHeads: 2, headDim: 32, vocab: 50, tied: true,
		types: map[string]gguf.Type{"attn_q": gguf.F16, "attn_k": gguf.Q8_0, "attn_v": gguf.Q4_0, "ffn_gate": gguf.BF16, "ffn_up": gguf.Q4_K}},
}

// TestLogitsFollowTheFormulas compares every shape and format with the oracle, prompt in one
// chunk and the rest token by token.
func TestLogitsFollowTheFormulas(t *testing.T) {
	files, wants := map[string]*gguf.File{}, map[string][][]float64{}
	ids := map[string][]int32{}
	for name, s := range shapes {
		files[name] = s.build(t, 7, nil)
		ids[name] = tokens(rand.New(rand.NewPCG(1, 2)), 37, s.vocab)
		wants[name] = newOracle(t, files[name]).logits(ids[name])
	}
	atEachLevel(t, func(t *testing.T) {
		for name, s := range shapes {
			for _, exact := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/exact=%v", name, exact), func(t *testing.T) {
					f, ids, want := files[name], ids[name], wants[name]
					m := open(t, f, Options{KV: F32, Threads: 1, Exact: exact})
					r := m.NewRunner(pool(t, m, 4))
					items := []Item{{Tokens: ids[:21], Table: table(1, 3), All: true}}
					if err := r.Step(items); err != nil {
						t.Fatal(err)
					}
					// Activations of eight bits: random weights, unlike trained ones, amplify the rounding.
					most := 0.25
					if exact {
						most = 2e-5
					}
					for i := range 21 {
						if d := distance(items[0].Logits[i*s.vocab:][:s.vocab], want[i]); !(d < most) {
							t.Fatalf("position %d of the chunk: %.2g off", i, d)
						}
					}
					for i := 21; i < len(ids); i++ {
						items := []Item{{Tokens: ids[i : i+1], Pos: i, Table: table(1, 3), Want: true}}
						if err := r.Step(items); err != nil {
							t.Fatal(err)
						}
						if d := distance(items[0].Logits, want[i]); !(d < most) {
							t.Fatalf("decoded position %d: %.2g off", i, d)
						}
					}
				})
			}
		}
	})
}
