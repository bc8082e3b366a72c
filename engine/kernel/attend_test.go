package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// context is a sequence in a pool of blocks, with what was stored as float32 beside it.
type context struct {
	pages Pages
	table []int32
	k, v  [][]float32 // [token][KVHeads*HeadDim], as LoadKV gives them back
}

func newContext(r *rand.Rand, l KVLayout, heads, tokens, layer int) *context {
	c := &context{pages: Pages{Layout: l, Heads: heads}}
	blocks := (tokens+PageTokens-1)/PageTokens + 3
	c.pages.Base = make([]byte, blocks*l.BlockBytes())
	for i := range c.pages.Base {
		c.pages.Base[i] = 0xff // a former owner's NaN
	}
	for _, b := range r.Perm(blocks) {
		c.table = append(c.table, int32(b))
	}
	width := l.KVHeads * l.HeadDim
	for t := range tokens {
		block := c.pages.Base[int(c.table[t/PageTokens])*l.BlockBytes():][:l.BlockBytes()]
		l.StoreKV(block, layer, t%PageTokens, randFloats(r, width), randFloats(r, width))
		k, v := make([]float32, width), make([]float32, width)
		l.LoadKV(block, layer, t%PageTokens, k, v)
		c.k, c.v = append(c.k, k), append(c.v, v)
	}
	return c
}

// attend64 is attention in float64.
func (c *context) attend64(q []float32, tokens int) []float64 {
	l := c.pages.Layout
	out := make([]float64, len(q))
	share := c.pages.Heads / l.KVHeads
	for h := range c.pages.Heads {
		at := h / share * l.HeadDim
		p, sum := make([]float64, tokens), 0.0
		for t := range p {
			for d := range l.HeadDim {
				p[t] += float64(q[h*l.HeadDim+d]) * float64(c.k[t][at+d])
			}
			p[t] = math.Exp(p[t] / math.Sqrt(float64(l.HeadDim)))
			sum += p[t]
		}
		for t := range p {
			for d := range l.HeadDim {
				out[h*l.HeadDim+d] += p[t] / sum * float64(c.v[t][at+d])
			}
		}
	}
	return out
}

var layouts = []struct {
	l     KVLayout
	heads int
}{
	{KVLayout{2, 3, 64, KVBF16}, 9}, {KVLayout{1, 2, 64, KVF32}, 4}, {KVLayout{1, 1, 16, KVBF16}, 7},
	{KVLayout{2, 2, 128, KVF32}, 2}, {KVLayout{1, 1, 80, KVBF16}, 20},
}

func TestAttentionMatchesFloat64(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(10)
		var s AttendScratch
		for _, c := range layouts {
			for _, tokens := range []int{1, 15, 16, 17, 77} {
				x := newContext(r, c.l, c.heads, tokens, c.l.Layers-1)
				q := randFloats(r, c.heads*c.l.HeadDim)
				out := make([]float32, len(q))
				Attend(out, q, &x.pages, c.l.Layers-1, x.table, tokens, 0, c.l.KVHeads, &s)
				tolerance := 1e-5
				if active.pairs && c.l.Type == KVBF16 { // queries and probabilities have 8 bits
					tolerance = 1.0 / 256
					scale := float32(1 / math.Sqrt(float64(c.l.HeadDim)))
					for i := range q {
						q[i] = bf16ToFloat(floatToBF16(q[i]*scale)) / scale
					}
				}
				for i, want := range x.attend64(q, tokens) {
					if math.Abs(float64(out[i])-want) > tolerance {
						t.Fatalf("%+v tokens %d: out[%d] is %g, want %g", c.l, tokens, i, out[i], want)
					}
				}
			}
		}
	})
}

// TestChunksAttendLikeSinglePositions holds K1 for attention.
func TestChunksAttendLikeSinglePositions(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(11)
		var s AttendScratch
		for _, c := range layouts {
			const tokens = 83
			x := newContext(r, c.l, c.heads, tokens, 0)
			width := c.heads * c.l.HeadDim
			q, want := randFloats(r, tokens*width), make([]float32, tokens*width)
			for i := range tokens {
				Attend(want[i*width:][:width], q[i*width:][:width], &x.pages, 0, x.table, i+1, 0, c.l.KVHeads, &s)
			}
			for range 8 {
				pos := r.IntN(tokens)
				n := 1 + r.IntN(tokens-pos)
				got := make([]float32, n*width)
				for h := range c.l.KVHeads {
					AttendChunk(got, width, q[pos*width:], width, &x.pages, 0, x.table, pos, n, h, h+1, &s)
				}
				if !slices.Equal(bits(got), bits(want[pos*width:][:n*width])) {
					t.Fatalf("%+v: positions [%d,%d) together differ from each alone", c.l, pos, pos+n)
				}
			}
		}
	})
}

func TestStoringIntoABlockForgetsItsFormerOwner(t *testing.T) {
	for _, kind := range []KVType{KVBF16, KVF32} {
		l := KVLayout{Layers: 2, KVHeads: 2, HeadDim: 32, Type: kind}
		block := make([]byte, l.BlockBytes())
		for i := range block {
			block[i] = 0xff
		}
		k, v := make([]float32, 64), make([]float32, 64)
		for layer := range l.Layers {
			l.StoreKV(block, layer, 0, k, v)
		}
		for i, b := range block {
			if b != 0 {
				t.Fatalf("%s: byte %d is %#x after storing zeros as the first token", kind, i, b)
			}
		}
	}
}

func TestStoredBlocksAgreeAcrossLevels(t *testing.T) {
	l := KVLayout{Layers: 1, KVHeads: 2, HeadDim: 80}
	var want []byte
	atEachLevel(t, func(t *testing.T) {
		r := newRand(13)
		block := make([]byte, l.BlockBytes())
		for token := range 11 {
			l.StoreKV(block, 0, token, randFloats(r, 160), randFloats(r, 160))
		}
		if want == nil {
			want = block
		} else if !slices.Equal(block, want) {
			t.Error("the blocks differ")
		}
	})
}

func TestLayoutsOutOfBoundsAreRefused(t *testing.T) {
	for _, l := range []KVLayout{{0, 1, 64, KVBF16}, {1, 0, 64, KVBF16}, {1, 1, 24, KVBF16}, {1, 1, 1024, KVBF16}, {1, 1, 64, 7}} {
		if l.Check() == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
	if err := (KVLayout{30, 3, 64, KVBF16}).Check(); err != nil {
		t.Error(err)
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	r := newRand(12)
	x := newContext(r, layouts[0].l, 9, 40, 0)
	q := randFloats(r, 8*9*64)
	out := make([]float32, len(q))
	var s AttendScratch
	s.Grow(40, 64)
	if n := testing.AllocsPerRun(5, func() {
		AttendChunk(out, 9*64, q, 9*64, &x.pages, 0, x.table, 32, 8, 0, 3, &s)
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
