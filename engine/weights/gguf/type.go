package gguf

import (
	"fmt"
	"strings"
)

// Type is how the numbers of a tensor are stored. The values are those of the file format.
type Type uint32

// Types that Dequant decodes.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// layout is the size of one block of a type. Every row is a whole number of blocks.
type layout struct {
	id      Type
	name    string
	numbers int // numbers in a block
	bytes   int // bytes in a block
	decoded bool
}

// layouts lists every type whose size is known, so that a file may carry tensors that nobody
// reads. Sizes: ggml-common.h of llama.cpp.
var layouts = []layout{
	{F32, "F32", 1, 4, true}, {F16, "F16", 1, 2, true}, {BF16, "BF16", 1, 2, true},
	{Q8_0, "Q8_0", 32, 34, true},
	{Q4_0, "Q4_0", 32, 18, true}, {Q4_1, "Q4_1", 32, 20, true},
	{Q5_0, "Q5_0", 32, 22, true}, {Q5_1, "Q5_1", 32, 24, true},
	{Q4_K, "Q4_K", 256, 144, true}, {Q5_K, "Q5_K", 256, 176, true}, {Q6_K, "Q6_K", 256, 210, true},
	{10, "Q2_K", 256, 84, false}, {11, "Q3_K", 256, 110, false},
	{16, "IQ2_XXS", 256, 66, false}, {17, "IQ2_XS", 256, 74, false}, {18, "IQ3_XXS", 256, 98, false},
	{19, "IQ1_S", 256, 50, false}, {20, "IQ4_NL", 32, 18, false}, {21, "IQ3_S", 256, 110, false},
	{22, "IQ2_S", 256, 82, false}, {23, "IQ4_XS", 256, 136, false}, {29, "IQ1_M", 256, 56, false},
	{24, "I8", 1, 1, false}, {25, "I16", 1, 2, false}, {26, "I32", 1, 4, false}, {27, "I64", 1, 8, false},
	{28, "F64", 1, 8, false},
	{34, "TQ1_0", 256, 54, false}, {35, "TQ2_0", 256, 66, false}, {39, "MXFP4", 32, 17, false},
}

func layoutOf(t Type) (layout, bool) {
	for _, l := range layouts {
		if l.id == t {
			return l, true
		}
	}
	return layout{}, false
}

// String returns the name that llama.cpp uses, or "type N".
func (t Type) String() string {
	if l, ok := layoutOf(t); ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Known says whether the size of the type is known; Parse refuses a tensor of any other.
func (t Type) Known() bool { _, ok := layoutOf(t); return ok }

// Decodable says whether Dequant decodes the type.
func (t Type) Decodable() bool { l, ok := layoutOf(t); return ok && l.decoded }

// Block returns how many numbers are stored together and in how many bytes; 0, 0 if the type
// is not known.
func (t Type) Block() (numbers, bytes int) {
	l, _ := layoutOf(t)
	return l.numbers, l.bytes
}

// RowBytes returns the bytes of a row of cols numbers, or 0 if the type is not known or cols is
// not a whole number of blocks (Parse refuses tensors where that is so, G2).
func (t Type) RowBytes(cols int) int {
	l, ok := layoutOf(t)
	if !ok || cols < 0 || cols%l.numbers != 0 {
		return 0
	}
	return cols / l.numbers * l.bytes
}

// decodableNames lists the types for error messages.
func decodableNames() string {
	var s []string
	for _, l := range layouts {
		if l.decoded {
			s = append(s, l.name)
		}
	}
	return strings.Join(s, ", ")
}
