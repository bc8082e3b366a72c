package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

func ptrOf[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

var lengths = []int{1, 2, 7, 8, 15, 16, 17, 31, 48, 64, 100, 576, 1000}

func near(t *testing.T, what string, got []float32, want func(i int) float64, tolerance float64) {
	t.Helper()
	for i, v := range got {
		w := want(i)
		if d := math.Abs(float64(v) - w); !(d <= tolerance*(math.Abs(w)+1e-3)) {
			t.Fatalf("%s of %d: [%d] is %g, want %g", what, len(got), i, v, w)
		}
	}
}

func TestElementwiseMatchesFloat64(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(20)
		for _, n := range lengths {
			x, w := randFloats(r, n), randFloats(r, n)
			dst := make([]float32, n)
			RMSNorm(dst, x, w, 1e-5)
			mean := 0.0
			for _, v := range x {
				mean += float64(v) * float64(v) / float64(n)
			}
			near(t, "RMSNorm", dst, func(i int) float64 { return float64(x[i]) / math.Sqrt(mean+1e-5) * float64(w[i]) }, 2e-6)

			for i := range x {
				x[i] *= 20
			}
			SiluMul(dst, x, w)
			near(t, "SiluMul", dst, func(i int) float64 {
				return float64(x[i]) / (1 + math.Exp(-float64(x[i]))) * float64(w[i])
			}, 2e-6)

			peak, sum := math.Inf(-1), 0.0
			for _, v := range x {
				peak = max(peak, float64(v))
			}
			for _, v := range x {
				sum += math.Exp(float64(v) - peak)
			}
			if got := LogSumExp(x, dst); math.Abs(float64(got)-peak-math.Log(sum)) > 1e-5*(1+math.Abs(peak)) {
				t.Fatalf("LogSumExp of %d is %g, want %g", n, got, peak+math.Log(sum))
			}
			if got := x[ArgMax(x)]; float64(got) != peak {
				t.Fatalf("ArgMax of %d leads to %g, want %g", n, got, peak)
			}
			want := slices.Clone(x)
			Softmax(x)
			near(t, "Softmax", x, func(i int) float64 { return math.Exp(float64(want[i])-peak) / sum }, 1e-5)

			dot, size := 0.0, 0.0
			for i := range want {
				p := float64(want[i]) * float64(w[i])
				dot, size = dot+p, size+math.Abs(p)
			}
			if got := Dot(want, w); math.Abs(float64(got)-dot) > 1e-6*size {
				t.Fatalf("Dot of %d is %g, want %g", n, got, dot)
			}
		}
	})
}

func TestExponentialsHoldAtTheEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	atEachLevel(t, func(t *testing.T) {
		gate := []float32{-inf, -1e30, -200, -88, 0, 88, 200, 1e30, inf}
		one, dst := make([]float32, len(gate)), make([]float32, len(gate))
		for i := range one {
			one[i] = 1
		}
		SiluMul(dst[1:], gate[1:], one[1:])
		for i, v := range gate[1:] {
			want := float64(v) / (1 + math.Exp(-float64(v)))
			if d := math.Abs(float64(dst[i+1]) - want); d > 1e-4*math.Abs(want) && d > 1e-6 {
				t.Errorf("silu(%g) is %g, want %g", v, dst[i+1], want)
			}
		}
		x := make([]float32, 20)
		for i := range x {
			x[i] = -1e4
		}
		x[3], x[19] = 5, -inf
		Softmax(x)
		for i, v := range x {
			if want := map[bool]float32{true: 1}[i == 3]; v != want {
				t.Errorf("softmax[%d] is %g, want %g", i, v, want)
			}
		}
	})
}

// TestRotationsAndSumsAgreeAcrossLevels: these round like the Go version at every level.
func TestRotationsAndSumsAgreeAcrossLevels(t *testing.T) {
	r := newRand(21)
	for _, n := range []int{2, 4, 16, 24, 32, 62, 64, 80, 128} {
		x, cos, sin := randFloats(r, n), randFloats(r, n/2), randFloats(r, n/2)
		ops := []struct {
			name string
			f    func(x []float32)
		}{
			{"half", func(x []float32) { RopeHalf(x, cos, sin) }}, {"pairs", func(x []float32) { RopeInterleaved(x, cos, sin) }},
			{"add", func(y []float32) { Add(y, x) }}, {"scale", func(y []float32) { Scale(y, 1.7) }},
		}
		for _, op := range ops {
			var want []float32
			atEachLevel(t, func(t *testing.T) {
				got := slices.Clone(x)
				op.f(got)
				if want == nil {
					want = got
				} else if !slices.Equal(bits(got), bits(want)) {
					t.Errorf("%s of %d: %v, want %v", op.name, n, got, want)
				}
			})
		}
	}
}

// TestElementwiseResultsDoNotDependOnTheSplit: two halves of a vector, cut anywhere, have the bits of the whole.
func TestElementwiseResultsDoNotDependOnTheSplit(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(22)
		for _, n := range lengths {
			g, u := randFloats(r, n), randFloats(r, n)
			whole, parts := make([]float32, n), make([]float32, n)
			SiluMul(whole, g, u)
			cut := r.IntN(n + 1)
			SiluMul(parts[:cut], g[:cut], u[:cut])
			SiluMul(parts[cut:], g[cut:], u[cut:])
			if !slices.Equal(bits(whole), bits(parts)) {
				t.Fatalf("SiluMul of %d cut at %d differs", n, cut)
			}
		}
	})
}
