package model

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
)

// tinyModels are tiny models with random weights and what transformers computed for them in float32
// (tools/goldens); testdata/README.md says more.
const tinyModels = "testdata/goldens"

// tiny is one of them.
type tiny struct {
	IDs    []int32 `json:"ids"`
	Vocab  int     `json:"vocab"`
	logits []float32
}

func readTiny(t testing.TB, name string) tiny {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(tinyModels, name, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g tiny
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(filepath.Join(tinyModels, name, "logits.f32")); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b); at += 4 {
		g.logits = append(g.logits, math.Float32frombits(binary.LittleEndian.Uint32(b[at:])))
	}
	if len(g.logits) != len(g.IDs)*g.Vocab {
		t.Fatalf("%d logits for %d positions of %d", len(g.logits), len(g.IDs), g.Vocab)
	}
	return g
}

func tinyNames(t testing.TB) (names []string) {
	t.Helper()
	all, err := os.ReadDir(tinyModels)
	if err != nil || len(all) < 10 {
		t.Fatalf("%d models in %s, %v", len(all), tinyModels, err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func openDir(t testing.TB, name string) *safetensors.Dir {
	t.Helper()
	d, err := safetensors.Open(filepath.Join(tinyModels, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// run returns the logits of every position of ids, fed in pieces that end at the given positions.
func run(t testing.TB, m *Model, ids []int32, ends ...int) []float32 {
	t.Helper()
	kv := pool(t, m, (len(ids)+BlockTokens-1)/BlockTokens)
	defer kv.Close()
	r := m.NewRunner(kv)
	defer r.Close()
	var out []float32
	at := 0
	for _, end := range append(ends, len(ids)) {
		if end == at {
			continue
		}
		items := []Item{{Tokens: ids[at:end], Pos: at, Table: table(0, kv.Blocks()), All: true}}
		if err := r.Step(items); err != nil {
			t.Fatal(err)
		}
		out = append(out, items[0].Logits...)
		at = end
	}
	return out
}

// far returns the largest difference of a position's logits over the largest of them.
func far(t testing.TB, got, want []float32, vocab int) (worst float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d logits, want %d", len(got), len(want))
	}
	for at := 0; at < len(want); at += vocab {
		diff, most := 0.0, 0.0
		for i := at; i < at+vocab; i++ {
			diff = max(diff, math.Abs(float64(got[i])-float64(want[i])))
			most = max(most, math.Abs(float64(want[i])))
			if math.IsNaN(float64(got[i])) {
				t.Fatalf("logit %d of position %d is not a number", i-at, at/vocab)
			}
		}
		worst = max(worst, diff/most)
	}
	return worst
}

func openTiny(t testing.TB, f weights.File, o Options) *Model {
	t.Helper()
	m, err := Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// exactly is how far the exact mode may be from transformers: both add in float32, in another order.
const exactly = 1e-4

func TestEveryArchitectureComputesWhatTransformersDoes(t *testing.T) {
	for _, name := range tinyNames(t) {
		t.Run(name, func(t *testing.T) {
			g, d := readTiny(t, name), openDir(t, name)
			exact := Options{Threads: 1, Exact: true, KV: F32}
			m := openTiny(t, d, exact)
			if d := far(t, run(t, m, g.IDs), g.logits, g.Vocab); !(d <= exactly) {
				t.Errorf("safetensors: logits differ by %.2g of the largest", d)
			}
			if name == "gemma3-caps" || name == "qwen2-window" {
				return // GGUF files have neither Gemma's constant in bfloat16 nor Qwen's windows
			}
			m = openTiny(t, toGGUF(t, d, gguf.F32), exact)
			if d := far(t, run(t, m, g.IDs), g.logits, g.Vocab); !(d <= exactly) {
				t.Errorf("GGUF: logits differ by %.2g of the largest", d)
			}
			if style := m.Config().RopeStyle; (style == Interleaved) != strings.HasPrefix(name, "llama") {
				t.Errorf("rope style %q", style)
			}
		})
	}
}

// off returns the root mean square of the differences over that of what is wanted.
func off(got, want []float32) float64 {
	return math.Sqrt(squared(got, want) / squared(want, make([]float32, len(want))))
}

// TestServedNumbersStayNear: how far what is served by default may be from exact numbers, as a
// part of all logits. These models are harder than trained ones: their attention is sharp, and
// rounding averages out over 64 numbers instead of thousands. Whatever is left out by mistake, as
// a norm or a bias, moves logits by 0.2 and more.
func TestServedNumbersStayNear(t *testing.T) {
	for _, name := range tinyNames(t) {
		t.Run(name, func(t *testing.T) {
			g, d := readTiny(t, name), openDir(t, name)
			rows := []served{{"as published, cache in bf16", d, BF16, 0.015}}
			if c, err := ReadConfig(d); err != nil || c.HeadDim%32 == 0 { // Q8_0 wants heads of whole groups
				rows = append(rows, served{"as published, cache in q8_0", d, Q8_0, 0.02})
			}
			if name != "gemma3-caps" && name != "qwen2-window" {
				rows = append(rows, served{"weights in Q8_0, cache in bf16", toGGUF(t, d, gguf.Q8_0), BF16, 0.06})
			}
			for _, row := range rows {
				m := openTiny(t, row.f, Options{Threads: 1, KV: row.kv})
				if o := off(run(t, m, g.IDs), g.logits); !(o <= row.most) {
					t.Errorf("%s: off by %.3g, want at most %g", row.name, o, row.most)
				}
			}
		})
	}
}

type served struct {
	name string
	f    weights.File
	kv   DType
	most float64
}

// TestEveryArchitectureKeepsTheBitsOfARow is M1 for all of them: token by token, in pieces with
// all kinds of borders, beside another sequence and on two threads, a position has the same bits.
func TestEveryArchitectureKeepsTheBitsOfARow(t *testing.T) {
	for _, name := range tinyNames(t) {
		t.Run(name, func(t *testing.T) {
			g, d := readTiny(t, name), openDir(t, name)
			for _, o := range []Options{{Threads: 1}, {Threads: 2}, {Threads: 1, Exact: true, KV: F32}} {
				m := openTiny(t, d, o)
				want := run(t, m, g.IDs)
				var each []int
				for i := range g.IDs {
					each = append(each, i)
				}
				for _, ends := range [][]int{each, {1}, {15}, {16}, {17, 18, 33}, {40}, {63}} {
					if !slices.Equal(run(t, m, g.IDs, ends...), want) {
						t.Errorf("%+v: pieces that end at %v give other bits", o, ends)
					}
				}
				if got := beside(t, m, g.IDs); !slices.Equal(got, want[len(want)-len(got):]) {
					t.Errorf("%+v: the last token has other bits beside another sequence", o)
				}
			}
		})
	}
}

// TestNoArchitectureAllocatesInAStep is M3 for all of them.
func TestNoArchitectureAllocatesInAStep(t *testing.T) {
	for _, name := range tinyNames(t) {
		g := readTiny(t, name)
		m := openTiny(t, openDir(t, name), Options{Threads: 1})
		kv := pool(t, m, 4)
		r := m.NewRunner(kv)
		items := []Item{{Tokens: g.IDs[:60], Table: table(0, 4), Want: true}}
		if err := r.Step(items); err != nil {
			t.Fatal(err)
		}
		items[0].Tokens, items[0].Pos = g.IDs[60:61], 60
		if n := testing.AllocsPerRun(20, func() {
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations in a step", name, n)
		}
		r.Close()
		kv.Close()
	}
}

// beside decodes the last token of ids in a step with a chunk of another sequence.
func beside(t *testing.T, m *Model, ids []int32) []float32 {
	t.Helper()
	n := len(ids)
	blocks := n / BlockTokens
	kv := pool(t, m, 2*blocks)
	defer kv.Close()
	r := m.NewRunner(kv)
	defer r.Close()
	if err := r.Step([]Item{{Tokens: ids[:n-1], Table: table(0, blocks)}}); err != nil {
		t.Fatal(err)
	}
	items := []Item{
		{Tokens: ids[3:30], Table: table(blocks, blocks), Want: true},
		{Tokens: ids[n-1:], Pos: n - 1, Table: table(0, blocks), Want: true},
	}
	if err := r.Step(items); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(items[1].Logits)
}
