package kernel

import (
	"fmt"
	"testing"
)

// layerBench is one layer of a model with random weights.
type layerBench struct {
	qkv, out, gateUp, down *Matrix
}

// stepBench is a step of a small Llama (the shape of SmolLM2-135M) as an engine would run it: every weight distinct,
// every operation but sampling. It shows what the kernels give together.
type stepBench struct {
	hidden, ffn, heads, kvHeads, headDim int
	layers                               []layerBench
	head                                 *Matrix
	norm                                 []float32
	kv                                   Pages
	table                                []int32
	x, h, qkvY, att, ffnY, act, logits   []float32
	in                                   Input
	scratch                              []AttendScratch
	cos, sin                             []float32
	n, pos                               int
}

func newStepBench(b *testing.B, f Format, n, context int) *stepBench {
	s := &stepBench{hidden: 576, ffn: 1536, heads: 9, kvHeads: 3, headDim: 64, n: n, pos: context - n}
	r := newRand(1)
	area := Alloc(300 << 20) // of which only what is used becomes real; huge pages, as an engine has
	b.Cleanup(func() { Free(area) })
	used := 0
	carve := func(n int) []byte {
		used += (n + 63) &^ 63
		return area[used-(n+63)&^63:][:n]
	}
	matrix := func(f Format, rows, cols int) *Matrix {
		row := randRow(r, f, cols)
		m, err := Pack(f, rows, cols, func(int) []byte { return row }, carve)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	for range 30 {
		s.layers = append(s.layers, layerBench{
			matrix(f, 960, 576), matrix(f, 576, 576), matrix(f, 3072, 576), matrix(f, 576, 1536),
		})
	}
	s.head = matrix(Q8_0, 49152, 576)
	s.norm = randFloats(r, 576)
	l := KVLayout{Layers: 30, KVHeads: 3, HeadDim: 64}
	blocks := (context + 15) / 16
	s.kv = Pages{Layout: l, Heads: 9, Base: Alloc(blocks * l.BlockBytes())}
	for i := range blocks {
		s.table = append(s.table, int32(i))
	}
	s.x, s.h, s.qkvY, s.att = randFloats(r, n*576), Sized[float32](nil, n*576), Sized[float32](nil, n*960), Sized[float32](nil, n*576)
	s.ffnY, s.act, s.logits = Sized[float32](nil, n*3072), Sized[float32](nil, n*1536), Sized[float32](nil, 49152)
	s.scratch = make([]AttendScratch, 8)
	s.cos, s.sin = randFloats(r, 32), randFloats(r, 32)
	return s
}

// prepare normalises (unless w is nil) and quantises tokens for the next product.
func (s *stepBench) prepare(w *Worker, x []float32, cols int, norm bool, forms Form) {
	if w.Index == 0 {
		s.in.Reset(s.n, cols, forms)
	}
	w.Barrier()
	w.Split(s.n, 8, func(lo, hi int) {
		src := x
		if norm {
			for j := lo; j < hi; j++ {
				RMSNorm(s.h[j*576:][:576], x[j*576:][:576], s.norm, 1e-5)
			}
			src = s.h
		}
		s.in.SetRange(src, cols, lo, hi)
	})
	w.Barrier()
}

func (s *stepBench) multiply(w *Worker, y []float32, m *Matrix) {
	w.Split(m.Panels(), max(1, min(m.Panels()/8, 64)), func(lo, hi int) { MatMul(y, m.PaddedRows(), m, &s.in, lo, hi) })
	w.Barrier()
}

func (s *stepBench) step(w *Worker) {
	forms := s.layers[0].qkv.Format.Form()
	for l := range s.layers {
		layer := &s.layers[l]
		s.prepare(w, s.x, 576, true, forms)
		s.multiply(w, s.qkvY, layer.qkv)
		if w.Index == 0 {
			for j := range s.n {
				row := s.qkvY[j*960:]
				for h := range 12 {
					RopeInterleaved(row[h*64:][:64], s.cos, s.sin)
				}
				t := s.pos + j
				block := s.kv.Base[int(s.table[t/16])*s.kv.Layout.BlockBytes():]
				s.kv.Layout.StoreKV(block, l, t%16, row[576:768], row[768:960])
			}
		}
		w.Barrier()
		groups := (s.n + 31) / 32
		w.Split(3*groups, 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				h, first := i/groups, i%groups*32
				AttendChunk(s.att[first*576:], 576, s.qkvY[first*960:], 960, &s.kv, l, s.table, s.pos+first, min(32, s.n-first), h, h+1, &s.scratch[w.Index])
			}
		})
		w.Barrier()
		s.prepare(w, s.att, 576, false, forms)
		s.multiply(w, s.h, layer.out)
		w.Split(s.n, 16, func(lo, hi int) { Add(s.x[lo*576:hi*576], s.h[lo*576:hi*576]) })
		w.Barrier()
		s.prepare(w, s.x, 576, true, forms)
		s.multiply(w, s.ffnY, layer.gateUp)
		w.Split(s.n, 8, func(lo, hi int) {
			for j := lo; j < hi; j++ {
				SiluMul(s.act[j*1536:][:1536], s.ffnY[j*3072:][:1536], s.ffnY[j*3072+1536:][:1536])
			}
		})
		w.Barrier()
		s.prepare(w, s.act, 1536, false, forms)
		s.multiply(w, s.h, layer.down)
		w.Split(s.n, 16, func(lo, hi int) { Add(s.x[lo*576:hi*576], s.h[lo*576:hi*576]) })
		w.Barrier()
	}
	if w.Index == 0 {
		s.in.Set(s.x[:576], 1, 576, FormQ8)
	}
	w.Barrier()
	s.multiply(w, s.logits, s.head)
}

// BenchmarkStep reports tokens per second of wall time, and for one thread of processor time.
func BenchmarkStep(b *testing.B) {
	for _, f := range []Format{Q4_1, Q4_0, Q8_0, BF16} {
		for _, n := range []int{1, 8, 512} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/n=%d/threads=%d", f, n, threads), func(b *testing.B) {
					s := newStepBench(b, f, n, max(n, 64))
					team := NewTeam(threads)
					defer team.Close()
					step := s.step
					team.Run(step)
					per := timed(b, func(int) { clear(s.x); s.x[0] = 1; team.Run(step) })
					b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tok/s")
					if threads == 1 {
						b.ReportMetric(float64(n)/per, "tok/cpu-s")
					}
				})
			}
		}
	}
}
