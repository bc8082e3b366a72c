package gguf

import (
	"fmt"
	"math"
)

// Dequant decodes len(dst) numbers of type t from src into dst. len(dst) must be a whole number
// of blocks and src exactly as long as those. Products are rounded to float32 one by one (no
// fused multiply-add), so the result is the same on every machine.
func Dequant(dst []float32, t Type, src []byte) error {
	l, ok := layoutOf(t)
	if !ok || !l.decoded {
		return fmt.Errorf("gguf: %s cannot be decoded; decoded are %s", t, decodableNames())
	}
	if len(dst)%l.numbers != 0 {
		return fmt.Errorf("gguf: %d numbers are not a multiple of %d, the block of %s", len(dst), l.numbers, t)
	}
	if need := len(dst) / l.numbers * l.bytes; len(src) != need {
		return fmt.Errorf("gguf: %d numbers of %s are %d bytes, got %d", len(dst), t, need, len(src))
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = Half(le.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16)
		}
	default:
		decode := blockDecoder(t)
		for len(dst) > 0 {
			decode(dst[:l.numbers], src[:l.bytes])
			dst, src = dst[l.numbers:], src[l.bytes:]
		}
	}
	return nil
}

func blockDecoder(t Type) func(y []float32, b []byte) {
	switch t {
	case Q8_0:
		return blockQ8_0
	case Q4_0:
		return blockQ4_0
	case Q4_1:
		return blockQ4_1
	case Q5_0:
		return blockQ5_0
	case Q5_1:
		return blockQ5_1
	case Q4_K:
		return blockQ4_K
	case Q5_K:
		return blockQ5_K
	case Q6_K:
		return blockQ6_K
	}
	panic("gguf: a type is marked decoded and has no decoder: " + t.String())
}

// Half returns the value of an IEEE half-precision float.
func Half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero and subnormal: frac · 2^-24, exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 31: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// The blocks of 32. y has 32 numbers; low nibbles are numbers 0 to 15, high ones 16 to 31.

func blockQ8_0(y []float32, b []byte) {
	d := Half(le.Uint16(b))
	for i := range y {
		y[i] = d * float32(int8(b[2+i]))
	}
}

func blockQ4_0(y []float32, b []byte) {
	d, q := Half(le.Uint16(b)), b[2:18]
	for i, n := range q {
		y[i] = d * float32(int(n&15)-8)
		y[i+16] = d * float32(int(n>>4)-8)
	}
}

func blockQ4_1(y []float32, b []byte) {
	d, m, q := Half(le.Uint16(b)), Half(le.Uint16(b[2:])), b[4:20]
	for i, n := range q {
		y[i] = float32(d*float32(n&15)) + m
		y[i+16] = float32(d*float32(n>>4)) + m
	}
}

func blockQ5_0(y []float32, b []byte) {
	d, high, q := Half(le.Uint16(b)), le.Uint32(b[2:]), b[6:22]
	for i, n := range q {
		lo := int(n&15) | int(high>>i&1)<<4
		hi := int(n>>4) | int(high>>(i+16)&1)<<4
		y[i] = d * float32(lo-16)
		y[i+16] = d * float32(hi-16)
	}
}

func blockQ5_1(y []float32, b []byte) {
	d, m, high, q := Half(le.Uint16(b)), Half(le.Uint16(b[2:])), le.Uint32(b[4:]), b[8:24]
	for i, n := range q {
		lo := uint32(n&15) | high>>i&1<<4
		hi := uint32(n>>4) | high>>(i+16)&1<<4
		y[i] = float32(d*float32(lo)) + m
		y[i+16] = float32(d*float32(hi)) + m
	}
}

// scaleMin unpacks scale and minimum j (0 to 7) of a Q4_K or Q5_K block from its 12 bytes.
func scaleMin(b []byte, j int) (scale, least float32) {
	if j < 4 {
		return float32(b[j] & 63), float32(b[j+4] & 63)
	}
	return float32(b[j+4]&15 | b[j-4]>>6<<4), float32(b[j+4]>>4 | b[j]>>6<<4)
}

func blockQ4_K(y []float32, b []byte) {
	d, dmin, scales, q := Half(le.Uint16(b)), Half(le.Uint16(b[2:])), b[4:16], b[16:144]
	for pair := 0; pair < 4; pair++ { // 64 numbers: 32 low nibbles, then 32 high
		s0, m0 := scaleMin(scales, 2*pair)
		s1, m1 := scaleMin(scales, 2*pair+1)
		d0, d1, least0, least1 := d*s0, d*s1, float32(dmin*m0), float32(dmin*m1)
		for i, n := range q[32*pair : 32*pair+32] {
			y[64*pair+i] = float32(d0*float32(n&15)) - least0
			y[64*pair+32+i] = float32(d1*float32(n>>4)) - least1
		}
	}
}

func blockQ5_K(y []float32, b []byte) {
	d, dmin, scales, high, q := Half(le.Uint16(b)), Half(le.Uint16(b[2:])), b[4:16], b[16:48], b[48:176]
	for pair := 0; pair < 4; pair++ {
		s0, m0 := scaleMin(scales, 2*pair)
		s1, m1 := scaleMin(scales, 2*pair+1)
		d0, d1, least0, least1 := d*s0, d*s1, float32(dmin*m0), float32(dmin*m1)
		for i, n := range q[32*pair : 32*pair+32] {
			lo := n&15 | high[i]>>(2*pair)&1<<4
			hi := n>>4 | high[i]>>(2*pair+1)&1<<4
			y[64*pair+i] = float32(d0*float32(lo)) - least0
			y[64*pair+32+i] = float32(d1*float32(hi)) - least1
		}
	}
}

func blockQ6_K(y []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], Half(le.Uint16(b[208:]))
	for half := 0; half < 2; half++ { // 128 numbers each
		y, low, high, scales := y[128*half:], low[64*half:], high[32*half:], scales[8*half:]
		for i := 0; i < 32; i++ {
			h := high[i]
			q := [4]byte{
				low[i]&15 | h&3<<4,
				low[i+32]&15 | h>>2&3<<4,
				low[i]>>4 | h>>4&3<<4,
				low[i+32]>>4 | h>>6<<4,
			}
			for quarter, n := range q {
				s := float32(d * float32(int8(scales[2*quarter+i/16])))
				y[32*quarter+i] = s * float32(int(n)-32)
			}
		}
	}
}
