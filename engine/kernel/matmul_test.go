package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// atEachLevel runs the body once per level that this machine has and restores the one in use.
func atEachLevel(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	was := Active()
	t.Cleanup(func() { use(t, was) })
	for _, l := range Levels() {
		use(t, l)
		t.Run(l.String(), body)
	}
}

func use(t testing.TB, l Level) {
	t.Helper()
	if err := Use(l); err != nil {
		t.Fatal(err)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func randFloats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// randRow makes one row in GGUF's byte order, with every value that the integers can have.
func randRow(r *rand.Rand, f Format, cols int) []byte {
	le := binary.LittleEndian
	b := make([]byte, f.RowBytes(cols))
	switch f {
	case F32:
		for k := range cols {
			le.PutUint32(b[4*k:], math.Float32bits(float32(r.NormFloat64())))
		}
	case BF16:
		for k := range cols {
			le.PutUint16(b[2*k:], floatToBF16(float32(r.NormFloat64())))
		}
	default:
		size := rowBlockBytes[f]
		for at := 0; at < len(b); at += size {
			for i := range size {
				b[at+i] = byte(r.Uint32())
			}
			le.PutUint16(b[at:], floatToHalf(float32(r.NormFloat64()*0.02)))
			if f == Q4_1 {
				le.PutUint16(b[at+2:], floatToHalf(float32(r.NormFloat64()*0.1)))
			}
		}
	}
	return b
}

func randMatrix(t testing.TB, r *rand.Rand, f Format, rows, cols int) *Matrix {
	t.Helper()
	m, err := Pack(f, rows, cols, func(int) []byte { return randRow(r, f, cols) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var allFormats = []Format{F32, BF16, Q8_0, Q4_0, Q4_1}

func TestPackKeepsEveryWeight(t *testing.T) {
	r := newRand(1)
	for _, f := range allFormats {
		const rows, cols = 37, 96
		src := make([][]byte, rows)
		for i := range src {
			src[i] = randRow(r, f, cols)
		}
		m, err := Pack(f, rows, cols, func(r int) []byte { return src[r] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, cols)
		for i := range rows {
			m.Row(got, i)
			if want := natural(f, src[i], cols); !slices.Equal(got, want) {
				t.Fatalf("%s row %d: %v, want %v", f, i, got, want)
			}
		}
	}
}

// natural decodes a row in GGUF's order.
func natural(f Format, b []byte, cols int) []float32 {
	le := binary.LittleEndian
	out := make([]float32, cols)
	for k := range out {
		blk := b[k/32*rowBlockBytes[f]:]
		i := k % 32
		switch f {
		case F32:
			out[k] = math.Float32frombits(le.Uint32(blk[4*i:]))
		case BF16:
			out[k] = bf16ToFloat(le.Uint16(blk[2*i:]))
		case Q8_0:
			out[k] = halfToFloat(le.Uint16(blk)) * float32(int8(blk[2+i]))
		case Q4_0:
			out[k] = halfToFloat(le.Uint16(blk)) * (float32(blk[2+i%16]>>(i/16*4)&15) - 8)
		case Q4_1:
			out[k] = halfToFloat(le.Uint16(blk))*float32(blk[4+i%16]>>(i/16*4)&15) + halfToFloat(le.Uint16(blk[2:]))
		}
	}
	return out
}

func TestPackRefusesWhatItCannotHold(t *testing.T) {
	row := func(int) []byte { return make([]byte, 7) }
	for _, c := range []struct {
		f          Format
		rows, cols int
		say        string
	}{
		{Q8_0, 16, 33, "multiple of 32"}, {Q8_0, 0, 32, "between 1 and"}, {Q8_0, 16, MaxDim + 32, "between 1 and"},
		{F32, MaxDim, MaxDim, "more than"}, {formats, 16, 32, "no packed form"}, {Q8_0, 16, 32, "row 0 has 7 bytes"},
	} {
		if _, err := Pack(c.f, c.rows, c.cols, row, nil); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("Pack(%v, %d, %d) = %v, want an error about %q", c.f, c.rows, c.cols, err, c.say)
		}
	}
}

// seen returns the activations as a product with weights of the format reads them.
func seen(f Format, x []float32) []float32 {
	if f.Form() == FormF32 {
		return x
	}
	out := make([]float32, len(x))
	if f.Form() == FormBF16 {
		for i, v := range x {
			out[i] = bf16ToFloat(floatToBF16(v))
		}
		return out
	}
	var rec q8Record
	for b := 0; b < len(x); b += BlockCols {
		quantiseGo(ptrOf(&rec), &x[b], 1, 0)
		for i := range BlockCols {
			out[b+i] = float32(rec.q[i]) * rec.scale
		}
	}
	return out
}

func TestMatMulMatchesFloat64(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(2)
		for _, f := range allFormats {
			shapes := [][3]int{{1, 32, 1}, {16, 32, 3}, {37, 96, 5}, {48, 576, 16}, {80, 1536, 19}, {100, 352, 33}}
			for range 6 {
				shapes = append(shapes, [3]int{1 + r.IntN(70), 32 * (1 + r.IntN(9)), 1 + r.IntN(40)})
			}
			for _, s := range shapes {
				rows, cols, n := s[0], s[1], s[2]
				m, x := randMatrix(t, r, f, rows, cols), randFloats(r, n*cols)
				var in Input
				in.Set(x, n, cols, f.Form())
				y := make([]float32, n*m.PaddedRows())
				MatMul(y, m.PaddedRows(), m, &in, 0, m.Panels())
				xs := seen(f, x)
				w := make([]float32, cols)
				for row := range rows {
					m.Row(w, row)
					for j := range n {
						want, size := 0.0, 0.0
						for k, v := range w {
							p := float64(v) * float64(xs[j*cols+k])
							want += p
							size += math.Abs(p)
						}
						if got := float64(y[j*m.PaddedRows()+row]); math.Abs(got-want) > 2e-6*size {
							t.Fatalf("%s %dx%d n=%d: row %d token %d is %g, want %g", f, rows, cols, n, row, j, got, want)
						}
					}
				}
				for j := range n {
					for _, v := range y[j*m.PaddedRows()+rows : (j+1)*m.PaddedRows()] {
						if v != 0 {
							t.Fatalf("%s %dx%d: a padding row is %g", f, rows, cols, v)
						}
					}
				}
			}
		}
	})
}

// TestQuantisedProductsAgreeAcrossLevels holds K2.
func TestQuantisedProductsAgreeAcrossLevels(t *testing.T) {
	for _, f := range []Format{Q8_0, Q4_0, Q4_1} {
		var want []uint32
		atEachLevel(t, func(t *testing.T) {
			r := newRand(3)
			const cols, n = 160, 21
			m, x := randMatrix(t, r, f, 50, cols), randFloats(r, n*cols)
			clear(x[64:96]) // a block without activations
			var in Input
			in.Set(x, n, cols, FormQ8)
			y := make([]float32, n*m.PaddedRows())
			MatMul(y, m.PaddedRows(), m, &in, 0, m.Panels())
			if got := bits(y); want == nil {
				want = got
			} else if !slices.Equal(got, want) {
				t.Errorf("%s at %s differs from %s", f, Active(), Levels()[0])
			}
		})
	}
}

func bits(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, v := range x {
		out[i] = math.Float32bits(v)
	}
	return out
}

// TestResultsDoNotDependOnCompany holds K1 for products: each token alone, whole panels, against every number of
// tokens and uneven splits.
func TestResultsDoNotDependOnCompany(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(4)
		for _, f := range allFormats {
			const rows, cols, most = 16*11 + 3, 224, 37
			m, x := randMatrix(t, r, f, rows, cols), randFloats(r, most*cols)
			ldy := m.PaddedRows() + 5
			alone := make([]float32, most*ldy)
			var in Input
			for j := range most {
				in.Set(x[j*cols:][:cols], 1, cols, f.Form())
				MatMul(alone[j*ldy:], ldy, m, &in, 0, m.Panels())
			}
			for n := 1; n <= most; n++ {
				y := make([]float32, n*ldy)
				in.Reset(n, cols, FormF32|FormQ8|f.Form())
				cut, block := r.IntN(n+1), r.IntN(cols/BlockCols+1)
				in.SetRange(x, cols, cut, n)
				in.SetBlocks(x, cols, 0, cut, block, cols/BlockCols)
				in.SetBlocks(x, cols, 0, cut, 0, block)
				for p := 0; p < m.Panels(); {
					q := min(m.Panels(), p+1+r.IntN(7))
					MatMul(y, ldy, m, &in, p, q)
					p = q
				}
				if !slices.Equal(bits(y), bits(alone[:n*ldy])) {
					t.Fatalf("%s: %d tokens together differ from each alone", f, n)
				}
			}
		}
	})
}

// TestCallsIntoAssemblyAreShort holds K4: of a product with a large matrix no call has more than its share.
func TestCallsIntoAssemblyAreShort(t *testing.T) {
	before := active
	changed := *before
	active = &changed
	defer func() { active = before }()
	r := newRand(6)
	for _, f := range allFormats {
		most, calls := 0, 0
		mm := before.mm[f]
		changed.mm[f] = func(c mmCall, n int) {
			calls, most = calls+1, max(most, c.np*c.kb*n)
			mm(c, n)
		}
		const rows, cols, n = 1024, 512, 17
		m, y := randMatrix(t, r, f, rows, cols), make([]float32, n*rows)
		var in Input
		in.Set(randFloats(r, n*cols), n, cols, f.Form())
		MatMul(y, rows, m, &in, 0, rows/PanelRows)
		if most > unitsMax || calls < 2 {
			t.Errorf("%s: %d calls, the largest of %d units, at most %d", f, calls, most, unitsMax)
		}
	}
}

// K5 for products.
func TestMatMulAllocatesNothing(t *testing.T) {
	r := newRand(5)
	for _, f := range allFormats {
		m, x := randMatrix(t, r, f, 64, 64), randFloats(r, 20*64)
		y := make([]float32, 20*64)
		var in Input
		in.Set(x, 20, 64, f.Form())
		if n := testing.AllocsPerRun(10, func() {
			in.Set(x, 20, 64, f.Form())
			MatMul(y, 64, m, &in, 0, 4)
		}); n != 0 {
			t.Errorf("%s: %v allocations per product", f, n)
		}
	}
}

func TestQuantisedActivationsAgreeAcrossLevels(t *testing.T) {
	r := newRand(6)
	x := randFloats(r, 32*50)
	for i := range 32 {
		x[i] = 0
		x[32+i] = float32(i) * 1e-42 // subnormal
		x[64+i] = 127.5
		x[96+i] = float32(i) - 15.5 // ties
	}
	want := make([]q8Record, 50)
	quantiseGo(ptrOf(&want[0]), &x[0], 50, q8TokenBytes)
	atEachLevel(t, func(t *testing.T) {
		got := make([]q8Record, 50)
		active.quantise(ptrOf(&got[0]), &x[0], 50, q8TokenBytes)
		for b := range got {
			if b != 1 && got[b] != want[b] {
				t.Fatalf("block %d: %+v, want %+v", b, got[b], want[b])
			}
		}
	})
}

func TestHalfPrecisionRoundTrips(t *testing.T) {
	for h := range 1 << 16 {
		f := halfToFloat(uint16(h))
		if f != f {
			continue
		}
		if got := floatToHalf(f); got != uint16(h) {
			t.Fatalf("%#04x became %g became %#04x", h, f, got)
		}
	}
	for _, c := range []struct {
		f    float32
		want uint16
	}{{65519, 0x7bff}, {65520, 0x7c00}, {1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02}, {3e-8, 1}, {2.9e-8, 0}} {
		if got := floatToHalf(c.f); got != c.want {
			t.Errorf("%g became %#04x, want %#04x", c.f, got, c.want)
		}
	}
}

func TestUnknownLevelIsRefusedByName(t *testing.T) {
	if err := useEnv("sse9"); err == nil || !strings.Contains(err.Error(), "generic, avx2, avx512, vnni, bf16") || !strings.Contains(err.Error(), "KERNELS") {
		t.Errorf("the error is %v", err)
	}
	if err := Use(Level(99)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(Generic)) {
		t.Errorf("the error is %v", err)
	}
}
