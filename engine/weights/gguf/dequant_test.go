package gguf

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

var decodedTypes = []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K}

// TestDequantMatchesReference compares with the decoder of the format's own Python package.
func TestDequantMatchesReference(t *testing.T) {
	f, err := os.Open("testdata/dequant.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	byName := map[string]Type{}
	for _, d := range decodedTypes {
		byName[d.String()] = d
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	seen := map[Type]bool{}
	for sc.Scan() {
		var row struct{ Type, Stored, Float32 string }
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		stored, _ := hex.DecodeString(row.Stored)
		want, _ := hex.DecodeString(row.Float32)
		typ := byName[row.Type]
		got := make([]float32, len(want)/4)
		if err := Dequant(got, typ, stored); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			if w := math.Float32frombits(le.Uint32(want[4*i:])); g != w {
				t.Fatalf("%s number %d is %v, want %v", row.Type, i, g, w)
			}
		}
		seen[typ] = true
	}
	for _, d := range decodedTypes {
		if !seen[d] {
			t.Errorf("%s is not in testdata/dequant.jsonl", d)
		}
	}
}

// TestDequantByHand has blocks whose numbers were worked out on paper.
func TestDequantByHand(t *testing.T) {
	half := func(x float32) []byte { // exact halves only
		switch x {
		case 1:
			return []byte{0x00, 0x3c}
		case 0.5:
			return []byte{0x00, 0x38}
		case -2:
			return []byte{0x00, 0xc0}
		}
		panic("not a half of this test")
	}
	cat := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	fill := func(n int, x byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = x
		}
		return b
	}
	rows := []struct {
		name  string
		typ   Type
		block []byte
		want  map[int]float32 // by index; the other numbers must be rest
		rest  float32
	}{
		{"Q8_0 d=0.5", Q8_0, cat(half(0.5), []byte{127, 0x80, 1}, fill(29, 0)), map[int]float32{0: 63.5, 1: -64, 2: 0.5}, 0},
		// byte 0 is 0xf0: number 0 has 0-8, number 16 has 15-8; all others have 8-8
		{"Q4_0 d=-2", Q4_0, cat(half(-2), []byte{0xf0}, fill(15, 0x88)), map[int]float32{0: 16, 16: -14}, 0},
		{"Q4_1 d=0.5 m=1", Q4_1, cat(half(0.5), half(1), []byte{0x2f}, fill(15, 0)), map[int]float32{0: 8.5, 16: 2}, 1},
		// high bits: number 0 and number 31; nibbles 0: 16-16 = 0 there, -16 elsewhere
		{"Q5_0 d=1", Q5_0, cat(half(1), []byte{1, 0, 0, 0x80}, fill(16, 0)), map[int]float32{0: 0, 31: 0}, -16},
		{"Q5_1 d=0.5 m=-2", Q5_1, cat(half(0.5), half(-2), []byte{2, 0, 1, 0}, fill(16, 0x10)), map[int]float32{
			0: -2, 1: 6, 2: -2, 3: -2, 4: -2, 5: -2, 6: -2, 7: -2, 8: -2, 9: -2, 10: -2, 11: -2, 12: -2, 13: -2, 14: -2, 15: -2,
			16: 6.5}, -1.5},
		// scale 0 is 3, minimum 0 is 5, all others 0: 1·3·q - 0.5·5; byte 0 gives number 0 q=7
		{"Q4_K", Q4_K, cat(half(1), half(0.5), []byte{3, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, []byte{7}, fill(127, 0)), q4kWant(), 0},
		// scale 4 is the low nibble of scales[8] with the top bits of scales[0]: 0x40>>6<<4 | 1 = 17
		{"Q4_K high scale", Q4_K, cat(half(1), half(1), []byte{0x40, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, fill(64, 0), []byte{0x02}, fill(63, 0)), map[int]float32{128: 34}, 0},
		// high bit of number 0 and (bit 1) of number 32: q = 16 with scales 1 and 2
		{"Q5_K", Q5_K, cat(half(0.5), half(1), []byte{1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{3}, fill(31, 0), fill(128, 0)), map[int]float32{0: 8, 32: 16}, 0},
		// scale 0 is 1, scale 15 is -2, the rest 0. Number 0: low nibble 5, high bits 2: 37-32.
		// Number 255: low nibble 0 and high bits 0: -32·-2; 240 to 254 the same.
		{"Q6_K", Q6_K, cat([]byte{5}, fill(127, 0), []byte{2}, fill(63, 0), []byte{1}, fill(14, 0), []byte{0xfe}, half(1)), q6kWant(), 0},
	}
	for _, r := range rows {
		n, _ := r.typ.Block()
		got := make([]float32, n)
		if err := Dequant(got, r.typ, r.block); err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		for i, g := range got {
			w, ok := r.want[i]
			if !ok {
				w = r.rest
			}
			if g != w {
				t.Errorf("%s: number %d is %v, want %v", r.name, i, g, w)
			}
		}
	}
}

func q4kWant() map[int]float32 {
	w := map[int]float32{}
	for i := 0; i < 32; i++ {
		w[i] = -2.5
	}
	w[0] = 18.5
	return w
}

func q6kWant() map[int]float32 {
	w := map[int]float32{}
	for i := 0; i < 16; i++ {
		w[i] = -32
		w[240+i] = 64
	}
	w[0] = 5
	return w
}

// element decodes number i of a block straight from the format's table, one number at a time.
func element(t Type, b []byte, i int) float64 {
	bit := func(from, n int) int { // n bits at bit offset from, little-endian
		v := 0
		for j := 0; j < n; j++ {
			v |= int(b[(from+j)/8]>>((from+j)%8)&1) << j
		}
		return v
	}
	half := func(at int) float64 { return halfSlow(le.Uint16(b[at:])) }
	nibble32 := func(at int) int { return bit(8*(at+i%16)+4*(i/16), 4) }
	// K-quants: 6-bit scales and minima of sub-block j
	scaleMin := func(j int) (float64, float64) {
		if j < 4 {
			return float64(bit(8*(4+j), 6)), float64(bit(8*(4+4+j), 6))
		}
		return float64(bit(8*(4+j+4), 4) + 16*bit(8*(4+j-4)+6, 2)), float64(bit(8*(4+j+4)+4, 4) + 16*bit(8*(4+j)+6, 2))
	}
	nibbleK := func(at int) int { return bit(8*(at+32*(i/64)+i%32)+4*(i/32%2), 4) }
	switch t {
	case F32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case F16:
		return half(0)
	case BF16:
		return float64(math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24))
	case Q8_0:
		return half(0) * float64(int8(b[2+i]))
	case Q4_0:
		return half(0) * float64(nibble32(2)-8)
	case Q4_1:
		return half(0)*float64(nibble32(4)) + half(2)
	case Q5_0:
		return half(0) * float64(nibble32(6)+16*bit(8*2+i, 1)-16)
	case Q5_1:
		return half(0)*float64(nibble32(8)+16*bit(8*4+i, 1)) + half(2)
	case Q4_K:
		s, m := scaleMin(i / 32)
		return half(0)*s*float64(nibbleK(16)) - half(2)*m
	case Q5_K:
		s, m := scaleMin(i / 32)
		return half(0)*s*float64(nibbleK(48)+16*bit(8*(16+i%32)+i/32, 1)) - half(2)*m
	case Q6_K:
		h, r := i/128, i%128
		low := bit(8*(64*h+r%64)+4*(r/64), 4)
		high := bit(8*(128+32*h+r%32)+2*(r/32), 2)
		return half(208) * float64(int8(b[192+i/16])) * float64(low+16*high-32)
	}
	panic("unknown type")
}

// halfSlow is the definition of an IEEE half.
func halfSlow(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exp, frac := int(h>>10&31), float64(h&1023)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func TestHalfIsExactForEveryValue(t *testing.T) {
	for h := 0; h < 1<<16; h++ {
		got, want := float64(Half(uint16(h))), halfSlow(uint16(h))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) && !math.IsNaN(want) {
			t.Fatalf("Half(%#04x) is %v, want %v", h, got, want)
		}
	}
}

// TestDequantMatchesTheTable compares random blocks, many at once so that block borders count,
// with element.
func TestDequantMatchesTheTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range decodedTypes {
		n, size := typ.Block()
		const blocks = 50
		src := make([]byte, blocks*size)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		for b := 0; b < blocks; b++ { // scales that are finite: exponent below 16
			for _, at := range map[Type][]int{F16: {0}, Q8_0: {0}, Q4_0: {0}, Q4_1: {0, 2}, Q5_0: {0}, Q5_1: {0, 2}, Q4_K: {0, 2}, Q5_K: {0, 2}, Q6_K: {208}}[typ] {
				src[b*size+at+1] &= 0xbf
			}
			switch typ {
			case F32:
				src[b*size+3] &= 0xbf
			case BF16:
				src[b*size+1] &= 0xbf
			}
		}
		got := make([]float32, blocks*n)
		if err := Dequant(got, typ, src); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			block := src[i/n*size : (i/n+1)*size]
			want := element(typ, block, i%n)
			// three roundings to float32 of numbers that may cancel
			bound := 3 * 0x1p-24 * (math.Abs(want) + spread(typ, block))
			if math.Abs(float64(g)-want) > bound {
				t.Fatalf("%s number %d is %v, want %v", typ, i, g, want)
			}
		}
	}
}

// spread is the largest intermediate value that a block can have, 0 for types of one product.
func spread(t Type, b []byte) float64 {
	switch t {
	case Q4_1, Q5_1:
		return 31*math.Abs(halfSlow(le.Uint16(b))) + math.Abs(halfSlow(le.Uint16(b[2:])))
	case Q4_K, Q5_K:
		return 63 * (31*math.Abs(halfSlow(le.Uint16(b))) + math.Abs(halfSlow(le.Uint16(b[2:]))))
	}
	return 0
}

func TestDequantRefusesWrongSizes(t *testing.T) {
	rows := []struct {
		n, bytes int
		typ      Type
		want     string
	}{
		{31, 34, Q8_0, "gguf: 31 numbers are not a multiple of 32, the block of Q8_0"},
		{32, 33, Q8_0, "gguf: 32 numbers of Q8_0 are 34 bytes, got 33"},
		{256, 84, 10, "gguf: Q2_K cannot be decoded; decoded are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K"},
		{1, 1, 77, "gguf: type 77 cannot be decoded; decoded are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K"},
	}
	for _, r := range rows {
		err := Dequant(make([]float32, r.n), r.typ, make([]byte, r.bytes))
		if err == nil || err.Error() != r.want {
			t.Errorf("%d numbers, %d bytes of %s: %v, want %s", r.n, r.bytes, r.typ, err, r.want)
		}
	}
}

func BenchmarkDequant(b *testing.B) {
	for _, typ := range []Type{F16, Q8_0, Q4_1, Q4_K, Q6_K} {
		b.Run(typ.String(), func(b *testing.B) {
			n, size := typ.Block()
			blocks := 4096 / n
			src, dst := make([]byte, blocks*size), make([]float32, blocks*n)
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				if err := Dequant(dst, typ, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
