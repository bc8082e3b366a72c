package main

import "fmt"

// pageQ8 is a page of keys in int8 as a quantised panel: its address is in R12.
var pageQ8 = quantFormat{name: "Q8", block: 544, at: 32, bias: 32, from: "R12"}

// mixQ8Columns is the most columns of a kernel for values in int8: 24 sums, of two panels each.
const mixQ8Columns = 12

func pageKernelsQ8(f *file) {
	for n := 1; n <= mixQ8Columns; n++ {
		scoresQ8(f, avx512, n)
		mixQ8(f, n)
	}
	for _, n := range []int{1, 2, 4} {
		scoresQ8(f, avx2, n)
		mixQ8AVX2(f, n)
	}
}

// scoresQ8 multiplies pages of keys in int8 with the queries of n columns, as products with weights in Q8_0 are made.
// SI base, BX table cursor, R8 block size, R9 pages left, DI queries, DX result, R10 bytes of a page's scores, R13 of a
// block's queries; R11 queries cursor, CX blocks left, R12 page.
func scoresQ8(f *file, i isa, n int) {
	suffix := map[isa]string{avx512: "VNNI", avx2: "AVX2"}[i]
	name := fmt.Sprintf("scoresQ8%sx%d", suffix, n)
	params := pageArgs(i)
	f.begin(name, "y[page][column][16] = keys of the page times records x[dims/2][column].", params, "")
	f.table("scoresQ8"+suffix, n, name)
	f.load(params, "SI", "BX", "R8", "R9", "", "DI", "DX")
	cursor := 0
	if i == avx512 {
		f.p("MOVL $0x80808080, AX")
		f.p("VPBROADCASTD AX, Z10")
		f.p("MOVQ $%d, R10", 64*n)
		cursor = n / 2 * record // the middle of the records, so that displacements fit a byte
		f.p("ADDQ $%d, DI", cursor)
	} else {
		f.p("MOVQ xs+56(FP), R10")
		f.p("VPCMPEQW Y15, Y15, Y15")
		f.p("VPSRLW $15, Y15, Y15")
	}
	f.p("MOVQ R10, R13")
	f.p("SHRQ $2, R13")
	f.p("LEAQ (R13)(R13*2), R13")
	at := func(token, off int) int { return token*record + off - cursor }
	page := f.label("page")
	f.pageOf("BX", "R12")
	f.p("ADDQ $4, BX")
	f.p("MOVQ DI, R11")
	f.p("MOVQ dims+32(FP), CX")
	f.p("SHRQ $1, CX")
	if i == avx512 {
		for t := range n {
			f.zero(i, 16+t)
		}
	} else {
		for t := range 2 * n {
			f.zero(i, t)
		}
	}
	block := f.label("block")
	if i == avx512 {
		vnniLoad(f, pageQ8)
		for t := range n {
			vnniToken(f, pageQ8, t, at)
		}
	} else {
		avx2Block(f, pageQ8, n)
	}
	f.p("ADDQ $%d, R12", pageQ8.block)
	f.p("ADDQ R13, R11")
	f.p("DECQ CX")
	f.p("JNZ %s", block)
	for t := range n {
		if i == avx512 {
			f.p("VMOVUPS Z%d, %d(DX)", 16+t, 64*t)
		} else {
			f.p("VMOVUPS Y%d, %d(DX)", 2*t, 64*t)
			f.p("VMOVUPS Y%d, %d(DX)", 2*t+1, 64*t+32)
		}
	}
	f.p("ADDQ R10, DX")
	f.p("DECQ R9")
	f.p("JNZ %s", page)
	f.end()
}

// mixArgs has room for the probabilities of a page times the scales of its tokens.
func mixArgs(i isa) []param {
	return append(append([]param{}, pageArgs(i)...), param{"tmp", "unsafe.Pointer"})
}

const mixQ8Doc = "y[column][dims*16] += x[page][column][16] times values of the page in int8; tmp: a line for each column."

// mixQ8 adds pages of values in int8, weighted by the probabilities of n columns: 32 dimensions of all pages, then the
// next 32. Z0.. sums (panel after panel of a column), Z24, Z25 values, Z30 probabilities, Z31 scales.
// SI base, BX table cursor, R8 block size, R9 pages left, DX result, R13 blocks left, R14 tmp; R11 x, R12 page, DI bytes
// of a column's result.
func mixQ8(f *file, n int) {
	name := fmt.Sprintf("mixQ8AVX512x%d", n)
	params := mixArgs(avx512)
	f.begin(name, mixQ8Doc, params, "")
	f.table("mixQ8AVX512", n, name)
	f.load(params, "SI", "", "R8", "", "R13", "", "DX", "R14")
	f.p("MOVQ R13, DI")
	f.p("SHLQ $6, DI")
	f.p("SHRQ $1, R13")
	dim := f.label("dim")
	f.p("MOVQ table+8(FP), BX")
	f.p("MOVQ pages+24(FP), R9")
	f.p("MOVQ x+40(FP), R11")
	f.sums8("VMOVUPS %[2]d(AX), %[1]s", "Z", n, 0, 64)
	page := f.label("page")
	f.pageOf("BX", "R12")
	f.p("ADDQ $4, BX")
	f.p("VCVTPH2PS (R12), Z31")
	for t := range n {
		f.p("VMULPS %d(R11), Z31, Z30", 64*t)
		f.p("VMOVUPS Z30, %d(R14)", 64*t)
	}
	loop := f.newLabel("tokens")
	tokens := 16
	if n > 4 {
		tokens = 4
		f.p("MOVL $4, CX")
		f.put(loop)
	}
	for k := range tokens {
		for p := range 2 {
			f.p("VPMOVSXBD %d(R12), Z%d", 32+256*p+16*k, 24+p)
			f.p("VCVTDQ2PS Z%d, Z%d", 24+p, 24+p)
		}
		for t := range n {
			for p := range 2 {
				f.p("VFMADD231PS.BCST %d(R14), Z%d, Z%d", 64*t+4*k, 24+p, 2*t+p)
			}
		}
	}
	if n > 4 {
		f.p("ADDQ $64, R12")
		f.p("ADDQ $16, R14")
		f.p("DECL CX")
		f.p("JNZ %s", loop)
		f.p("SUBQ $64, R14")
	}
	f.p("ADDQ $%d, R11", 64*n)
	f.p("DECQ R9")
	f.p("JNZ %s", page)
	f.sums8("VMOVUPS %[1]s, %[2]d(AX)", "Z", n, 0, 64)
	f.p("ADDQ $128, DX")
	f.p("ADDQ $%d, SI", pageQ8.block)
	f.p("DECQ R13")
	f.p("JNZ %s", dim)
	f.end()
}

// sums8 moves the pairs of sums of n columns from or to y at DX, the second of a pair apart bytes behind the first.
func (f *file) sums8(format, reg string, n, at, apart int) {
	f.p("MOVQ DX, AX")
	for t := range n {
		for p := range 2 {
			f.p(format, fmt.Sprintf("%s%d", reg, 2*t+p), at+apart*p)
		}
		if t < n-1 {
			f.p("ADDQ DI, AX")
		}
	}
}

// mixQ8AVX2 is mixQ8 with 16 dimensions at a time. Y0.. sums (halves of a column), Y12, Y13 values, Y14 activations.
func mixQ8AVX2(f *file, n int) {
	name := fmt.Sprintf("mixQ8AVX2x%d", n)
	params := mixArgs(avx2)
	f.begin(name, mixQ8Doc, params, "")
	f.table("mixQ8AVX2", n, name)
	f.load(params, "SI", "", "R8", "", "R13", "", "DX", "R10", "R14")
	f.p("MOVQ R13, DI")
	f.p("SHLQ $6, DI")
	f.p("SHRQ $1, R13")
	dim := f.label("dim")
	for p := range 2 {
		f.p("MOVQ table+8(FP), BX")
		f.p("MOVQ pages+24(FP), R9")
		f.p("MOVQ x+40(FP), R11")
		f.sums8("VMOVUPS %[2]d(AX), %[1]s", "Y", n, 64*p, 32)
		page := f.label("page")
		f.pageOf("BX", "R12")
		f.p("ADDQ $4, BX")
		for h := range 2 {
			f.p("VCVTPH2PS %d(R12), Y12", 16*h)
			for t := range n {
				f.p("VMULPS %d(R11), Y12, Y13", 64*t+32*h)
				f.p("VMOVUPS Y13, %d(R14)", 64*t+32*h)
			}
		}
		for k := range 16 {
			for h := range 2 {
				f.p("VPMOVSXBD %d(R12), Y%d", 32+256*p+16*k+8*h, 12+h)
				f.p("VCVTDQ2PS Y%d, Y%d", 12+h, 12+h)
			}
			for t := range n {
				f.p("VBROADCASTSS %d(R14), Y14", 64*t+4*k)
				f.p("VFMADD231PS Y12, Y14, Y%d", 2*t)
				f.p("VFMADD231PS Y13, Y14, Y%d", 2*t+1)
			}
		}
		f.p("ADDQ R10, R11")
		f.p("DECQ R9")
		f.p("JNZ %s", page)
		f.sums8("VMOVUPS %[1]s, %[2]d(AX)", "Y", n, 64*p, 32)
	}
	f.p("ADDQ $128, DX")
	f.p("ADDQ $%d, SI", pageQ8.block)
	f.p("DECQ R13")
	f.p("JNZ %s", dim)
	f.end()
}
