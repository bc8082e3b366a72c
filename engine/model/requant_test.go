package model

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"baton/engine/weights/gguf"
)

// TestHalfPrecisionRoundsToNearestEven: every half-precision number survives, and between two
// neighbours the nearer one is taken, the even one in the middle.
func TestHalfPrecisionRoundsToNearestEven(t *testing.T) {
	for h := range uint32(1 << 16) {
		v := fromF16(uint16(h))
		var dec [1]float32
		if err := gguf.Dequant(dec[:], gguf.F16, binary.LittleEndian.AppendUint16(nil, uint16(h))); err != nil {
			t.Fatal(err)
		}
		if v != v {
			if dec[0] == dec[0] {
				t.Fatalf("%#04x is %v, gguf says %v", h, v, dec[0])
			}
			continue
		}
		if dec[0] != v || toF16(v) != uint16(h) {
			t.Fatalf("%#04x is %v, gguf says %v, goes back to %#04x", h, v, dec[0], toF16(v))
		}
		if h&0x7fff >= 0x7bff {
			continue
		}
		next := fromF16(uint16(h) + 1)
		mid := (v + next) / 2
		even := uint16(h) + uint16(h&1)
		if toF16(mid) != even {
			t.Fatalf("middle of %#04x and its neighbour goes to %#04x, want %#04x", h, toF16(mid), even)
		}
		if got := toF16(math.Nextafter32(mid, next)); got != uint16(h)+1 {
			t.Fatalf("above the middle of %#04x: %#04x", h, got)
		}
		if got := toF16(math.Nextafter32(mid, v)); got != uint16(h) {
			t.Fatalf("below the middle of %#04x: %#04x", h, got)
		}
	}
	for _, c := range []struct {
		v float32
		h uint16
	}{{65519, 0x7bff}, {65520, 0x7c00}, {-1e30, 0xfc00}, {1e-9, 0}, {float32(math.Inf(1)), 0x7c00}} {
		if toF16(c.v) != c.h {
			t.Errorf("%v is %#04x, want %#04x", c.v, toF16(c.v), c.h)
		}
	}
}

// TestRequantisedRowsStayClose: each type that has no panels, against its own values.
func TestRequantisedRowsStayClose(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		typ  gguf.Type
		how  string
		most float64 // relative error, root of the mean square
	}{
		{gguf.F16, "F16 as F32", 0}, {gguf.Q5_0, "Q5_0 as Q8_0", 0.005}, {gguf.Q5_1, "Q5_1 as Q8_0", 0.005},
		{gguf.Q5_K, "Q5_K as Q8_0", 0.005}, {gguf.Q6_K, "Q6_K as Q8_0", 0.006}, {gguf.Q4_K, "Q4_K as Q4_1", 0.001},
	} {
		for _, exact := range []bool{false, true} {
			tn := gguf.Tensor{Name: "w", Type: c.typ, Dims: []uint64{512, 40}, Data: encode(r, c.typ, 512*40, 0.05)}
			s := newSource(tn, exact)
			how, most := c.how, c.most
			if exact {
				how, most = c.typ.String()+" as F32", 0
			}
			if s.how != how {
				t.Errorf("%s exact=%v: taken %q, want %q", c.typ, exact, s.how, how)
			}
			var e, n float64
			want, got := make([]float32, 512), make([]float32, 512)
			row := s.rows()
			for i := range 40 {
				mustDequant(want, c.typ, tn.Row(i))
				mustDequant(got, typeOf(s), row(i))
				e += squared(want, got)
				n += squared(want, make([]float32, 512))
			}
			if rel := math.Sqrt(e / n); !(rel <= most) {
				t.Errorf("%s exact=%v: %.5f off, want at most %.5f", c.typ, exact, rel, most)
			}
		}
	}
}

// typeOf is the file type of a kernel format.
func typeOf(s source) gguf.Type {
	for typ, f := range natural {
		if f == s.format {
			return typ
		}
	}
	panic("no type")
}

// TestScalesBeyondHalfPrecisionGoToQ8: where a product of scales overflows half precision, Q4_1
// would turn whole groups into infinities, and Q8_0, whose scale is an eighth of it, is taken.
func TestScalesBeyondHalfPrecisionGoToQ8(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	tn := gguf.Tensor{Name: "w", Type: gguf.Q4_K, Dims: []uint64{256, 16}, Data: encode(r, gguf.Q4_K, 256*16, 0.05)}
	for i := range 16 {
		binary.LittleEndian.PutUint16(tn.Data[i*q4kBlockBytes:], toF16(2000))
	}
	if s := newSource(tn, false); s.how != "Q4_K as Q8_0" {
		t.Errorf("taken %q", s.how)
	}
}

// TestTheModelSaysWhatItBroughtToOtherFormats: whoever loads a model has a logger of his own.
func TestTheModelSaysWhatItBroughtToOtherFormats(t *testing.T) {
	plain := open(t, odd.build(t, 4, nil), Options{Threads: 1})
	if got := plain.Brought(); got != "" {
		t.Errorf("a file in float32: %q, want nothing", got)
	}
	half := odd
	half.types = map[string]gguf.Type{"ffn_down": gguf.F16}
	if got, want := open(t, half.build(t, 4, nil), Options{Threads: 1}).Brought(), "3 × F16 as F32"; got != want {
		t.Errorf("three layers with an F16 matrix: %q, want %q", got, want)
	}
}
