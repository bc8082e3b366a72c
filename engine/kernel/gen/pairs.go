package main

import (
	"fmt"
	"strings"
)

// mmPairs multiplies bfloat16 panels with n tokens in bfloat16 (VDPBF16PS): two columns per instruction.
// Z16.. weights, Z0.. sums.
func mmPairs(f *file, n int) {
	name := fmt.Sprintf("mmBF16Pairsx%d", n)
	f.begin(name, mmDoc, mmParams, "")
	f.table("mmBF16Pairs", n, name)
	cursor := n / 2 * 64 // the middle of the tokens, so that displacements fit a byte
	panelLoop(f, n, cursor, func() {
		for t := range n {
			f.zero(avx512, t)
		}
	}, func() {
		f.fetchAhead(n, 1024, aheadFloat)
		for pair := range 16 {
			w := 16 + pair%8
			f.p("VMOVDQU32 %d(SI), Z%d", 64*pair, w)
			for t := range n {
				f.dotPairs(t, w, 64*t+4*pair-cursor)
			}
		}
		f.p("ADDQ $1024, SI")
	}, func(to string, t int) { f.p("VMOVUPS Z%d, (%s)", t, to) })
}

// dotPairs prints VDPBF16PS disp(R11){1to16}, Zw, Zsum as bytes: the assembler does not know it. EVEX, map 0F38, F3,
// opcode 52; the register numbers' upper bits are stored inverted; a displacement that is a multiple of 4 and fits a
// byte when divided by 4 is stored that way.
func (f *file) dotPairs(sum, w, disp int) {
	inv := func(n, bit int) int { return ^n >> bit & 1 }
	code := []int{
		0x62,
		inv(sum, 3)<<7 | 1<<6 | 0<<5 | inv(sum, 4)<<4 | 2, // base R11: its bit 3 inverted is 0
		(^w&15)<<3 | 4 | 2,
		2<<5 | 1<<4 | inv(w, 4)<<3,
		0x52,
	}
	const r11 = 3
	if disp%4 == 0 && disp/4 >= -128 && disp/4 < 128 {
		code = append(code, 0x40|sum&7<<3|r11, disp/4)
	} else {
		code = append(code, 0x80|sum&7<<3|r11, disp, disp>>8, disp>>16, disp>>24)
	}
	var text []string
	for _, b := range code {
		text = append(text, fmt.Sprintf("BYTE $0x%02x", b&0xff))
	}
	f.p("%s // VDPBF16PS.BCST %d(R11), Z%d, Z%d", strings.Join(text, "; "), disp, w, sum)
}

// roundPairs rounds one token's activations to bfloat16.
func roundPairs(f *file) {
	params := []param{{"dst", "unsafe.Pointer"}, {"x", "*float32"}, {"blocks", "int"}, {"stride", "int"}}
	f.begin("roundPairsAVX512", "One token: blocks of 32 float32 from x to lines of bfloat16 that are stride bytes apart.", params, "")
	f.load(params, "DI", "SI", "CX", "R8")
	f.roundConstants()
	loop := f.label("block")
	for h := range 2 {
		f.p("VMOVDQU32 %d(SI), Z0", 64*h)
		f.roundToPairs(0, 1)
		f.p("VPMOVDW Z0, %d(DI)", 32*h)
	}
	f.p("ADDQ $128, SI")
	f.p("ADDQ R8, DI")
	f.p("DECQ CX")
	f.p("JNZ %s", loop)
	f.end()
}

// roundConstants prepares Z30 and Z31 for roundToPairs.
func (f *file) roundConstants() {
	f.p("MOVL $1, AX")
	f.p("VPBROADCASTD AX, Z30")
	f.p("MOVL $0x7fff, AX")
	f.p("VPBROADCASTD AX, Z31")
}

// roundToPairs rounds the float32 of register a to bfloat16, to even, in the lower half of each lane.
func (f *file) roundToPairs(a, tmp int) {
	f.p("VPSRLD $16, Z%d, Z%d", a, tmp)
	f.p("VPANDD Z30, Z%d, Z%d", tmp, tmp)
	f.p("VPADDD Z31, Z%d, Z%d", a, a)
	f.p("VPADDD Z%d, Z%d, Z%d", tmp, a, a)
	f.p("VPSRLD $16, Z%d, Z%d", a, a)
}
