package model

import (
	"encoding/binary"
	"math"
)

// group is the number of values that share a scale in every 32-value GGUF type.
const group = 32

// Bytes of one group in the two types that others are brought to.
const (
	q8GroupBytes  = 2 + group
	q41GroupBytes = 2 + 2 + group/2
)

// toF16 rounds to the nearest half-precision number, ties to even. Values beyond its range
// become infinite, so a caller that needs finite ones compares first.
func toF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	exp := int(b >> 23 & 0xff)
	man := b & 0x7fffff
	switch {
	case exp == 0xff:
		if man != 0 {
			return sign | 0x7e00
		}
		return sign | 0x7c00
	case exp > 142: // 65520 and above rounds to infinity
		return sign | 0x7c00
	case exp < 102: // below half of the smallest subnormal
		return sign
	case exp < 113: // subnormal: shift the full mantissa into place
		man |= 0x800000
		shift := uint(126 - exp)
		half := uint32(1) << (shift - 1)
		r := man >> shift
		if rest := man & (1<<shift - 1); rest > half || rest == half && r&1 == 1 {
			r++
		}
		return sign | uint16(r)
	}
	return sign | uint16((b&0x7fffffff-112<<23+0xfff+(b>>13&1))>>13)
}

// fromF16 is exact.
func fromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h >> 10 & 31)
	man := uint32(h & 0x3ff)
	switch exp {
	case 0:
		v := float32(man) / (1 << 24)
		if sign != 0 {
			v = -v
		}
		return v
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// quantQ8 writes src, a whole number of groups, as Q8_0. The values are divided by the scale as
// it is stored, not as it was before rounding to half precision.
func quantQ8(dst []byte, src []float32) {
	for g := 0; g*group < len(src); g++ {
		x := src[g*group : (g+1)*group]
		out := dst[g*q8GroupBytes : (g+1)*q8GroupBytes]
		var most float32
		for _, v := range x {
			most = max(most, v, -v)
		}
		h := toF16(most / 127)
		d := fromF16(h)
		binary.LittleEndian.PutUint16(out, h)
		for i, v := range x {
			q := float64(0)
			if d > 0 {
				q = min(127, max(-127, math.RoundToEven(float64(v)/float64(d))))
			}
			out[2+i] = byte(int8(q))
		}
	}
}

// dequantQ8 is the inverse of quantQ8's format.
func dequantQ8(dst []float32, src []byte) {
	for i := range dst {
		g := src[i/group*q8GroupBytes:]
		dst[i] = fromF16(binary.LittleEndian.Uint16(g)) * float32(int8(g[2+i%group]))
	}
}

// q4kBlockBytes is a block of 256 values of Q4_K: d, dmin, 12 bytes of 6-bit scales, nibbles.
const q4kBlockBytes = 144

// q4kToQ41 rewrites a row of Q4_K as Q4_1: the nibbles stay, each group's d·scale and dmin·min
// are multiplied out and rounded to half precision (2^-11 relative, unless they underflow).
func q4kToQ41(dst, src []byte) {
	le := binary.LittleEndian
	for b := 0; b*q4kBlockBytes < len(src); b++ {
		blk := src[b*q4kBlockBytes:][:q4kBlockBytes]
		d, dmin := fromF16(le.Uint16(blk)), fromF16(le.Uint16(blk[2:]))
		for j := range 8 {
			sc, mn := q4kScale(blk[4:16], j)
			out := dst[(b*8+j)*q41GroupBytes:][:q41GroupBytes]
			le.PutUint16(out, toF16(d*float32(sc)))
			le.PutUint16(out[2:], toF16(-dmin*float32(mn)))
			// Groups 2i and 2i+1 are the low and the high nibbles of the same 32 bytes.
			nib := blk[16+j/2*32:][:32]
			shift := uint(j % 2 * 4)
			for i := range 16 {
				out[4+i] = nib[i]>>shift&15 | nib[16+i]>>shift&15<<4
			}
		}
	}
}

// q4kScale unpacks the 6-bit scale and min of group j.
func q4kScale(b []byte, j int) (scale, min byte) {
	if j < 4 {
		return b[j] & 63, b[j+4] & 63
	}
	return b[j+4]&15 | b[j-4]>>6<<4, b[j+4]>>4 | b[j]>>6<<4
}

// dequantQ41 decodes Q4_1.
func dequantQ41(dst []float32, src []byte) {
	le := binary.LittleEndian
	for i := range dst {
		g := src[i/group*q41GroupBytes:]
		q := g[4+i%16] & 15
		if i%group >= 16 {
			q = g[4+i%16] >> 4
		}
		dst[i] = fromF16(le.Uint16(g))*float32(q) + fromF16(le.Uint16(g[2:]))
	}
}

// squared returns the sum of squared differences.
func squared(a, b []float32) (s float64) {
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return s
}
