package model

import (
	"encoding/binary"
	"math"
	"unsafe"

	"baton/engine/kernel"
	"baton/engine/weights/gguf"
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

// source is how the rows of one tensor reach the kernels: as they are, or brought to a format
// that has panels.
type source struct {
	tensor  gguf.Tensor
	format  kernel.Format
	how     string                // what was done, for the log; "" if nothing
	same    bool                  // the format holds the very numbers of the file
	bytes   int                   // of a row after convert
	convert func(dst, src []byte) // nil: rows are taken as they are
}

// natural maps the types that kernels take as they are.
var natural = map[gguf.Type]kernel.Format{
	gguf.F32: kernel.F32, gguf.BF16: kernel.BF16, gguf.Q8_0: kernel.Q8_0, gguf.Q4_0: kernel.Q4_0, gguf.Q4_1: kernel.Q4_1,
}

// newSource decides the format of a weight matrix. With exact, everything becomes float32.
func newSource(t gguf.Tensor, exact bool) source {
	cols := t.Cols()
	if f, ok := natural[t.Type]; ok && (!exact || f == kernel.F32) {
		return source{tensor: t, format: f, same: true, bytes: t.Type.RowBytes(cols)}
	}
	if exact || t.Type == gguf.F16 {
		how := t.Type.String() + " as F32"
		return source{tensor: t, format: kernel.F32, how: how, same: true, bytes: 4 * cols, convert: func(dst, src []byte) {
			mustDequant(floats(dst), t.Type, src)
		}}
	}
	q8 := source{tensor: t, format: kernel.Q8_0, how: t.Type.String() + " as Q8_0", bytes: cols / group * q8GroupBytes}
	scratch := make([]float32, cols)
	q8.convert = func(dst, src []byte) {
		mustDequant(scratch, t.Type, src)
		quantQ8(dst, scratch)
	}
	if t.Type != gguf.Q4_K {
		return q8
	}
	q41 := source{tensor: t, format: kernel.Q4_1, how: "Q4_K as Q4_1", bytes: cols / group * q41GroupBytes, convert: q4kToQ41}
	if closerAsQ8(t, q8, q41) {
		return q8
	}
	return q41
}

// rowsProbed is how many rows closerAsQ8 looks at: enough for a mean, few enough to cost nothing.
const rowsProbed = 16

// closerAsQ8 compares both forms of a Q4_K tensor on a few rows. Q4_1 keeps the nibbles and
// rounds only the scales, so it wins unless a product of scales is beyond half precision.
func closerAsQ8(t gguf.Tensor, q8, q41 source) bool {
	want, got := make([]float32, t.Cols()), make([]float32, t.Cols())
	b8, b41 := make([]byte, q8.bytes), make([]byte, q41.bytes)
	var e8, e41 float64
	n := min(rowsProbed, t.Rows())
	for i := range n {
		row := t.Row(i * t.Rows() / n)
		mustDequant(want, t.Type, row)
		q8.convert(b8, row)
		dequantQ8(got, b8)
		e8 += squared(want, got)
		q41.convert(b41, row)
		dequantQ41(got, b41)
		e41 += squared(want, got)
	}
	return !(e41 <= e8) // a scale beyond half precision makes e41 infinite or not a number
}

// rows returns the function that kernel.Pack asks for rows.
func (s *source) rows() func(r int) []byte {
	if s.convert == nil {
		return s.tensor.Row
	}
	buf := bytesOf(make([]float32, (s.bytes+3)/4))[:s.bytes]
	return func(r int) []byte {
		s.convert(buf, s.tensor.Row(r))
		return buf
	}
}

// mustDequant decodes a row whose type and length were checked when the file was opened.
func mustDequant(dst []float32, t gguf.Type, src []byte) {
	if err := gguf.Dequant(dst, t, src); err != nil {
		panic("model: row of a checked tensor does not decode: " + err.Error())
	}
}

// floats views bytes that were allocated as float32; bytesOf is its inverse.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*4)
}
