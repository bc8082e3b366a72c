package kernel

import (
	"fmt"
	"runtime"
	"testing"
)

// timed runs f b.N times and returns the seconds that one took, in processor time of this thread.
func timed(b *testing.B, f func(i int)) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ResetTimer()
	began := threadTime()
	for i := range b.N {
		f(i)
	}
	return (threadTime() - began).Seconds() / float64(b.N)
}

// benchPool is a set of equal matrices that together exceed the caches, so that weights come from memory as in a model.
func benchPool(b *testing.B, f Format, rows, cols, bytes int) []*Matrix {
	row := randRow(newRand(1), f, cols)
	first, err := Pack(f, rows, cols, func(int) []byte { return row }, nil)
	if err != nil {
		b.Fatal(err)
	}
	n := max(1, bytes/first.Bytes())
	store := Alloc(n * first.Bytes())
	b.Cleanup(func() { Free(store) })
	var out []*Matrix
	for i := range n {
		m := *first
		m.data = store[i*first.Bytes():][:first.Bytes()]
		copy(m.data, first.data)
		out = append(out, &m)
	}
	return out
}

// BenchmarkMatVec is a step of decoding for one token: GB/s of weights.
func BenchmarkMatVec(b *testing.B) { benchMatMul(b, 1, 128<<20) }

// BenchmarkMatThin is a step of decoding for eight tokens.
func BenchmarkMatThin(b *testing.B) { benchMatMul(b, 8, 128<<20) }

// BenchmarkMatMat is a chunk of a prompt, in tiles if the level has them: GF/s.
func BenchmarkMatMat(b *testing.B) { benchMatMul(b, 256, 0) }

func benchMatMul(b *testing.B, n, pool int) {
	for _, f := range allFormats {
		for _, s := range [][2]int{{576, 576}, {1536, 576}, {576, 1536}, {2048, 2048}} {
			b.Run(fmt.Sprintf("%s/%dx%d", f, s[0], s[1]), func(b *testing.B) {
				ms := benchPool(b, f, s[0], s[1], pool)
				var in Input
				in.Reset(n, s[1], f.Form())
				if pool == 0 {
					in.Tile(n)
				}
				in.SetRange(randFloats(newRand(2), n*s[1]), s[1], 0, n)
				y := make([]float32, n*s[0])
				per := timed(b, func(i int) { MatMul(y, s[0], ms[i%len(ms)], &in, 0, ms[0].Panels()) })
				b.ReportMetric(float64(ms[0].Bytes())/per/1e9, "GB/s")
				b.ReportMetric(2*float64(n)*float64(s[0])*float64(s[1])/per/1e9, "GF/s")
			})
		}
	}
}

func BenchmarkAttend(b *testing.B) {
	for kind := range kvTypes {
		for _, tokens := range []int{64, 512, 2048} {
			for _, n := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/tokens=%d/n=%d", kind, tokens, n), func(b *testing.B) {
					l := KVLayout{Layers: 1, KVHeads: 3, HeadDim: 64, Type: kind}
					x := newContext(newRand(3), l, 9, tokens, 0)
					width := 9 * 64
					q, out := randFloats(newRand(4), n*width), make([]float32, n*width)
					var s AttendScratch
					per := timed(b, func(int) {
						AttendChunk(out, width, q, width, &x.pages, 0, x.table, tokens-n, n, 0, 3, &s)
					})
					b.ReportMetric(4*float64(n*9*64*tokens)/per/1e9, "GF/s")
					b.ReportMetric(float64(tokens*l.LayerBytes()/16)/per/1e9, "GB/s")
				})
			}
		}
	}
}

func BenchmarkElementwise(b *testing.B) {
	x, w, dst := randFloats(newRand(5), 1536), randFloats(newRand(6), 1536), make([]float32, 1536)
	cos, sin := x[:32], w[:32]
	l := KVLayout{Layers: 1, KVHeads: 3, HeadDim: 64}
	block := make([]byte, l.BlockBytes())
	var in Input
	in.Reset(1, 576, FormQ8)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"rmsnorm576", func() { RMSNorm(dst[:576], x[:576], w[:576], 1e-5) }},
		{"silumul1536", func() { SiluMul(dst, x, w) }},
		{"add576", func() { Add(dst[:576], x[:576]) }},
		{"ropepairs64", func() { RopeInterleaved(dst[:64], cos, sin) }},
		{"ropehalf64", func() { RopeHalf(dst[:64], cos, sin) }},
		{"softmax512", func() { Softmax(dst[:512]) }},
		{"argmax1536", func() { ArgMax(x) }},
		{"quantise576", func() { in.SetRange(x, 576, 0, 1) }},
		{"storekv3x64", func() { l.StoreKV(block, 0, 1, x[:192], w[:192]) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(1e9*timed(b, func(int) { c.f() }), "cpu-ns")
		})
	}
}

func BenchmarkBarrier(b *testing.B) {
	t := NewTeam(2)
	defer t.Close()
	b.ResetTimer()
	t.Run(func(w *Worker) {
		for range b.N {
			w.Barrier()
		}
	})
}

func BenchmarkRun(b *testing.B) {
	t := NewTeam(2)
	defer t.Close()
	for range b.N {
		t.Run(func(w *Worker) {})
	}
}
