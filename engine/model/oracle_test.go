package model

import (
	"math"
	"testing"

	"baton/engine/weights/gguf"
)

// oracle is the transformer as the formulas say it, in float64, row by row, from weights that
// were dequantised to float32. It shares no code with the engine but ReadConfig.
type oracle struct {
	c Config
	w map[string][]float32
}

func newOracle(t testing.TB, f *gguf.File) *oracle {
	t.Helper()
	c, err := ReadConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{c: c, w: map[string][]float32{}}
	for _, x := range f.Tensors() {
		v := make([]float32, x.Rows()*x.Cols())
		if err := gguf.Dequant(v, x.Type, x.Data); err != nil {
			t.Fatal(err)
		}
		o.w[x.Name] = v
	}
	return o
}

func (o *oracle) norm(x []float64, w []float32) []float64 {
	ss := 0.0
	for _, v := range x {
		ss += v * v
	}
	s := 1 / math.Sqrt(ss/float64(len(x))+float64(o.c.NormEps))
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * s * float64(w[i])
	}
	return y
}

func matVec(w []float32, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for r := range y {
		for i, v := range x {
			y[r] += float64(w[r*len(x)+i]) * v
		}
	}
	return y
}

func (o *oracle) rope(x []float64, pos int) {
	hd := o.c.HeadDim
	for h := 0; h < len(x); h += hd {
		for i := 0; i < o.c.RopeDim/2; i++ {
			f := math.Pow(o.c.Angles.Base, -2*float64(i)/float64(o.c.RopeDim)) / o.c.Angles.Scale
			if d := o.w["rope_freqs.weight"]; d != nil {
				f /= float64(d[i])
			}
			s, c := math.Sincos(float64(pos) * f)
			a, b := x[h+2*i], x[h+2*i+1]
			x[h+2*i], x[h+2*i+1] = a*c-b*s, a*s+b*c
		}
	}
}

// logits returns the logits of every position of ids.
func (o *oracle) logits(ids []int32) [][]float64 {
	c := &o.c
	keys := make([][][]float64, c.Layers)
	vals := make([][][]float64, c.Layers)
	var out [][]float64
	for pos, id := range ids {
		h := make([]float64, c.Width)
		for i := range h {
			h[i] = float64(o.w["token_embd.weight"][int(id)*c.Width+i])
		}
		for l := range c.Layers {
			p := layerName(l)
			x := o.norm(h, o.w[p+"attn_norm.weight"])
			q := matVec(o.w[p+"attn_q.weight"], x)
			k := matVec(o.w[p+"attn_k.weight"], x)
			o.rope(q, pos)
			o.rope(k, pos)
			keys[l] = append(keys[l], k)
			vals[l] = append(vals[l], matVec(o.w[p+"attn_v.weight"], x))
			for i, v := range matVec(o.w[p+"attn_output.weight"], o.attend(q, keys[l], vals[l])) {
				h[i] += v
			}
			x = o.norm(h, o.w[p+"ffn_norm.weight"])
			g, u := matVec(o.w[p+"ffn_gate.weight"], x), matVec(o.w[p+"ffn_up.weight"], x)
			for i := range g {
				g[i] = g[i] / (1 + math.Exp(-g[i])) * u[i]
			}
			for i, v := range matVec(o.w[p+"ffn_down.weight"], g) {
				h[i] += v
			}
		}
		head := o.w["output.weight"]
		if c.Tied {
			head = o.w["token_embd.weight"]
		}
		out = append(out, matVec(head, o.norm(h, o.w["output_norm.weight"])))
	}
	return out
}

func (o *oracle) attend(q []float64, keys, vals [][]float64) []float64 {
	hd := o.c.HeadDim
	out := make([]float64, len(q))
	for h := range o.c.Heads {
		kv := h / (o.c.Heads / o.c.KVHeads) * hd
		s := make([]float64, len(keys))
		most := math.Inf(-1)
		for t, k := range keys {
			for i := range hd {
				s[t] += q[h*hd+i] * k[kv+i]
			}
			s[t] /= math.Sqrt(float64(hd))
			most = max(most, s[t])
		}
		sum := 0.0
		for t := range s {
			s[t] = math.Exp(s[t] - most)
			sum += s[t]
		}
		for t, v := range vals {
			for i := range hd {
				out[h*hd+i] += s[t] / sum * v[kv+i]
			}
		}
	}
	return out
}
