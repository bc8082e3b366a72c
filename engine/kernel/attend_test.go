package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
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
	{KVLayout{2, 3, 64, KVQ8_0}, 9}, {KVLayout{1, 1, 32, KVQ8_0}, 14}, {KVLayout{1, 2, 96, KVQ8_0}, 8}, {KVLayout{1, 1, 256, KVQ8_0}, 1},
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
				if c.l.Type == KVQ8_0 {
					roundQueries(q, c.l.HeadDim)
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

// roundQueries rounds queries as attention over KVQ8_0 does: to int8 with a scale per 32.
func roundQueries(q []float32, headDim int) {
	scale := float32(1 / math.Sqrt(float64(headDim)))
	for b := 0; b < len(q); b += BlockCols {
		var row [BlockCols]float32
		for i := range row {
			row[i] = q[b+i] * scale
		}
		var rec q8Record
		quantiseGo(unsafe.Pointer(&rec), &row[0], 1, q8TokenBytes)
		for i, v := range rec.q {
			q[b+i] = rec.scale * float32(v) / scale
		}
	}
}

// A cache in Q8_0 is about half as large as one in bfloat16, and what it costs stays near what bfloat16 costs: with
// normal keys and values an integer is off by at most 1/254 of the largest of 32, which is about 3.
func TestACacheInQ8StaysNearFloat32(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		const tokens, heads = 200, 9
		exact := KVLayout{Layers: 1, KVHeads: 3, HeadDim: 64, Type: KVF32}
		r := newRand(14)
		x := newContext(r, exact, heads, tokens, 0)
		q := randFloats(r, heads*64)
		off := func(kind KVType) (rms float64) {
			l := exact
			l.Type = kind
			p := Pages{Layout: l, Heads: heads, Base: make([]byte, len(x.table)*l.BlockBytes())}
			for i := range tokens {
				l.StoreKV(p.Base[int(x.table[i/16])*l.BlockBytes():], 0, i%16, x.k[i], x.v[i])
			}
			out := make([]float32, len(q))
			var s AttendScratch
			Attend(out, q, &p, 0, x.table, tokens, 0, 3, &s)
			for i, want := range x.attend64(q, tokens) {
				rms += (float64(out[i]) - want) * (float64(out[i]) - want)
			}
			return math.Sqrt(rms / float64(len(q)))
		}
		if e := off(KVQ8_0); e > 2e-3 || e == 0 {
			t.Errorf("the results, of size 0.1, are off by %g; want at most 0.002, and not nothing", e)
		}
		if e := off(KVF32); e > 1e-6 {
			t.Errorf("float32 is off by %g", e)
		}
		q8, bf := exact, exact
		q8.Type, bf.Type = KVQ8_0, KVBF16
		if q8.BlockBytes()*32 != bf.BlockBytes()*17 || q8.RowBytes()*PageTokens*2 != q8.BlockBytes() {
			t.Errorf("a block has %d bytes, in bfloat16 %d; want 17/32 of them", q8.BlockBytes(), bf.BlockBytes())
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
	for _, kind := range []KVType{KVBF16, KVF32, KVQ8_0} {
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
	for _, l := range []KVLayout{{1, 2, 80, KVBF16}, {1, 2, 96, KVQ8_0}} {
		var want []byte
		atEachLevel(t, func(t *testing.T) {
			r := newRand(13)
			block := make([]byte, l.BlockBytes())
			for token := range 11 {
				l.StoreKV(block, 0, token, randFloats(r, 2*l.HeadDim), randFloats(r, 2*l.HeadDim))
			}
			if want == nil {
				want = block
			} else if !slices.Equal(block, want) {
				t.Errorf("%s: the blocks differ", l.Type)
			}
		})
	}
}

func TestLayoutsOutOfBoundsAreRefused(t *testing.T) {
	for _, l := range []KVLayout{{0, 1, 64, KVBF16}, {1, 0, 64, KVBF16}, {1, 1, 24, KVBF16}, {1, 1, 1024, KVBF16}, {1, 1, 64, 7}, {1, 1, 80, KVQ8_0}} {
		if l.Check() == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
	if err := (KVLayout{30, 3, 64, KVBF16}).Check(); err != nil {
		t.Error(err)
	}
}

// K5 for attention.
func TestAttentionAllocatesNothing(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		for kind := range kvTypes {
			r := newRand(12)
			x := newContext(r, KVLayout{2, 3, 64, kind}, 9, 40, 0)
			q := randFloats(r, 8*9*64)
			out := make([]float32, len(q))
			var s AttendScratch
			s.Grow(40, 64)
			if n := testing.AllocsPerRun(5, func() {
				x.pages.Layout.StoreKV(x.pages.Base, 0, 3, q[:192], q[192:384])
				AttendChunk(out, 9*64, q, 9*64, &x.pages, 0, x.table, 32, 8, 0, 3, &s)
			}); n != 0 {
				t.Errorf("%s: %v allocations per call", kind, n)
			}
		}
	})
}

func TestKVTypesHaveNames(t *testing.T) {
	for kind := range kvTypes {
		if got, err := ParseKVType(kind.String()); err != nil || got != kind {
			t.Errorf("%s is read as %s, %v", kind, got, err)
		}
	}
	if _, err := ParseKVType("fp8"); err == nil || !strings.Contains(err.Error(), `"fp8"`) || !strings.Contains(err.Error(), "q8_0") {
		t.Errorf("error %v, want one that names fp8 and what is allowed", err)
	}
}
