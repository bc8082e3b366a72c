package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestWindowsHideWhatLiesBeforeThem compares attention over a window, with and without a soft
// cap, with the formula; every page that no query sees holds NaN in full, and must not matter.
func TestWindowsHideWhatLiesBeforeThem(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(21)
		var s AttendScratch
		for _, c := range layouts {
			for _, window := range []int{1, 5, 16, 17, 40} {
				const tokens = 77
				x := newContext(r, c.l, c.heads, tokens, c.l.Layers-1)
				for p := 0; (p+1)*PageTokens <= tokens-window; p++ {
					b := x.pages.Base[int(x.table[p])*c.l.BlockBytes():][:c.l.BlockBytes()]
					for i := range b {
						b[i] = 0xff
					}
				}
				x.pages.Window = window
				if window%2 == 1 {
					x.pages.SoftCap = 1.5
				}
				q := randFloats(r, c.heads*c.l.HeadDim)
				out := make([]float32, len(q))
				Attend(out, q, &x.pages, c.l.Layers-1, x.table, tokens, 0, c.l.KVHeads, &s)
				tolerance := 1e-5
				if active.pairs && c.l.Type == KVBF16 { // queries and probabilities have 8 bits
					tolerance = 1.0 / 64
				}
				if c.l.Type == KVQ8_0 {
					roundQueries(q, c.l.HeadDim)
				}
				for i, want := range x.window64(q, tokens, window) {
					if !(math.Abs(float64(out[i])-want) <= tolerance) {
						t.Fatalf("%+v window %d: out[%d] is %g, want %g", c.l, window, i, out[i], want)
					}
				}
			}
		}
	})
}

// window64 is attend64 over the last tokens only, with the soft cap.
func (c *context) window64(q []float32, tokens, window int) []float64 {
	l := c.pages.Layout
	out := make([]float64, len(q))
	share := c.pages.Heads / l.KVHeads
	for h := range c.pages.Heads {
		at := h / share * l.HeadDim
		p, sum := make([]float64, tokens), 0.0
		for t := max(0, tokens-window); t < tokens; t++ {
			for d := range l.HeadDim {
				p[t] += float64(q[h*l.HeadDim+d]) * float64(c.k[t][at+d])
			}
			p[t] /= math.Sqrt(float64(l.HeadDim))
			if by := float64(c.pages.SoftCap); by != 0 {
				p[t] = by * math.Tanh(p[t]/by)
			}
			p[t] = math.Exp(p[t])
			sum += p[t]
		}
		for t := max(0, tokens-window); t < tokens; t++ {
			for d := range l.HeadDim {
				out[h*l.HeadDim+d] += p[t] / sum * float64(c.v[t][at+d])
			}
		}
	}
	return out
}

// TestWindowsKeepTheBitsOfAPosition is K1 with a window: a position has the same bits alone and
// in a chunk, whose first pages others decide.
func TestWindowsKeepTheBitsOfAPosition(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(22)
		var s AttendScratch
		for _, c := range layouts {
			const tokens, from = 90, 20
			x := newContext(r, c.l, c.heads, tokens, 0)
			x.pages.Window = 19
			width := c.heads * c.l.HeadDim
			q := randFloats(r, width*tokens)
			alone, chunk := make([]float32, width*tokens), make([]float32, width*tokens)
			AttendChunk(chunk[from*width:], width, q[from*width:], width, &x.pages, 0, x.table, from, tokens-from, 0, c.l.KVHeads, &s)
			for i := from; i < tokens; i++ {
				Attend(alone[i*width:][:width], q[i*width:][:width], &x.pages, 0, x.table, i+1, 0, c.l.KVHeads, &s)
				if !slices.Equal(alone[i*width:][:width], chunk[i*width:][:width]) {
					t.Fatalf("%+v: position %d has other bits in a chunk", c.l, i)
				}
			}
		}
	})
}

func TestGeluMatchesItsFormula(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		var gate, up []float32
		for x := float32(-12); x < 12; x += 0.037 {
			gate, up = append(gate, x), append(up, 3)
		}
		gate, up = append(gate, 0, -1e4, 1e4), append(up, 3, 3, 3)
		in := slices.Clone(gate)
		GeluMul(gate, up)
		for i, v := range in {
			x := float64(v)
			want := 1.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			if !(math.Abs(float64(gate[i])-want) <= 2e-6*max(1, math.Abs(want))) {
				t.Errorf("gelu(%g)*3 is %g, want %g", v, gate[i], want)
			}
		}
	})
}
