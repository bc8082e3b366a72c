package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// table holds the implementations of one level. Every function pointer is set.
type table struct {
	level Level
	// mm multiplies np consecutive panels from w on with n tokens (1..16) of one group.
	mm [formats]func(c mmCall, n int)
	// quantise fills one token's records of an Input.
	quantise func(dst unsafe.Pointer, x *float32, blocks, stride int)
	// roundPairs is quantise for FormBF16; pairs says that products with BF16 weights read that form, and that
	// attention over KVBF16 rounds queries and probabilities to bfloat16.
	roundPairs func(dst unsafe.Pointer, x *float32, blocks, stride int)
	pairs      bool

	tile *tiles // of a level that has them

	rmsNorm     func(dst, x, w []float32, eps float32)
	ropeHalf    func(x, cos, sin []float32)
	ropePairs   func(x, cos, sin []float32)
	siluMul     func(dst, gate, up []float32)
	add         func(dst, x []float32)
	maxOf       func(x []float32) float32
	expSum      func(dst, x []float32, peak float32) float32
	dot         func(a, b []float32) float32
	scale       func(x []float32, by float32)
	scores      [kvTypes]func(c pageCall, n int)
	mix         [kvTypes]func(c pageCall, n int)
	softmaxPage [kvTypes]func(s *float32, stride, pages, tokens int) float32
	roundLines  func(x *float32, lines int)                                   // of queries, if pairs
	storeKV     func(page unsafe.Pointer, token int, k, v *float32, dims int) // KVBF16
	read        func(p unsafe.Pointer, lines int)                             // a multiple of 4 lines of 64 bytes
	storeQ8     func(page unsafe.Pointer, token int, k, v *float32, dims int) // KVQ8_0
}

// mmCall are the arguments of a product kernel.
type mmCall struct {
	w   unsafe.Pointer // first panel
	x   unsafe.Pointer // first token, in the form that the format needs
	y   *float32       // result of the first token and row
	kb  int            // blocks of 32 columns
	np  int            // panels
	xs  int            // bytes from one block of x to the next
	ldy int            // bytes from one token's results to the next
}

// unitsMax bounds np*kb*n of one call into assembly (K4): a block of 32 columns and 16 rows costs a token about 10
// cycles with VNNI, 30 in float32 and 60 at level avx2, so that many take at most about 70 microseconds. What streams
// from memory is bounded by runBytes.
const unitsMax = 1 << 12

// MatMul computes y[j*ldy+r] = sum over k of w[r][k] * in[j][k] for every token j of in and the rows r of panels
// [p0,p1), that is rows [16*p0, 16*p1): in the last panel also for the padding rows, which are zero. y must hold
// them, so ldy is at least w.PaddedRows() if all panels are computed. Several threads may compute different panels
// of the same product at once. By K1 neither the split nor the number of tokens changes a bit.
//
// It panics if the columns of w and in differ or in lacks the form that w.Format.Form() names.
func MatMul(y []float32, ldy int, w *Matrix, in *Input, p0, p1 int) {
	form := w.Format.Form()
	switch {
	case in.cols != w.Cols:
		panic(fmt.Sprintf("kernel: input of %d columns for a matrix of %d", in.cols, w.Cols))
	case in.forms&form == 0:
		panic("kernel: the input lacks the form that weights of " + w.Format.String() + " need")
	case p0 < 0 || p1 > w.Panels():
		panic(fmt.Sprintf("kernel: panels [%d,%d) of a matrix of %d", p0, p1, w.Panels()))
	case p0 >= p1 || in.n == 0:
		return
	case len(y) < (in.n-1)*ldy+p1*PanelRows:
		panic(fmt.Sprintf("kernel: results of length %d for %d tokens at stride %d and panels up to %d", len(y), in.n, ldy, p1))
	}
	blocks := w.Cols / BlockCols
	mm := active.mm[w.Format]
	first := 0 // token that is not in tiles
	if in.tiled > 0 && w.Format != F32 {
		tileMatMul(y, ldy, w, in, p0, p1)
		first = in.tiled
	}
	// A run of panels stays in the second-level cache while every group of tokens passes by.
	run := max(1, runBytes/w.panelBytes())
	for p := p0; p < p1; p += run {
		end := min(p+run, p1)
		for j := first / groupTokens * groupTokens; j < in.n; j += groupTokens {
			c, at := min(groupTokens, in.n-j), max(0, first-j)
			if at == c {
				continue
			}
			call := mmCall{kb: blocks, ldy: 4 * ldy}
			switch form {
			case FormF32:
				call.x, call.xs = unsafe.Pointer(&in.f32[j*in.cols+at*f32BlockCols]), c*f32BlockCols*4
			case FormBF16:
				call.x, call.xs = unsafe.Pointer(&in.b16[j*in.cols*2+at*b16TokenBytes]), c*b16TokenBytes
			default:
				call.x, call.xs = unsafe.Pointer(&in.q8[(j*blocks+at)*q8TokenBytes]), c*q8TokenBytes
			}
			step := max(1, unitsMax/(blocks*c))
			for q := p; q < end; q += step {
				call.w, call.y, call.np = w.panel(q), &y[(j+at)*ldy+q*PanelRows], min(step, end-q)
				mm(call, c-at)
			}
		}
	}
}

// runBytes is the size of the weights that are multiplied with all groups of tokens before the next run begins: half
// of the smallest second-level cache that AVX-512 machines have.
const runBytes = 256 << 10

func genericTable() *table {
	return &table{
		level:    Generic,
		mm:       [formats]func(mmCall, int){mmF32Go, mmBF16Go, mmQ8Go, mmQ40Go, mmQ41Go},
		quantise: quantiseGo, roundPairs: roundPairsGo,
		rmsNorm: rmsNormGo, ropeHalf: ropeHalfGo, ropePairs: ropePairsGo, siluMul: siluMulGo, add: addGo, scale: scaleGo,
		maxOf: maxOfGo, expSum: expSumGo, dot: dotGo,
		scores:      [kvTypes]func(pageCall, int){scoresBF16Go, scoresF32Go, scoresQ8Go},
		mix:         [kvTypes]func(pageCall, int){mixBF16Go, mixF32Go, mixQ8Go},
		softmaxPage: [kvTypes]func(*float32, int, int, int) float32{softmaxPageGo, softmaxPageGo, softmaxPageGo},
		storeKV:     storeKVGo,
		storeQ8:     storeQ8Go,
		read:        readGo,
	}
}

// panelSum is the accumulator of one token and one panel.
type panelSum [PanelRows]float32

// eachPanel runs the body for every panel and token of a call; size is the bytes of a block of 32 columns.
func (c mmCall) eachPanel(n, size int, body func(acc *panelSum, w, x unsafe.Pointer), tokenBytes int) {
	for p := range c.np {
		for j := range n {
			acc := (*panelSum)(unsafe.Add(unsafe.Pointer(c.y), j*c.ldy+p*PanelRows*4))
			*acc = panelSum{}
			body(acc, unsafe.Add(c.w, p*c.kb*size), unsafe.Add(c.x, j*tokenBytes))
		}
	}
}

func mmF32Go(c mmCall, n int) {
	c.eachPanel(n, 2048, func(acc *panelSum, w, x unsafe.Pointer) {
		for b := range 2 * c.kb {
			f32Block(acc, unsafe.Add(w, 1024*b), (*[16]float32)(unsafe.Add(x, c.xs*b)))
		}
	}, 64)
}

func mmBF16Go(c mmCall, n int) {
	c.eachPanel(n, 1024, func(acc *panelSum, w, x unsafe.Pointer) {
		for b := range 2 * c.kb {
			bf16Block(acc, unsafe.Add(w, 512*b), (*[16]float32)(unsafe.Add(x, c.xs*b)))
		}
	}, 64)
}

// bf16Block adds 16 columns of a bfloat16 panel, in order.
func bf16Block(acc *panelSum, w unsafe.Pointer, xs *[16]float32) {
	ws := (*[8][PanelRows / 4][4]uint32)(w)
	sums := (*[PanelRows / 4][4]float32)(unsafe.Pointer(acc))
	for r := range sums {
		a, b, c, d := sums[r][0], sums[r][1], sums[r][2], sums[r][3]
		for k := range ws {
			row, v, u := &ws[k][r], xs[2*k], xs[2*k+1]
			a += float32(lowBF16(row[0]) * v)
			b += float32(lowBF16(row[1]) * v)
			c += float32(lowBF16(row[2]) * v)
			d += float32(lowBF16(row[3]) * v)
			a += float32(highBF16(row[0]) * u)
			b += float32(highBF16(row[1]) * u)
			c += float32(highBF16(row[2]) * u)
			d += float32(highBF16(row[3]) * u)
		}
		sums[r] = [4]float32{a, b, c, d}
	}
}

// lowBF16 and highBF16 are the two weights in four bytes of a bfloat16 panel.
func lowBF16(w uint32) float32  { return math.Float32frombits(w << 16) }
func highBF16(w uint32) float32 { return math.Float32frombits(w &^ 0xffff) }

func mmQ8Go(c mmCall, n int) {
	c.eachPanel(n, 544, func(acc *panelSum, w, x unsafe.Pointer) {
		for b := range c.kb {
			rec := (*q8Record)(unsafe.Add(x, c.xs*b))
			w := unsafe.Add(w, 544*b)
			d := (*[PanelRows]uint16)(w)
			q := (*[8][PanelRows][4]int8)(unsafe.Add(w, 32))
			xs := rec.wide()
			for r := range acc {
				sum := int32(0)
				for g := range q {
					row, x := &q[g][r], (*[4]int32)(xs[4*g:])
					sum += int32(row[0])*x[0] + int32(row[1])*x[1] + int32(row[2])*x[2] + int32(row[3])*x[3]
				}
				acc[r] += float32(float32(float32(sum)*halfToFloat(d[r])) * rec.scale)
			}
		}
	}, q8TokenBytes)
}

// wide returns the activations of a record as they are multiplied, once for 16 rows.
func (rec *q8Record) wide() (xs [BlockCols]int32) {
	for i, v := range rec.q {
		xs[i] = int32(v)
	}
	return xs
}

// nibbleSum is the integer dot product of row r of a nibble block with 32 activations.
func nibbleSum(q *[4][PanelRows][4]byte, r int, xs *[BlockCols]int32) int32 {
	sum := int32(0)
	for g := range q {
		row, x, y := &q[g][r], (*[4]int32)(xs[4*g:]), (*[4]int32)(xs[16+4*g:])
		sum += int32(row[0]&15)*x[0] + int32(row[1]&15)*x[1] + int32(row[2]&15)*x[2] + int32(row[3]&15)*x[3]
		sum += int32(row[0]>>4)*y[0] + int32(row[1]>>4)*y[1] + int32(row[2]>>4)*y[2] + int32(row[3]>>4)*y[3]
	}
	return sum
}

func mmQ40Go(c mmCall, n int) {
	c.eachPanel(n, 288, func(acc *panelSum, w, x unsafe.Pointer) {
		for b := range c.kb {
			rec := (*q8Record)(unsafe.Add(x, c.xs*b))
			w := unsafe.Add(w, 288*b)
			d := (*[PanelRows]uint16)(w)
			q := (*[4][PanelRows][4]byte)(unsafe.Add(w, 32))
			xs := rec.wide()
			for r := range acc {
				sum := nibbleSum(q, r, &xs) + rec.bias4
				acc[r] += float32(float32(float32(sum)*halfToFloat(d[r])) * rec.scale)
			}
		}
	}, q8TokenBytes)
}

func mmQ41Go(c mmCall, n int) {
	c.eachPanel(n, 320, func(acc *panelSum, w, x unsafe.Pointer) {
		for b := range c.kb {
			rec := (*q8Record)(unsafe.Add(x, c.xs*b))
			w := unsafe.Add(w, 320*b)
			d := (*[2][PanelRows]uint16)(w)
			q := (*[4][PanelRows][4]byte)(unsafe.Add(w, 64))
			xs := rec.wide()
			for r := range acc {
				sum := nibbleSum(q, r, &xs)
				t := float32(float32(float32(sum)*halfToFloat(d[0][r])) * rec.scale)
				u := float32(halfToFloat(d[1][r]) * rec.scaleSum)
				acc[r] += float32(t + u)
			}
		}
	}, q8TokenBytes)
}
