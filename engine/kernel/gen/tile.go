package main

import (
	"fmt"
	"strings"
)

// The tile registers of AMX, in bytes: the assembler does not know these instructions. Registers of addresses are
// numbered as in the encoding: AX 0, CX 1, DX 2, BX 3, SI 6, DI 7, R8 8 and so on. R13 cannot be a base, as BP cannot.

func (f *file) bytes(doc string, code ...int) {
	var text []string
	for _, b := range code {
		text = append(text, fmt.Sprintf("BYTE $0x%02x", b&0xff))
	}
	f.p("%s // %s", strings.Join(text, "; "), doc)
}

// memory prints TILELOADD (prefix 0x7b) or TILESTORED (0x7a) of a tile at (base), rows stride apart.
func (f *file) memory(doc string, prefix, tile, base, stride int) {
	f.bytes(fmt.Sprintf("%s T%d", doc, tile),
		0xc4, 1<<7|(^(stride>>3)&1)<<6|(^(base>>3)&1)<<5|2, prefix, 0x4b, tile<<3|4, (stride&7)<<3|base&7)
}

func (f *file) tileLoad(tile, base, stride int)  { f.memory("TILELOADD", 0x7b, tile, base, stride) }
func (f *file) tileStore(tile, base, stride int) { f.memory("TILESTORED", 0x7a, tile, base, stride) }

func (f *file) tileZero(tile int) {
	f.bytes(fmt.Sprintf("TILEZERO T%d", tile), 0xc4, 0xe2, 0x7b, 0x49, 0xc0|tile<<3)
}

// tileDot prints TDPBF16PS: c += a times b.
func (f *file) tileDot(c, a, b int) {
	f.bytes(fmt.Sprintf("TDPBF16PS T%d, T%d, T%d", b, a, c), 0xc4, 0xe2, (^b&0xf)<<3|2, 0x5c, 0xc0|c<<3|a)
}

func tileKernels(f *file) {
	tileProduct(f)
	for _, q := range quantFormats {
		widen(f, q)
	}
	// The shape of all tiles: palette 1, eight tiles of 16 rows of 64 bytes.
	f.body.WriteString("\nDATA tileShape<>+0(SB)/8, $1\nDATA tileShape<>+8(SB)/8, $0\n")
	for i := range 2 {
		fmt.Fprintf(&f.body, "DATA tileShape<>+%d(SB)/8, $0x0040004000400040\n", 16+8*i)
	}
	fmt.Fprintf(&f.body, "DATA tileShape<>+32(SB)/8, $0\nDATA tileShape<>+40(SB)/8, $0\n")
	fmt.Fprintf(&f.body, "DATA tileShape<>+48(SB)/8, $0x1010101010101010\nDATA tileShape<>+56(SB)/8, $0\n")
	f.body.WriteString("\nGLOBL tileShape<>(SB), RODATA|NOPTR, $64\n")
}

// tileProduct multiplies 32 tokens with two panels. No state of the tiles outlives the call: between calls the thread may
// be preempted or run something else.
func tileProduct(f *file) {
	params := []param{{"a", "unsafe.Pointer"}, {"b", "unsafe.Pointer"}, {"c", "unsafe.Pointer"}, {"kb", "int"},
		{"astride", "int"}, {"bstride", "int"}, {"acc", "int"}, {"ldc", "int"}}
	f.begin("tileProductAMX", "c[32][32], rows ldc bytes apart, = (or, if acc is not 0, +=) a times b: two rows of kb tiles astride apart, "+
		"two panels of bfloat16 bstride apart.", params, "")
	const ax, dx, bx, si, di, r8, r9, r10, r11 = 0, 2, 3, 6, 7, 8, 9, 10, 11
	f.p("LEAQ tileShape<>(SB), AX")
	f.bytes("LDTILECFG (AX)", 0xc4, 0xe2, 0x78, 0x49, 0x00)
	f.load(params, "SI", "DI", "DX", "CX", "BX", "R10", "AX", "R8")
	f.p("ADDQ SI, BX")
	f.p("ADDQ DI, R10")
	f.p("MOVQ $64, R11")
	f.p("LEAQ 64(DX), R9")
	f.p("MOVQ R8, R12")
	f.p("SHLQ $4, R12")
	f.p("ADDQ DX, R12") // the second 16 tokens
	f.p("LEAQ 64(R12), R13")
	zero, loop := f.newLabel("zero"), f.newLabel("columns")
	results := func(move func(tile, base, stride int)) {
		move(0, dx, r8)
		move(1, r9, r8)
		f.p("MOVQ R12, AX")
		move(2, ax, r8)
		f.p("MOVQ R13, AX")
		move(3, ax, r8)
	}
	f.p("TESTQ AX, AX")
	f.p("JZ %s", zero)
	results(f.tileLoad)
	f.p("JMP %s", loop)
	f.put(zero)
	for t := range 4 {
		f.tileZero(t)
	}
	f.put(loop)
	f.tileLoad(4, si, r11)
	f.tileLoad(6, di, r11)
	f.tileLoad(7, r10, r11)
	f.tileLoad(5, bx, r11)
	f.tileDot(0, 4, 6)
	f.tileDot(1, 4, 7)
	f.tileDot(2, 5, 6)
	f.tileDot(3, 5, 7)
	for _, r := range []string{"SI", "BX", "DI", "R10"} {
		f.p("ADDQ $1024, %s", r)
	}
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	results(f.tileStore)
	f.bytes("TILERELEASE", 0xc4, 0xe2, 0x78, 0x49, 0xc0)
	f.p("RET")
}

// widen turns blocks of a quantised panel into a panel of bfloat16, rounded half up.
// Z31 half of the last place, Z30 mask of the upper half, Z29 eight, Z28 mask of a nibble, Z27 scale, Z26 minimum.
func widen(f *file, q quantFormat) {
	params := []param{{"dst", "unsafe.Pointer"}, {"src", "unsafe.Pointer"}, {"kb", "int"}}
	f.begin("widen"+q.name+"AVX512", "dst: kb blocks of 32 columns of a panel in bfloat16; src: the same, quantised.", params, "")
	f.load(params, "DI", "SI", "CX")
	for i, v := range []uint32{15, 8, 0xffff0000, 0x8000} {
		f.p("MOVL $0x%x, AX", v)
		f.p("VPBROADCASTD AX, Z%d", 28+i)
	}
	f.p("VCVTDQ2PS Z29, Z29")
	loop := f.label("block")
	f.p("VCVTPH2PS (SI), Z27")
	switch {
	case q.minimum:
		f.p("VCVTPH2PS 32(SI), Z26")
	case q.nibbles:
		f.p("VMULPS Z27, Z29, Z26")
		f.zero(avx512, 25)
		f.p("VSUBPS Z26, Z25, Z26")
	}
	pair := func(off int) { // Z0 and Z1: the integers of an even column and the odd one behind it
		for r := range 2 {
			f.p("VCVTDQ2PS Z%d, Z%d", r, r)
			if q.nibbles {
				f.p("VFMADD213PS Z26, Z27, Z%d", r)
			} else {
				f.p("VMULPS Z27, Z%d, Z%d", r, r)
			}
			f.p("VPADDD Z31, Z%d, Z%d", r, r)
		}
		f.p("VPSRLD $16, Z0, Z0")
		f.p("VPTERNLOGD $0xf8, Z30, Z1, Z0") // Z0 | Z1 & Z30
		f.p("VMOVDQU32 Z0, %d(DI)", off)
	}
	for g := range 8 {
		if !q.nibbles {
			f.p("VMOVDQU32 %d(SI), Z4", q.at+64*g)
			for j := range 2 {
				for r := range 2 {
					f.p("VPSLLD $%d, Z4, Z%d", 24-8*(2*j+r), r)
					f.p("VPSRAD $24, Z%d, Z%d", r, r)
				}
				pair(128*g + 64*j)
			}
			continue
		}
		if g < 4 {
			f.p("VMOVDQU32 %d(SI), Z%d", q.at+64*g, 4+g)
		}
		for j := range 2 {
			for r := range 2 {
				f.p("VPSRLD $%d, Z%d, Z%d", 8*(2*j+r)+4*(g/4), 4+g%4, r)
				f.p("VPANDD Z28, Z%d, Z%d", r, r)
			}
			pair(128*g + 64*j)
		}
	}
	f.p("ADDQ $%d, SI", q.block)
	f.p("ADDQ $1024, DI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.end()
}
