package main

// storeKV prints the store of one token's key and value into a page of bfloat16 (AVX2; every vector level uses it).
// A key goes to one 4-byte column of each line of its panel, two dimensions each; a value shares its 4-byte fields with
// the neighbouring token, so its lines are read, half replaced, and written.
// DI keys of the page at the token, R9 values of the page at the token's pair, SI k, DX v, CX blocks of 16 dimensions.
func storeKV(f *file) {
	params := []param{{"page", "unsafe.Pointer"}, {"token", "int"}, {"k", "*float32"}, {"v", "*float32"}, {"dims", "int"}}
	f.begin("storeKVAVX2", "page: keys, then values, of one head in bfloat16; k and v of dims*16 elements.", params, "")
	f.load(params, "DI", "R8", "SI", "DX", "CX")
	f.p("MOVQ CX, R9")
	f.p("SHLQ $9, R9")
	f.p("ADDQ DI, R9")
	f.p("MOVQ R8, AX")
	f.p("SHRQ $1, AX")
	f.p("SHLQ $6, AX")
	f.p("ADDQ AX, R9")
	f.p("LEAQ (DI)(R8*4), DI")
	f.p("ANDQ $1, R8")
	f.p("SHLQ $4, R8") // bits to shift a value by: 0 or 16
	f.p("VMOVQ R8, X15")
	f.p("MOVL $0xffff, AX")
	f.p("VMOVD AX, X14")
	f.p("VPBROADCASTD X14, Y14")
	f.p("VPSLLD X15, Y14, Y14") // the half to replace
	f.p("MOVL $0x7fff, AX")
	f.p("VMOVD AX, X13")
	f.p("VPBROADCASTD X13, Y13")
	f.p("VPCMPEQD Y12, Y12, Y12")
	f.p("VPSRLD $31, Y12, Y12") // ones
	loop := f.label("dims")
	for half := range 2 {
		f.roundBF16("SI", 32*half)
		f.p("VPSRLQ $16, Y0, Y1")
		f.p("VPOR Y1, Y0, Y0")
		for pair := range 4 {
			if pair == 2 {
				f.p("VEXTRACTI128 $1, Y0, X0")
			}
			f.p("VPEXTRD $%d, X0, %d(DI)", pair%2*2, 64*(4*half+pair))
		}
		f.roundBF16("DX", 32*half)
		f.p("VPSLLD X15, Y0, Y0")
		f.p("VPANDN %d(R9), Y14, Y1", 32*half)
		f.p("VPOR Y1, Y0, Y0")
		f.p("VMOVDQU Y0, %d(R9)", 32*half)
	}
	f.p("ADDQ $64, SI")
	f.p("ADDQ $64, DX")
	f.p("ADDQ $512, DI")
	f.p("ADDQ $512, R9")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.end()
}

// roundBF16 loads eight float32 and leaves their bfloat16, rounded to even, in the lower halves of Y0's lanes.
func (f *file) roundBF16(from string, off int) {
	f.p("VMOVDQU %d(%s), Y0", off, from)
	f.p("VPSRLD $16, Y0, Y1")
	f.p("VPAND Y12, Y1, Y1")
	f.p("VPADDD Y13, Y0, Y0")
	f.p("VPADDD Y1, Y0, Y0")
	f.p("VPSRLD $16, Y0, Y0")
}
