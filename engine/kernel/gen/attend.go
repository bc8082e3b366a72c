package main

import "fmt"

var pageParams = []param{{"base", "unsafe.Pointer"}, {"table", "*int32"}, {"size", "int"}, {"pages", "int"}, {"dims", "int"}, {"x", "*float32"}, {"y", "*float32"}}

func attendKernels(f *file) {
	for _, t := range []panelType{typeBF16, typeF32, typePairs} {
		for n := 1; n <= 16; n++ {
			scores(f, t, avx512, n)
			mix(f, t, avx512, n, 1)
		}
		for n := 1; n <= 4; n++ {
			mix(f, t, avx512, n, 4)
		}
	}
	for _, t := range twoTypes {
		for _, n := range avx2Sizes {
			scores(f, t, avx2, n)
			mix(f, t, avx2, n, 1)
		}
	}
	softmaxPage(f, avx512, false)
	softmaxPage(f, avx512, true)
	softmaxPage(f, avx2, false)
	roundLines(f)
	attendConstants(f)
	storeKV(f)
}

// pageArgs are the parameters of the attention kernels. AVX-512 kernels are called for whole groups, so the distance between
// blocks is theirs; AVX2 kernels serve a part of a group and find the distance in an extra argument.
func pageArgs(i isa) []param {
	if i == avx512 {
		return pageParams
	}
	return append(append([]param{}, pageParams...), param{"xs", "int"})
}

// pageOf prints the address of the page that the table cursor names: base + table[0]*size.
func (f *file) pageOf(cursor, to string) {
	f.p("MOVLQSX (%s), %s", cursor, to)
	f.p("IMULQ R8, %s", to)
	f.p("ADDQ SI, %s", to)
}

// scores multiplies pages of keys with the queries of n columns.
// SI base, BX table cursor, R8 block size, R9 pages left, DX result; R11 x, CX dims left, R12 page.
func scores(f *file, t panelType, i isa, n int) {
	name := fmt.Sprintf("scores%s%sx%d", t.name, i.suffix, n)
	params := pageArgs(i)
	f.begin(name, "y[page][column][16] = keys of the page times x[dims][column][16].", params, "")
	c := f.pageTile(t, i, "scores", name, n)
	f.load(params, "SI", "BX", "R8", "R9", "", "DI", "DX", "R10")
	f.upperMask(i)
	if c.bias != 0 {
		f.p("ADDQ $%d, DI", c.bias)
	}
	page := f.label("page")
	f.pageOf("BX", "R12")
	f.p("ADDQ $4, BX")
	f.p("MOVQ DI, R11")
	f.p("MOVQ dims+32(FP), CX")
	for s := range n * i.sums() {
		f.zero(i, s)
	}
	dim := f.label("dim")
	c.step()
	f.p("ADDQ $%d, R12", t.block)
	f.nextX(i, n, "R11")
	f.p("DECQ CX")
	f.p("JNZ %s", dim)
	for tok := range n {
		f.store(i, c.acc(0, tok), 64*tok, "DX")
	}
	f.nextX(i, n, "DX")
	f.p("DECQ R9")
	f.p("JNZ %s", page)
	f.end()
}

// pageTile is the tile that the attention kernels share.
func (f *file) pageTile(t panelType, i isa, family, name string, n int) tile {
	f.table(family+t.name+i.suffix, n, name)
	c := tile{f: f, t: t, i: i, tokens: n, x: "R11", panels: []string{"(R12)"}}
	c.acc = func(p, tok int) int { return i.sums() * (p*n + tok) }
	if n > 8 {
		c.bias = 512
	}
	return c
}

// nextX moves a cursor to the next block of the group.
func (f *file) nextX(i isa, n int, cursor string) {
	if i == avx512 {
		f.p("ADDQ $%d, %s", 64*n, cursor)
	} else {
		f.p("ADDQ R10, %s", cursor)
	}
}

// mix adds pages of values, weighted by the probabilities of n columns, to y: 16 dimensions of all pages, then the
// next 16 (or 64 at a time).
// SI base, BX table cursor, R8 block size, R9 pages left, DX result, R13 dims left, R14 dims*64; R11 x, R12 page.
func mix(f *file, t panelType, i isa, n, panels int) {
	name := fmt.Sprintf("mix%s%sx%d", t.name, i.suffix, n)
	family := "mix"
	if panels > 1 {
		name, family = fmt.Sprintf("mix%s%sp%dx%d", t.name, i.suffix, panels, n), fmt.Sprintf("mixp%d", panels)
	}
	params := pageArgs(i)
	f.begin(name, "y[column][dims*16] += x[page][column][16] times values of the page"+
		map[bool]string{true: "; dims is a multiple of 4."}[panels > 1], params, "")
	c := f.pageTile(t, i, family, name, n)
	if panels == 4 {
		c.panels = []string{"(R12)", "(R12)(DI*1)", "(R12)(DI*2)", "(R12)(CX*1)"}
		f.p("MOVQ $%d, DI", t.block)
		f.p("MOVQ $%d, CX", 3*t.block)
	}
	f.load(params, "SI", "", "R8", "", "R13", "", "DX", "R10")
	f.p("MOVQ R13, R14")
	f.p("SHLQ $6, R14")
	f.upperMask(i)
	dim := f.label("dim")
	f.p("MOVQ table+8(FP), BX")
	f.p("MOVQ pages+24(FP), R9")
	f.p("MOVQ x+40(FP), R11")
	if c.bias != 0 {
		f.p("ADDQ $%d, R11", c.bias)
	}
	f.sums(c, n, panels, "VMOVUPS %[2]d(AX), %[1]s")
	page := f.label("page")
	f.pageOf("BX", "R12")
	f.p("ADDQ $4, BX")
	c.step()
	f.nextX(i, n, "R11")
	f.p("DECQ R9")
	f.p("JNZ %s", page)
	f.sums(c, n, panels, "VMOVUPS %[1]s, %[2]d(AX)")
	f.p("ADDQ $%d, DX", 64*panels)
	f.p("ADDQ $%d, SI", t.block*panels)
	f.p("SUBQ $%d, R13", panels)
	f.p("JNZ %s", dim)
	f.end()
}

// sums moves the sums from or to y at DX; the format gets a register and a displacement.
func (f *file) sums(c tile, n, panels int, format string) {
	f.p("MOVQ DX, AX")
	for tok := range n {
		for p := range panels {
			for s := range c.i.sums() {
				f.p(format, c.i.r(c.acc(p, tok)+s), 64*p+c.i.bytes*s)
			}
		}
		if tok < n-1 {
			f.p("ADDQ R14, AX")
		}
	}
}

// softmaxPage turns the scores of one column into exp(s-max) and returns their sum. With pairs the result is rounded to
// bfloat16, 16 of them in the first half of the 64 bytes, and it is the rounded values that are summed.
// SI cursor, R8 stride, R9 pages, R10 whole pages of tokens, R11 tokens in the last one.
func softmaxPage(f *file, i isa, pairs bool) {
	name := "softmaxPage" + i.suffix
	if pairs {
		name = "softmaxPagePairs"
	}
	params := []param{{"s", "*float32"}, {"stride", "int"}, {"pages", "int"}, {"tokens", "int"}}
	f.begin(name, "s: 16 scores per page, stride bytes apart; scores from tokens on become 0.", params, "float32")
	f.load(params, "SI", "R8", "R9", "R10")
	f.p("MOVQ R10, R11")
	f.p("SHRQ $4, R10")
	f.p("ANDQ $15, R11")
	f.p("SUBQ R10, R9") // pages after the whole ones
	f.softmaxMask(i)
	if pairs {
		f.roundConstants()
	}
	parts := i.sums()
	f.p("MOVL $0xff800000, AX") // -infinity
	f.broadcast(i, "AX", 0)
	f.p("VMOVAPS %s, %s", i.r(0), i.r(5))
	f.softmaxMax(i, parts)
	f.p("MOVQ s+0(FP), SI")
	f.zero(i, 1)
	f.p("MOVQ R10, CX")
	f.p("TESTQ CX, CX")
	rest, zeros, done := f.newLabel("rest"), f.newLabel("zeros"), f.newLabel("done")
	f.p("JZ %s", rest)
	loop := f.label("exp")
	for h := range parts {
		f.p("VMOVUPS %d(SI), %s", i.bytes*h, i.r(2))
		f.expOf(i)
		f.keep(i, h, pairs)
	}
	f.p("ADDQ R8, SI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.put(rest)
	f.p("TESTQ R11, R11")
	f.p("JZ %s", zeros)
	for h := range parts {
		f.p("VMOVUPS %d(SI), %s", i.bytes*h, i.r(2))
		f.expOf(i)
		f.maskPart(i, h, 2)
		f.keep(i, h, pairs)
	}
	f.p("ADDQ R8, SI")
	f.p("DECQ R9")
	f.put(zeros)
	f.p("TESTQ R9, R9")
	f.p("JZ %s", done)
	f.zero(i, 2)
	clear := f.label("clear")
	for h := range parts {
		f.p("VMOVUPS %s, %d(SI)", i.r(2), i.bytes*h)
	}
	f.p("ADDQ R8, SI")
	f.p("DECQ R9")
	f.p("JNZ %s", clear)
	f.put(done)
	f.reduce(i, "ADD", 1, 2)
	f.p("VMOVSS X1, ret+32(FP)")
	f.end()
}

// keep adds the exponentials in register 2 to the sum in register 1 and stores them.
func (f *file) keep(i isa, h int, pairs bool) {
	if !pairs {
		f.p("VADDPS %s, %s, %s", i.r(2), i.r(1), i.r(1))
		f.p("VMOVUPS %s, %d(SI)", i.r(2), i.bytes*h)
		return
	}
	f.roundToPairs(2, 3)
	f.p("VPMOVDW Z2, (SI)")
	f.p("VPSLLD $16, Z2, Z2")
	f.p("VADDPS Z2, Z1, Z1")
}

// roundLines rounds lines of 16 float32 to bfloat16 in place, into the first half of each line.
func roundLines(f *file) {
	params := []param{{"x", "*float32"}, {"lines", "int"}}
	f.begin("roundLinesAVX512", "x: lines of 16 float32, each replaced by 16 bfloat16 in its first half.", params, "")
	f.load(params, "SI", "CX")
	f.roundConstants()
	loop := f.label("line")
	f.p("VMOVDQU32 (SI), Z2")
	f.roundToPairs(2, 3)
	f.p("VPMOVDW Z2, (SI)")
	f.p("ADDQ $64, SI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.end()
}

// softmaxMax leaves the largest score in all lanes of register 0.
func (f *file) softmaxMax(i isa, parts int) {
	rest, done := f.newLabel("maxrest"), f.newLabel("maxdone")
	f.p("MOVQ R10, CX")
	f.p("TESTQ CX, CX")
	f.p("JZ %s", rest)
	loop := f.label("max")
	for h := range parts {
		f.p("VMAXPS %d(SI), %s, %s", i.bytes*h, i.r(0), i.r(0))
	}
	f.p("ADDQ R8, SI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.put(rest)
	f.p("TESTQ R11, R11")
	f.p("JZ %s", done)
	for h := range parts {
		if i == avx512 {
			f.p("VMOVAPS Z5, Z2")
			f.p("VMOVUPS (SI), K1, Z2")
		} else {
			f.p("VMOVUPS %d(SI), Y2", 32*h)
			f.p("VBLENDVPS Y%d, Y2, Y5, Y2", 3+h)
		}
		f.p("VMAXPS %s, %s, %s", i.r(2), i.r(0), i.r(0))
	}
	f.put(done)
	f.reduce(i, "MAX", 0, 2)
	f.p("VBROADCASTSS X0, %s", i.r(0))
}

// softmaxMask makes the mask of the R11 first lanes of a page: K1, or registers 3 and 4.
func (f *file) softmaxMask(i isa) {
	if i == avx512 {
		f.p("MOVQ R11, CX")
		f.p("MOVL $1, AX")
		f.p("SHLL CX, AX")
		f.p("DECL AX")
		f.p("KMOVW AX, K1")
		return
	}
	f.p("VMOVD R11, X2")
	f.p("VPBROADCASTD X2, Y2")
	for h := range 2 {
		f.p("VPCMPGTD pageLanes<>+%d(SB), Y2, Y%d", 32*h, 3+h)
	}
}

// maskPart zeroes the lanes of register n beyond the mask.
func (f *file) maskPart(i isa, h, n int) {
	if i == avx512 {
		f.p("VMOVAPS.Z Z%d, K1, Z%d", n, n)
	} else {
		f.p("VANDPS Y%d, Y%d, Y%d", 3+h, n, n)
	}
}

// broadcast fills register n from a general register.
func (f *file) broadcast(i isa, from string, n int) {
	if i == avx512 {
		f.p("VPBROADCASTD %s, Z%d", from, n)
		return
	}
	f.p("VMOVD %s, X%d", from, n)
	f.p("VPBROADCASTD X%d, Y%d", n, n)
}

// expOf replaces register 2 by exp(register 2 - register 0).
func (f *file) expOf(i isa) {
	f.p("VSUBPS %s, %s, %s", i.r(0), i.r(2), i.r(2))
	f.exp(i, 2, 5, 6, 7)
}

// attendConstants are the lane numbers of a page, for the masks of AVX2.
func attendConstants(f *file) {
	for k := range 16 {
		fmt.Fprintf(&f.body, "\nDATA pageLanes<>+%d(SB)/4, $%d", 4*k, k)
	}
	f.body.WriteString("\nGLOBL pageLanes<>(SB), RODATA|NOPTR, $64\n")
}
