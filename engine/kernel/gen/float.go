package main

import "fmt"

// panelType is the element type of a panel of unquantised weights, keys or values.
type panelType struct {
	name  string
	block int // bytes of 16 columns of a panel
}

var (
	typeF32   = panelType{"F32", 1024}
	typeBF16  = panelType{"BF16", 512}
	typePairs = panelType{"Pairs", 512} // bfloat16 times bfloat16
	twoTypes  = []panelType{typeBF16, typeF32}
	avx2Sizes = []int{1, 2, 4, 6} // 12 registers of sums, two of weights, one of activations
)

func floatKernels(f *file) {
	for _, t := range twoTypes {
		for n := 1; n <= 16; n++ {
			mmFloat(f, t, avx512, n)
		}
		for _, n := range avx2Sizes {
			mmFloat(f, t, avx2, n)
		}
	}
	for n := 1; n <= 16; n++ {
		mmPairs(f, n)
	}
	roundPairs(f)
}

// tile is one step of a product: 16 columns of each of a number of panels with n tokens.
type tile struct {
	f      *file
	t      panelType
	i      isa
	tokens int
	panels []string           // address of each panel's block, without displacement
	x      string             // register of the input cursor
	bias   int                // of the cursor, so that displacements fit a byte
	acc    func(p, n int) int // first register of the sum of panel p and token n
}

// sums returns the number of registers that a sum takes.
func (i isa) sums() int { return 64 / i.bytes }

// step prints the 16 columns, in order. Every sum takes its 16 products one after another: K1.
// AVX-512: Z31 mask, Z28-Z30 temporaries. AVX2: Y12, Y13 weights, Y14 activation, Y15 mask.
// With more than four tokens the columns are a loop of four times four; AX counts.
func (c tile) step() {
	if c.t == typePairs {
		c.pairs()
		return
	}
	columns := 16
	if c.tokens > 4 {
		columns = 4
	}
	loop := c.f.newLabel("columns")
	if columns == 4 {
		c.f.p("MOVL $4, AX")
		c.f.put(loop)
	}
	for k := range columns {
		if c.i == avx512 {
			c.column512(k)
		} else {
			c.column256(k)
		}
	}
	if columns == 4 {
		w := c.panels[0][1 : len(c.panels[0])-1]
		c.f.p("ADDQ $%d, %s", c.t.block/4, w)
		c.f.p("ADDQ $16, %s", c.x)
		c.f.p("DECL AX")
		c.f.p("JNZ %s", loop)
		c.f.p("SUBQ $%d, %s", c.t.block, w)
		c.f.p("SUBQ $64, %s", c.x)
	}
}

func (c tile) column512(k int) {
	f := c.f
	for p, at := range c.panels {
		f.wide(c.t, at, k, 30-p%2)
		for n := range c.tokens {
			f.p("VFMADD231PS.BCST %d(%s), Z%d, Z%d", 64*n+4*k-c.bias, c.x, 30-p%2, c.acc(p, n))
		}
	}
}

// pairs prints the step for activations in bfloat16, eight pairs at the start of a token's 64 bytes.
func (c tile) pairs() {
	for k := range 8 {
		for p, at := range c.panels {
			w := 16 + (k*len(c.panels)+p)%12
			c.f.p("VMOVDQU32 %d%s, Z%d", 64*k, at, w)
			for n := range c.tokens {
				c.f.dotPairs(c.acc(p, n), w, 64*n+4*k-c.bias)
			}
		}
	}
}

// wide loads column k of a panel block into register z as float32.
func (f *file) wide(t panelType, at string, k, z int) {
	switch {
	case t == typeF32:
		f.p("VMOVUPS %d%s, Z%d", 64*k, at, z)
	case k%2 == 0:
		f.p("VPSLLD $16, %d%s, Z%d", 64*(k/2), at, z)
	default:
		f.p("VPANDD %d%s, Z31, Z%d", 64*(k/2), at, z)
	}
}

func (c tile) column256(k int) {
	f, at := c.f, c.panels[0]
	for h := range 2 {
		switch {
		case c.t == typeF32:
			f.p("VMOVUPS %d%s, Y%d", 64*k+32*h, at, 12+h)
		case k%2 == 0:
			f.p("VMOVDQU %d%s, Y%d", 64*(k/2)+32*h, at, 12+h)
			f.p("VPSLLD $16, Y%d, Y%d", 12+h, 12+h)
		default:
			f.p("VPAND %d%s, Y15, Y%d", 64*(k/2)+32*h, at, 12+h)
		}
	}
	for n := range c.tokens {
		f.p("VBROADCASTSS %d(%s), Y14", 64*n+4*k-c.bias, c.x)
		f.p("VFMADD231PS Y12, Y14, Y%d", c.acc(0, n))
		f.p("VFMADD231PS Y13, Y14, Y%d", c.acc(0, n)+1)
	}
}

// upperMask puts the mask of the upper half of each lane where tile.step expects it.
func (f *file) upperMask(i isa) {
	f.p("MOVL $0xffff0000, AX")
	if i == avx512 {
		f.p("VPBROADCASTD AX, Z31")
		return
	}
	f.p("VMOVD AX, X15")
	f.p("VPBROADCASTD X15, Y15")
}

// store writes the sum that begins at register acc.
func (f *file) store(i isa, acc int, off int, to string) {
	for s := range i.sums() {
		f.p("VMOVUPS %s, %d(%s)", i.r(acc+s), off+i.bytes*s, to)
	}
}

// mmFloat multiplies panels with n tokens.
func mmFloat(f *file, t panelType, i isa, n int) {
	name := fmt.Sprintf("mm%s%sx%d", t.name, i.suffix, n)
	f.begin(name, "As the quantised kernels, but kb and xs count blocks of 16 columns.", mmParams, "")
	f.table("mm"+t.name+i.suffix, n, name)
	c := tile{f: f, t: t, i: i, tokens: n, x: "R11", panels: []string{"(SI)"}}
	if n > 8 {
		c.bias = 512
	}
	c.acc = func(_, tok int) int { return i.sums() * tok }
	f.upperMask(i)
	panelLoop(f, n, c.bias, func() {
		for s := range n * i.sums() {
			f.zero(i, s)
		}
	}, func() {
		f.fetchAhead(n, t.block, aheadFloat)
		c.step()
		f.p("ADDQ $%d, SI", t.block)
	}, func(to string, tok int) { f.store(i, c.acc(0, tok), 0, to) })
}

// fetchAhead prefetches what the kernels for few tokens, which are bound by memory, will need: the processor's own
// prefetching stops at each page of 4 KiB. Weights of consecutive panels are contiguous, so there is always a next byte.
func (f *file) fetchAhead(n, bytes, ahead int) {
	if n > 12 {
		return
	}
	for off := 0; off < bytes; off += 64 {
		f.p("PREFETCHT0 %d(SI)", ahead+off)
	}
}

// How far ahead to prefetch, in bytes: measured, with little between 1 and 8 KiB.
const (
	aheadQuant = 4096
	aheadFloat = 2048
)
