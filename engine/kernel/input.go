package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// Form is a set of ways in which an Input holds its activations.
type Form uint8

const (
	FormF32  Form = 1 << iota // float32, for weights in F32 and BF16
	FormQ8                    // int8 with a scale per 32, for quantised weights
	FormBF16                  // bfloat16, for weights in BF16 at levels that multiply such pairs
)

const (
	// f32BlockCols is the length of the runs that the float form interleaves: one 64-byte line.
	f32BlockCols = 16
	// q8TokenBytes is the size of 32 activations of one token in the int8 form: 32 int8 q, then
	// int32 -128*sum(q), int32 -8*sum(q), float32 scale, float32 scale*sum(q).
	q8TokenBytes = 48
	// b16TokenBytes is the size of 32 activations of one token in bfloat16.
	b16TokenBytes = 64
	// MaxTokens bounds the tokens of one Input. A step of the engine has a few thousand at most.
	MaxTokens = 1 << 16
)

// Input holds the activations of n tokens, each with the same number of columns, in the forms that MatMul reads. It
// is prepared once and used for every matrix that multiplies these activations. The zero value is ready for Reset; Free
// gives its memory back.
//
// Tokens stand in groups of 16, the last group may be smaller; within a group of c tokens the layout is
//
//	FormF32  [cols/16][c][16] float32
//	FormQ8   [cols/32][c] records of 48 bytes
//	FormBF16 [cols/32][c][32] bfloat16
//
// An Input is filled by one goroutine, or in parts by several between two barriers (Reset by one, SetRange or SetBlocks by all).
type Input struct {
	n, cols int
	forms   Form
	f32     []float32 // [n*cols]
	q8      []byte    // [n*cols/32*48]
	b16     []byte    // [n*cols*2]
	tiled   int       // the first tokens are in tiles
	tile    []byte    // [tiled/16, up to an even number][cols/32][16][32] bfloat16
}

// Tokens returns the number of tokens that Reset was told.
func (in *Input) Tokens() int { return in.n }

// Cols returns the number of columns per token.
func (in *Input) Cols() int { return in.cols }

// Reset makes room for n tokens of cols activations in the given forms. It allocates only when it needs more memory
// than ever before, and then gives the old one back. It panics if cols is not a multiple of 32, which Pack has refused for the matrix.
func (in *Input) Reset(n, cols int, forms Form) {
	if n < 0 || n > MaxTokens || cols <= 0 || cols > MaxDim || cols%BlockCols != 0 {
		panic(fmt.Sprintf("kernel: input of %d tokens and %d columns; at most %d tokens, and columns in multiples of %d", n, cols, MaxTokens, BlockCols))
	}
	in.n, in.cols, in.forms, in.tiled = n, cols, forms, 0
	if forms&FormF32 != 0 {
		in.f32 = Sized(in.f32, n*cols)
	}
	if forms&FormQ8 != 0 {
		in.q8 = Sized(in.q8, n*cols/BlockCols*q8TokenBytes)
	}
	if forms&FormBF16 != 0 {
		in.b16 = Sized(in.b16, 2*n*cols)
	}
}

// Free gives the memory back; the Input is as new afterwards.
func (in *Input) Free() {
	Free(in.f32)
	Free(in.q8)
	Free(in.b16)
	Free(in.tile)
	*in = Input{}
}

// SetRange fills tokens [lo,hi) from x, where token j is x[j*ldx:][:cols]. Different ranges may be filled at once.
// The result for a token does not depend on the range it was filled in.
func (in *Input) SetRange(x []float32, ldx, lo, hi int) {
	in.SetBlocks(x, ldx, lo, hi, 0, in.cols/BlockCols)
}

// SetBlocks is SetRange for the columns of blocks [b0,b1) of 32 alone: for a thread that has computed these columns of
// all tokens, and has them in its cache.
func (in *Input) SetBlocks(x []float32, ldx, lo, hi, b0, b1 int) {
	blocks := in.cols / BlockCols
	if lo < 0 || hi > in.n || b0 < 0 || b1 > blocks {
		panic(fmt.Sprintf("kernel: tokens [%d,%d) and blocks [%d,%d) of an input of %d and %d", lo, hi, b0, b1, in.n, blocks))
	}
	if b0 >= b1 {
		return
	}
	for j := lo; j < hi; j++ {
		row := x[j*ldx+b0*BlockCols:][:(b1-b0)*BlockCols]
		first := j / groupTokens * groupTokens
		c, at := min(groupTokens, in.n-first), j-first
		if in.forms&FormF32 != 0 {
			dst := in.f32[first*in.cols+b0*BlockCols*c:]
			for b := 0; b < len(row); b += f32BlockCols {
				*(*[f32BlockCols]float32)(dst[b*c+at*f32BlockCols:]) = [f32BlockCols]float32(row[b:])
			}
		}
		if j < in.tiled {
			in.tileRow(j, b0, row)
			continue // weights in F32 have their form, no others are multiplied with it
		}
		if in.forms&FormQ8 != 0 {
			dst := in.q8[first*blocks*q8TokenBytes:][:c*blocks*q8TokenBytes]
			active.quantise(unsafe.Pointer(&dst[(b0*c+at)*q8TokenBytes]), &row[0], b1-b0, c*q8TokenBytes)
		}
		if in.forms&FormBF16 != 0 {
			dst := in.b16[first*in.cols*2:][:c*in.cols*2]
			active.roundPairs(unsafe.Pointer(&dst[(b0*c+at)*b16TokenBytes]), &row[0], b1-b0, c*b16TokenBytes)
		}
	}
}

// Set is Reset and SetRange of everything; x holds the n tokens one after another.
func (in *Input) Set(x []float32, n, cols int, forms Form) {
	in.Reset(n, cols, forms)
	in.SetRange(x, cols, 0, n)
}

// quantiseGo is the definition of the int8 form: scale = max|x|/127, q = x*(127/max|x|) rounded to even.
// dst is the token's record in the first block, stride the distance to its next one.
func quantiseGo(dst unsafe.Pointer, x *float32, blocks, stride int) {
	for b, row := range unsafe.Slice((*[BlockCols]float32)(unsafe.Pointer(x)), blocks) {
		peak := float32(0)
		for _, v := range row {
			if v < 0 {
				v = -v
			}
			if v > peak {
				peak = v
			}
		}
		inv := float32(0)
		if peak > 0 {
			inv = 127 / peak
		}
		rec := (*q8Record)(unsafe.Add(dst, b*stride))
		sum := int32(0)
		for i, v := range row {
			q := int32(math.RoundToEven(float64(float32(v * inv))))
			q = max(-127, min(127, q))
			rec.q[i] = int8(q)
			sum += q
		}
		rec.bias8, rec.bias4 = -128*sum, -8*sum
		rec.scale = peak / 127
		rec.scaleSum = rec.scale * float32(sum)
	}
}

// roundPairsGo rounds one token's activations to bfloat16; dst is its line in the first block.
func roundPairsGo(dst unsafe.Pointer, x *float32, blocks, stride int) {
	for b, row := range unsafe.Slice((*[BlockCols]float32)(unsafe.Pointer(x)), blocks) {
		line := (*[BlockCols]uint16)(unsafe.Add(dst, b*stride))
		for i, v := range row {
			line[i] = floatToBF16(v)
		}
	}
}

// q8Record is one token's share of a block in the int8 form.
type q8Record struct {
	q               [BlockCols]int8
	bias8, bias4    int32   // -128*sum(q), -8*sum(q): what an unsigned reading of the weights adds too much, negated
	scale, scaleSum float32 // scale, scale*sum(q)
}
