package model

import (
	"unsafe"

	"baton/engine/kernel"
	"baton/engine/weights/gguf"
)

// source is how the rows of one tensor reach the kernels: as they are, or brought to a format
// that has panels.
type source struct {
	tensor  gguf.Tensor
	format  kernel.Format
	how     string                // what was done, for the log; "" if nothing
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
		return source{tensor: t, format: f, bytes: t.Type.RowBytes(cols)}
	}
	if exact || t.Type == gguf.F16 {
		how := t.Type.String() + " as F32"
		return source{tensor: t, format: kernel.F32, how: how, bytes: 4 * cols, convert: func(dst, src []byte) {
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
