package main

import (
	"fmt"
	"math"
)

// vecKernels prints the elementwise operations. All of them take a positive multiple of 16 elements. What is bound by
// loads and stores exists for AVX2 only and serves every vector level.
func vecKernels(f *file) {
	for _, i := range []isa{avx2, avx512} {
		rmsNorm(f, i)
		siluMul(f, i)
		expSum(f, i)
	}
	ropeHalf(f)
	ropePairs(f)
	addScale(f)
	maxOf(f)
	dot(f)
	read(f)
	f.begin("pause", "One look of a spin loop.", nil, "")
	f.p("PAUSE")
	f.p("RET")
	f.begin("vendorWord", "The first four letters of the maker's name, from CPUID.", nil, "uint32")
	f.p("XORL AX, AX")
	f.p("XORL CX, CX")
	f.p("CPUID")
	f.p("MOVL BX, ret+0(FP)")
	f.p("RET")
	constants(f)
}

// read loads memory and does nothing with it.
func read(f *file) {
	params := []param{{"p", "unsafe.Pointer"}, {"lines", "int"}}
	f.begin("readAVX2", "lines of 64 bytes, a multiple of 4.", params, "")
	f.load(params, "SI", "CX")
	loop := f.label("lines")
	for off := 0; off < 256; off += 64 {
		f.p("PREFETCHT0 %d(SI)", aheadQuant+off)
	}
	for off := 0; off < 256; off += 32 {
		f.p("VMOVDQU %d(SI), Y%d", off, off/32)
	}
	f.p("ADDQ $256, SI")
	f.p("SUBQ $4, CX")
	f.p("JNZ %s", loop)
	f.end()
}

// expTable are the constants of exp, each repeated to 64 bytes: limits, log2(e), ln 2 in two parts, the polynomial
// for (e^r-1-r)/r^2 (from Cephes' expf), 1. Below -104 the result rounds to 0; AVX2, which builds the power of two by
// hand and has no subnormals that way, gives 0 below -87.3.
var expTable = []float32{
	-104, 89, // AVX-512 limits
	-87.3, 88, // AVX2 limits
	1.44269504, -0.693359375, 2.12194440e-4,
	1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
	1,
}

const (
	expLimits    = 0
	expLimitsTwo = 2
	expLog2e     = 4
	expLn2       = 5
	expPoly      = 7
	expOne       = 13
)

func expConst(n int) string { return fmt.Sprintf("·expTable+%d(SB)", 64*n) }

// exp replaces register a by its exponential; t, u and m are temporaries.
func (f *file) exp(i isa, a, t, u, m int) {
	limits := expLimits
	if i == avx2 {
		limits = expLimitsTwo
		f.p("VCMPPS $13, %s, %s, %s", expConst(limits), i.r(a), i.r(m)) // a >= limit
	}
	f.p("VMAXPS %s, %s, %s", expConst(limits), i.r(a), i.r(a))
	f.p("VMINPS %s, %s, %s", expConst(limits+1), i.r(a), i.r(a))
	f.p("VMULPS %s, %s, %s", expConst(expLog2e), i.r(a), i.r(t))
	if i == avx512 {
		f.p("VRNDSCALEPS $8, Z%d, Z%d", t, t)
	} else {
		f.p("VROUNDPS $8, Y%d, Y%d", t, t)
	}
	f.p("VFMADD231PS %s, %s, %s", expConst(expLn2), i.r(t), i.r(a))
	f.p("VFMADD231PS %s, %s, %s", expConst(expLn2+1), i.r(t), i.r(a))
	f.p("VMOVUPS %s, %s", expConst(expPoly), i.r(u))
	for k := 1; k < 6; k++ {
		f.p("VFMADD213PS %s, %s, %s", expConst(expPoly+k), i.r(a), i.r(u))
	}
	f.p("VFMADD213PS %s, %s, %s", expConst(expOne), i.r(a), i.r(u))
	f.p("VFMADD213PS %s, %s, %s", expConst(expOne), i.r(u), i.r(a))
	if i == avx512 {
		f.p("VSCALEFPS Z%d, Z%d, Z%d", t, a, a)
		return
	}
	f.p("VCVTPS2DQ Y%d, Y%d", t, t)
	f.p("VPSLLD $23, Y%d, Y%d", t, t)
	f.p("VPADDD Y%d, Y%d, Y%d", t, a, a)
	f.p("VANDPS Y%d, Y%d, Y%d", m, a, a)
}

func constants(f *file) {
	for n, v := range expTable {
		for k := range 16 {
			fmt.Fprintf(&f.body, "\nDATA ·expTable+%d(SB)/4, $0x%08x", 64*n+4*k, math.Float32bits(v))
		}
	}
	fmt.Fprintf(&f.body, "\nGLOBL ·expTable(SB), RODATA|NOPTR, $%d\n", 64*len(expTable))
	for k, v := range []int{0, 0, 1, 1, 2, 2, 3, 3} {
		fmt.Fprintf(&f.body, "\nDATA pairLanes<>+%d(SB)/4, $%d", 4*k, v)
	}
	f.body.WriteString("\nGLOBL pairLanes<>(SB), RODATA|NOPTR, $32\n")
}

// each prints a loop over n (register CX, a multiple of 16) with 16 elements per turn; the body gets the byte offset of
// each register-wide part. The pointers advance by 64 bytes.
func (f *file) each(i isa, pointers []string, body func(off int)) {
	loop := f.label("loop")
	for off := 0; off < 64; off += i.bytes {
		body(off)
	}
	for _, p := range pointers {
		f.p("ADDQ $64, %s", p)
	}
	f.p("SUBQ $16, CX")
	f.p("JNZ %s", loop)
}

func rmsNorm(f *file, i isa) {
	params := []param{{"dst", "*float32"}, {"x", "*float32"}, {"w", "*float32"}, {"n", "int"}, {"eps", "float32"}}
	f.begin("rmsNorm"+i.suffix, "dst = x / sqrt(mean(x*x)+eps) * w; four sums of squares, by register in turn.", params, "")
	f.load(params, "DI", "SI", "DX", "CX")
	for k := range 4 {
		f.zero(i, k)
	}
	tail, done := f.newLabel("tail"), f.newLabel("done")
	square := func(k int) {
		f.p("VMOVUPS %d(SI), %s", i.bytes*k, i.r(4+k))
		f.p("VFMADD231PS %[1]s, %[1]s, %[2]s", i.r(4+k), i.r(k))
	}
	four := f.label("four")
	f.p("CMPQ CX, $%d", 4*i.lanes())
	f.p("JLT %s", tail)
	for k := range 4 {
		square(k)
	}
	f.p("ADDQ $%d, SI", 4*i.bytes)
	f.p("SUBQ $%d, CX", 4*i.lanes())
	f.p("JMP %s", four)
	f.put(tail)
	f.p("TESTQ CX, CX")
	f.p("JZ %s", done)
	square(0)
	f.p("ADDQ $%d, SI", i.bytes)
	f.p("SUBQ $%d, CX", i.lanes())
	f.p("JMP %s", tail)
	f.put(done)
	f.p("VADDPS %s, %s, %s", i.r(1), i.r(0), i.r(0))
	f.p("VADDPS %s, %s, %s", i.r(3), i.r(2), i.r(2))
	f.p("VADDPS %s, %s, %s", i.r(2), i.r(0), i.r(0))
	f.reduce(i, "ADD", 0, 5)
	f.p("MOVQ n+24(FP), CX")
	f.p("VXORPS X6, X6, X6")
	f.p("VCVTSI2SSQ CX, X6, X6")
	f.p("VDIVSS X6, X0, X0")
	f.p("VADDSS eps+32(FP), X0, X0")
	f.p("VSQRTSS X0, X0, X0")
	f.p("VMOVSS %s, X1", expConst(expOne))
	f.p("VDIVSS X0, X1, X0")
	f.p("VBROADCASTSS X0, %s", i.r(0))
	f.p("MOVQ x+8(FP), SI")
	f.each(i, []string{"SI", "DX", "DI"}, func(off int) {
		f.p("VMULPS %d(SI), %s, %s", off, i.r(0), i.r(1))
		f.p("VMULPS %d(DX), %s, %s", off, i.r(1), i.r(1))
		f.p("VMOVUPS %s, %d(DI)", i.r(1), off)
	})
	f.end()
}

func siluMul(f *file, i isa) {
	params := []param{{"dst", "*float32"}, {"gate", "*float32"}, {"up", "*float32"}, {"n", "int"}}
	f.begin("siluMul"+i.suffix, "dst = gate / (1+exp(-gate)) * up.", params, "")
	f.load(params, "DI", "SI", "DX", "CX")
	f.zero(i, 0)
	f.each(i, []string{"SI", "DX", "DI"}, func(off int) {
		f.p("VMOVUPS %d(SI), %s", off, i.r(1))
		f.p("VSUBPS %s, %s, %s", i.r(1), i.r(0), i.r(2))
		f.exp(i, 2, 3, 4, 5)
		f.p("VADDPS %s, %s, %s", expConst(expOne), i.r(2), i.r(2))
		f.p("VDIVPS %s, %s, %s", i.r(2), i.r(1), i.r(1))
		f.p("VMULPS %d(DX), %s, %s", off, i.r(1), i.r(1))
		f.p("VMOVUPS %s, %d(DI)", i.r(1), off)
	})
	f.end()
}

func expSum(f *file, i isa) {
	params := []param{{"dst", "*float32"}, {"x", "*float32"}, {"n", "int"}, {"peak", "float32"}}
	f.begin("expSum"+i.suffix, "dst = exp(x-peak); returns the sum.", params, "float32")
	f.load(params, "DI", "SI", "CX")
	f.p("VBROADCASTSS peak+24(FP), %s", i.r(0))
	f.zero(i, 1)
	f.each(i, []string{"SI", "DI"}, func(off int) {
		f.p("VMOVUPS %d(SI), %s", off, i.r(2))
		f.expOf(i)
		f.p("VADDPS %s, %s, %s", i.r(2), i.r(1), i.r(1))
		f.p("VMOVUPS %s, %d(DI)", i.r(2), off)
	})
	f.reduce(i, "ADD", 1, 2)
	f.p("VMOVSS X1, ret+32(FP)")
	f.end()
}

// ropeHalf and ropePairs multiply and add without fusing, as the Go version does, so that their bits agree.
func ropeHalf(f *file) {
	params := []param{{"x", "*float32"}, {"cos", "*float32"}, {"sin", "*float32"}, {"n", "int"}}
	f.begin("ropeHalfAVX2", "x[n], then x[n] more: pairs (x[i], x[n+i]) rotated.", params, "")
	f.load(params, "SI", "DX", "DI", "CX")
	f.p("LEAQ (SI)(CX*4), R8")
	f.each(avx2, []string{"SI", "R8", "DX", "DI"}, func(off int) {
		f.p("VMOVUPS %d(SI), Y0", off)
		f.p("VMOVUPS %d(R8), Y1", off)
		f.p("VMOVUPS %d(DX), Y2", off)
		f.p("VMOVUPS %d(DI), Y3", off)
		f.p("VMULPS Y2, Y0, Y4")
		f.p("VMULPS Y3, Y1, Y5")
		f.p("VSUBPS Y5, Y4, Y4")
		f.p("VMULPS Y2, Y1, Y5")
		f.p("VMULPS Y3, Y0, Y6")
		f.p("VADDPS Y6, Y5, Y5")
		f.p("VMOVUPS Y4, %d(SI)", off)
		f.p("VMOVUPS Y5, %d(R8)", off)
	})
	f.end()
}

func ropePairs(f *file) {
	params := []param{{"x", "*float32"}, {"cos", "*float32"}, {"sin", "*float32"}, {"n", "int"}}
	f.begin("ropePairsAVX2", "x[n]: pairs (x[2i], x[2i+1]) rotated; cos and sin have n/2 elements.", params, "")
	f.load(params, "SI", "DX", "DI", "CX")
	f.p("VMOVDQU pairLanes<>(SB), Y7")
	loop := f.label("loop")
	for off := 0; off < 64; off += 32 {
		f.p("VMOVUPS %d(DX), X2", off/2)
		f.p("VMOVUPS %d(DI), X3", off/2)
		f.p("VPERMPS Y2, Y7, Y2")
		f.p("VPERMPS Y3, Y7, Y3")
		f.p("VMOVUPS %d(SI), Y0", off)
		f.p("VPERMILPS $0xb1, Y0, Y1")
		f.p("VMULPS Y2, Y0, Y0")
		f.p("VMULPS Y3, Y1, Y1")
		f.p("VADDSUBPS Y1, Y0, Y0")
		f.p("VMOVUPS Y0, %d(SI)", off)
	}
	f.p("ADDQ $64, SI")
	f.p("ADDQ $32, DX")
	f.p("ADDQ $32, DI")
	f.p("SUBQ $16, CX")
	f.p("JNZ %s", loop)
	f.end()
}

func addScale(f *file) {
	params := []param{{"dst", "*float32"}, {"x", "*float32"}, {"n", "int"}}
	f.begin("addAVX2", "dst += x.", params, "")
	f.load(params, "DI", "SI", "CX")
	f.each(avx2, []string{"DI", "SI"}, func(off int) {
		f.p("VMOVUPS %d(SI), Y0", off)
		f.p("VADDPS %d(DI), Y0, Y0", off)
		f.p("VMOVUPS Y0, %d(DI)", off)
	})
	f.end()
	params = []param{{"x", "*float32"}, {"n", "int"}, {"by", "float32"}}
	f.begin("scaleAVX2", "x *= by.", params, "")
	f.load(params, "SI", "CX")
	f.p("VBROADCASTSS by+16(FP), Y1")
	f.each(avx2, []string{"SI"}, func(off int) {
		f.p("VMULPS %d(SI), Y1, Y0", off)
		f.p("VMOVUPS Y0, %d(SI)", off)
	})
	f.end()
}

func maxOf(f *file) {
	params := []param{{"x", "*float32"}, {"n", "int"}}
	f.begin("maxOfAVX2", "The largest element.", params, "float32")
	f.load(params, "SI", "CX")
	f.p("VMOVUPS (SI), Y0")
	f.p("VMOVUPS 32(SI), Y1")
	f.each(avx2, []string{"SI"}, func(off int) { f.p("VMAXPS %d(SI), Y%d, Y%d", off, off/32, off/32) })
	f.p("VMAXPS Y1, Y0, Y0")
	f.reduce(avx2, "MAX", 0, 1)
	f.p("VMOVSS X0, ret+16(FP)")
	f.end()
}

func dot(f *file) {
	params := []param{{"a", "*float32"}, {"b", "*float32"}, {"n", "int"}}
	f.begin("dotAVX2", "The sum of products, in two partial sums of eight lanes.", params, "float32")
	f.load(params, "SI", "DI", "CX")
	f.zero(avx2, 0)
	f.zero(avx2, 1)
	f.each(avx2, []string{"SI", "DI"}, func(off int) {
		f.p("VMOVUPS %d(SI), Y2", off)
		f.p("VFMADD231PS %d(DI), Y2, Y%d", off, off/32)
	})
	f.p("VADDPS Y1, Y0, Y0")
	f.reduce(avx2, "ADD", 0, 1)
	f.p("VMOVSS X0, ret+24(FP)")
	f.end()
}
