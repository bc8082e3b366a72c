package main

import "fmt"

// quantFormat is a quantised weight format as its kernels see it.
type quantFormat struct {
	name    string
	block   int    // bytes of 32 columns of a panel
	at      int    // offset of the integers in the block
	nibbles bool   // 4-bit integers, two to a byte
	minimum bool   // a minimum per block beside the scale
	from    string // register with the block's address
	bias    int    // offset in a token's record of the start value of the integer sum; 0: start from zero
}

var quantFormats = []quantFormat{
	{name: "Q8", block: 544, at: 32, from: "SI", bias: 32},
	{name: "Q40", block: 288, at: 32, from: "SI", nibbles: true, bias: 36},
	{name: "Q41", block: 320, at: 64, from: "SI", nibbles: true, minimum: true},
}

// The record of a token in a block: 32 int8, -128*sum, -8*sum, scale, scale*sum.
const (
	record     = 48
	atScale    = 40
	atScaleSum = 44
)

var mmParams = []param{{"w", "unsafe.Pointer"}, {"x", "unsafe.Pointer"}, {"y", "*float32"}, {"kb", "int"}, {"np", "int"}, {"xs", "int"}, {"ldy", "int"}}

func quantKernels(f *file) {
	for _, q := range quantFormats {
		for n := 1; n <= 16; n++ {
			vnniQuant(f, q, n)
		}
		for _, n := range []int{1, 2, 4} {
			avx2Quant(f, q, n)
		}
	}
	quantise(f)
}

const mmDoc = "w: panels, x: tokens of a group, y: results; kb blocks of 32 columns, np panels, xs and ldy in bytes."

// panelLoop prints the loop over panels around body, and the stores of the accumulators.
// Registers: SI weights, DI input, DX results, R8 panels, R9 xs, R10 ldy; body has CX blocks and R11 input cursor.
func panelLoop(f *file, n int, cursor int, start, body func(), store func(at string, token int)) {
	f.load(mmParams, "SI", "DI", "DX", "", "R8", "R9", "R10")
	if cursor != 0 {
		f.p("ADDQ $%d, DI", cursor)
	}
	panel := f.label("panel")
	f.p("MOVQ DI, R11")
	f.p("MOVQ kb+24(FP), CX")
	start()
	block := f.label("block")
	body()
	f.p("ADDQ R9, R11")
	f.p("DECQ CX")
	f.p("JNZ %s", block)
	f.p("MOVQ DX, R12")
	for t := range n {
		store("R12", t)
		if t < n-1 {
			f.p("ADDQ R10, R12")
		}
	}
	f.p("ADDQ $64, DX")
	f.p("DECQ R8")
	f.p("JNZ %s", panel)
	f.end()
}

// vnniQuant multiplies panels with n tokens. A block's 32x16 weights stay in eight registers (Z0-Z7) as unsigned
// bytes while each token's activations are broadcast from memory; the integer sum of a token starts at the value that
// takes the unsigned reading back. Z8 scale, Z9 minimum, Z10 mask, Z11-Z15 temporaries, Z16.. sums of the tokens.
func vnniQuant(f *file, q quantFormat, n int) {
	name := fmt.Sprintf("mm%sVNNI%d", q.name, n)
	f.begin(name, mmDoc, mmParams, "")
	f.table("mm"+q.name+"VNNI", n, name)
	mask := "0x80808080"
	if q.nibbles {
		mask = "0x0f0f0f0f"
	}
	f.p("MOVL $%s, AX", mask)
	f.p("VPBROADCASTD AX, Z10")
	cursor := n / 2 * record // the middle of the records, so that displacements fit a byte
	at := func(token, off int) int { return token*record + off - cursor }
	panelLoop(f, n, cursor, func() {
		for t := range n {
			f.zero(avx512, 16+t)
		}
	}, func() {
		f.fetchAhead(n, q.block, aheadQuant)
		vnniLoad(f, q)
		for t := range n {
			vnniToken(f, q, t, at)
		}
		f.p("ADDQ $%d, SI", q.block)
	}, func(to string, t int) { f.p("VMOVUPS Z%d, (%s)", 16+t, to) })
}

// vnniLoad reads a block's weights into Z0-Z7, its scale into Z8 and its minimum into Z9.
func vnniLoad(f *file, q quantFormat) {
	for g := range 8 {
		switch {
		case !q.nibbles:
			f.p("VPXORD %d(%s), Z10, Z%d", q.at+64*g, q.from, g)
		case g < 4:
			f.p("VMOVDQU32 %d(%s), Z%d", q.at+64*g, q.from, 4+g)
			f.p("VPANDD Z%d, Z10, Z%d", 4+g, g)
			f.p("VPSRLW $4, Z%d, Z%d", 4+g, 4+g)
			f.p("VPANDD Z%d, Z10, Z%d", 4+g, 4+g)
		}
	}
	f.p("VCVTPH2PS (%s), Z8", q.from)
	if q.minimum {
		f.p("VCVTPH2PS 32(%s), Z9", q.from)
	}
}

// vnniToken adds one block of one token. Two integer chains halve the latency; being integers they change no bit.
func vnniToken(f *file, q quantFormat, t int, at func(token, off int) int) {
	a, b := 11+t%2*2, 12+t%2*2
	if q.bias != 0 {
		f.p("VPBROADCASTD %d(R11), Z%d", at(t, q.bias), a)
	} else {
		f.zero(avx512, a)
	}
	f.zero(avx512, b)
	for g := range 8 {
		f.p("VPDPBUSD.BCST %d(R11), Z%d, Z%d", at(t, 4*g), g, a+(b-a)*(g%2))
	}
	f.p("VPADDD Z%d, Z%d, Z%d", b, a, a)
	f.p("VCVTDQ2PS Z%d, Z%d", a, a)
	f.p("VMULPS Z8, Z%d, Z%d", a, a)
	f.p("VMULPS.BCST %d(R11), Z%d, Z%d", at(t, atScale), a, a)
	if q.minimum {
		f.p("VMULPS.BCST %d(R11), Z9, Z%d", at(t, atScaleSum), b)
		f.p("VADDPS Z%d, Z%d, Z%d", b, a, a)
	}
	f.p("VADDPS Z%d, Z%d, Z%d", a, 16+t, 16+t)
}

// avx2Quant multiplies panels with n <= 4 tokens, each half of a panel in turn.
// Y0.. sums (two halves per token), Y8.. integer sums, Y12 weights, Y13 absolute weights or nibbles, Y14 activations,
// Y15 mask, or ones.
func avx2Quant(f *file, q quantFormat, n int) {
	name := fmt.Sprintf("mm%sAVX2x%d", q.name, n)
	f.begin(name, mmDoc, mmParams, "")
	f.table("mm"+q.name+"AVX2", n, name)
	if q.nibbles {
		f.p("MOVL $0x0f0f0f0f, AX")
		f.p("VMOVD AX, X15")
		f.p("VPBROADCASTD X15, Y15")
	} else {
		f.p("VPCMPEQW Y15, Y15, Y15")
		f.p("VPSRLW $15, Y15, Y15")
	}
	panelLoop(f, n, 0, func() {
		for t := range 2 * n {
			f.zero(avx2, t)
		}
	}, func() {
		f.fetchAhead(n, q.block, aheadQuant)
		avx2Block(f, q, n)
		f.p("ADDQ $%d, SI", q.block)
	}, func(to string, t int) {
		f.p("VMOVUPS Y%d, (%s)", 2*t, to)
		f.p("VMOVUPS Y%d, 32(%s)", 2*t+1, to)
	})
}

// avx2Block adds one block.
func avx2Block(f *file, q quantFormat, n int) {
	for half := range 2 {
		for t := range n {
			f.zero(avx2, 8+t)
		}
		for g := range 8 {
			avx2Quad(f, q, n, half, g)
		}
		avx2Scale(f, q, n, half)
	}
}

// avx2Quad adds four columns. For int8 weights the product is |w| * (x with the sign of w), which fits the signed
// 16 bits of VPMADDUBSW; for nibbles all eight quads of a block fit them: 16 * 15 * 127 = 30480.
func avx2Quad(f *file, q quantFormat, n, half, g int) {
	if !q.nibbles {
		f.p("VMOVDQU %d(%s), Y12", q.at+64*g+32*half, q.from)
		f.p("VPABSB Y12, Y13")
	} else {
		f.p("VMOVDQU %d(%s), Y13", q.at+64*(g%4)+32*half, q.from)
		if g >= 4 {
			f.p("VPSRLW $4, Y13, Y13")
		}
		f.p("VPAND Y13, Y15, Y13")
	}
	for t := range n {
		f.p("VPBROADCASTD %d(R11), Y14", t*record+4*g)
		if q.nibbles {
			f.p("VPMADDUBSW Y14, Y13, Y14")
			f.p("VPADDW Y14, Y%d, Y%d", 8+t, 8+t)
			continue
		}
		f.p("VPSIGNB Y12, Y14, Y14")
		f.p("VPMADDUBSW Y14, Y13, Y14")
		f.p("VPMADDWD Y15, Y14, Y14")
		f.p("VPADDD Y14, Y%d, Y%d", 8+t, 8+t)
	}
}

// avx2Scale turns the integer sums of half a panel into float32 and adds them.
func avx2Scale(f *file, q quantFormat, n, half int) {
	if q.nibbles {
		f.p("VPCMPEQW Y14, Y14, Y14")
		f.p("VPSRLW $15, Y14, Y14")
		for t := range n {
			f.p("VPMADDWD Y14, Y%d, Y%d", 8+t, 8+t)
		}
	}
	f.p("VCVTPH2PS %d(%s), Y12", 16*half, q.from)
	if q.minimum {
		f.p("VCVTPH2PS %d(%s), Y13", 32+16*half, q.from)
	}
	for t := range n {
		i, sum := 8+t, 2*t+half
		if q.nibbles && q.bias != 0 {
			f.p("VPBROADCASTD %d(R11), Y14", t*record+q.bias)
			f.p("VPADDD Y14, Y%d, Y%d", i, i)
		}
		f.p("VCVTDQ2PS Y%d, Y%d", i, i)
		f.p("VMULPS Y12, Y%d, Y%d", i, i)
		f.p("VBROADCASTSS %d(R11), Y14", t*record+atScale)
		f.p("VMULPS Y14, Y%d, Y%d", i, i)
		if q.minimum {
			f.p("VBROADCASTSS %d(R11), Y14", t*record+atScaleSum)
			f.p("VMULPS Y13, Y14, Y14")
			f.p("VADDPS Y14, Y%d, Y%d", i, i)
		}
		f.p("VADDPS Y%d, Y%d, Y%d", i, sum, sum)
	}
}

// quantise fills the records of one token from float32 (AVX2; every vector level uses it).
func quantise(f *file) {
	params := []param{{"dst", "unsafe.Pointer"}, {"x", "*float32"}, {"blocks", "int"}, {"stride", "int"}}
	f.begin("quantiseAVX2", "One token: blocks of 32 float32 from x into records that are stride bytes apart.", params, "")
	f.load(params, "DI", "SI", "CX", "R8")
	f.p("MOVL $0x7fffffff, AX")
	f.p("VMOVD AX, X15")
	f.p("VPBROADCASTD X15, Y15")
	f.p("MOVL $0x42fe0000, AX") // 127
	f.p("VMOVD AX, X14")
	f.p("VMOVDQU quantiseOrder<>(SB), Y13")
	f.p("VPCMPEQW Y12, Y12, Y12")
	f.p("VPSRLW $15, Y12, Y12") // ones
	loop := f.label("block")
	for i := range 4 {
		f.p("VMOVUPS %d(SI), Y%d", 32*i, i)
		f.p("VANDPS Y15, Y%d, Y%d", i, 4+i)
	}
	f.p("VMAXPS Y5, Y4, Y4")
	f.p("VMAXPS Y7, Y6, Y6")
	f.p("VMAXPS Y6, Y4, Y4")
	f.reduce(avx2, "MAX", 4, 5)
	f.p("VDIVSS X14, X4, X6") // scale = max/127
	f.p("VDIVSS X4, X14, X5") // 127/max, or infinity
	f.p("VXORPS X7, X7, X7")
	f.p("VCMPSS $0x0e, X7, X4, X7") // max > 0
	f.p("VANDPS X7, X5, X5")
	f.p("VBROADCASTSS X5, Y5")
	for i := range 4 {
		f.p("VMULPS Y5, Y%d, Y%d", i, i)
		f.p("VCVTPS2DQ Y%d, Y%d", i, i)
	}
	f.p("VPACKSSDW Y1, Y0, Y0")
	f.p("VPACKSSDW Y3, Y2, Y2")
	f.p("VPMADDWD Y12, Y0, Y1") // pairs of 16-bit values, added
	f.p("VPMADDWD Y12, Y2, Y3")
	f.p("VPADDD Y3, Y1, Y1")
	f.p("VPACKSSWB Y2, Y0, Y0")
	f.p("VPERMD Y0, Y13, Y0")
	f.p("VMOVDQU Y0, (DI)")
	f.p("VEXTRACTI128 $1, Y1, X3")
	f.p("VPADDD X3, X1, X1")
	f.p("VPSHUFD $0x4e, X1, X3")
	f.p("VPADDD X3, X1, X1")
	f.p("VPSHUFD $0xb1, X1, X3")
	f.p("VPADDD X3, X1, X1")
	f.p("VMOVD X1, AX")
	f.p("VCVTDQ2PS X1, X1")
	f.p("VMULSS X6, X1, X1")
	f.p("SHLL $3, AX")
	f.p("NEGL AX")
	f.p("MOVL AX, 36(DI)")
	f.p("SHLL $4, AX")
	f.p("MOVL AX, 32(DI)")
	f.p("VMOVSS X6, 40(DI)")
	f.p("VMOVSS X1, 44(DI)")
	f.p("ADDQ $128, SI")
	f.p("ADDQ R8, DI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.end()
	for i, v := range []int{0, 4, 1, 5, 2, 6, 3, 7} {
		fmt.Fprintf(&f.body, "\nDATA quantiseOrder<>+%d(SB)/4, $%d", 4*i, v)
	}
	f.body.WriteString("\nGLOBL quantiseOrder<>(SB), RODATA|NOPTR, $32\n")
}
