package kernel

import (
	"fmt"
	"math"
)

// Format is how the weights of a Matrix are stored.
type Format uint8

const (
	F32     Format = iota // 4 bytes per weight
	BF16                  // 2 bytes per weight: the upper half of a float32
	Q8_0                  // blocks of 32: f16 scale d, 32 int8 q; w = d*q
	Q4_0                  // blocks of 32: f16 scale d, 32 nibbles q; w = d*(q-8)
	Q4_1                  // blocks of 32: f16 scale d, f16 minimum m, 32 nibbles q; w = d*q+m
	formats               // count
)

const (
	// PanelRows is the number of rows in a panel: one 512-bit register of float32.
	PanelRows = 16
	// BlockCols is the number of columns that share a scale in the quantised formats of GGUF.
	BlockCols = 32
	// groupTokens is the largest number of tokens in a group of an Input: what 32 vector registers can accumulate
	// beside the eight registers of a weight block.
	groupTokens = 16
)

var formatNames = [formats]string{"F32", "BF16", "Q8_0", "Q4_0", "Q4_1"}

// rowBlockBytes is the size of 32 columns of one row in GGUF's own order; a panel has 16 times as much.
var rowBlockBytes = [formats]int{128, 64, 34, 18, 20}

func (f Format) String() string {
	if f < formats {
		return formatNames[f]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// RowBytes returns the size of one row of cols weights in GGUF's order, which is also its share of a panel.
func (f Format) RowBytes(cols int) int { return cols / BlockCols * rowBlockBytes[f] }

// Form returns the form of the activations that a product with weights of this format reads at the level in use.
func (f Format) Form() Form {
	switch {
	case f == BF16 && active.pairs:
		return FormBF16
	case f == F32 || f == BF16:
		return FormF32
	}
	return FormQ8
}

// halfToFloat converts an IEEE binary16, subnormals and infinities included.
func halfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&31), uint32(h&0x3ff)
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case exp == 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// floatToHalf rounds to the nearest IEEE binary16, ties to even; overflow becomes infinity.
func floatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: subnormal, a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	return sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
}

// floatToBF16 rounds to the nearest bfloat16, ties to even. A NaN stays a NaN.
func floatToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16 | 0x40)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func bf16ToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
