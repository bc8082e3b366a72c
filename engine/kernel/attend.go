package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// Pages is a pool of KV blocks as attention reads it.
type Pages struct {
	Layout KVLayout
	Base   []byte  // block i is Base[i*BlockBytes:][:BlockBytes]
	Heads  int     // query heads, a multiple of Layout.KVHeads
	Scale  float32 // of the scores; 0 means 1/sqrt(HeadDim)
	// Window is how many tokens a query sees, its own included; 0 means all. Pages before the first of them are not read.
	Window int
	// SoftCap c turns a score s into c*tanh(s/c); 0 means none.
	SoftCap float32
}

// AttendScratch is the working memory of attention; each thread has its own. The zero value is ready; it grows to
// 64 bytes per token of context (up to twice that) and stays until Free.
type AttendScratch struct {
	q      []float32 // [HeadDim/16][c][16]: the queries of a group; KVQ8_0: [HeadDim/32][c] records as in FormQ8
	s      []float32 // [pages][c][16]: scores, then probabilities
	o      []float32 // [c][HeadDim]
	tokens int       // capacity of s in tokens
}

// Grow makes room for contexts of that many tokens with heads of headDim dimensions, so that nothing is allocated
// later (K5).
func (s *AttendScratch) Grow(tokens, headDim int) {
	if n := groupTokens * headDim; len(s.q) < n {
		s.q, s.o = Sized(s.q, n), Sized(s.o, n)
	}
	if tokens > s.tokens {
		s.tokens = (tokens + PageTokens - 1) / PageTokens * PageTokens
		s.s = Sized(s.s, groupTokens*s.tokens)
	}
}

// Free gives the memory back; the scratch is as new afterwards.
func (s *AttendScratch) Free() {
	Free(s.q)
	Free(s.s)
	Free(s.o)
	*s = AttendScratch{}
}

// Attend computes one query position: out[h] = sum over t<tokens of softmax(q[h].k[t]*scale) * v[t] for the query
// heads h that share KV heads [h0,h1). q and out are [Heads*HeadDim]. table lists the blocks of the sequence from
// token 0 on; tokens counts the query's own position.
func Attend(out, q []float32, p *Pages, layer int, table []int32, tokens, h0, h1 int, s *AttendScratch) {
	AttendChunk(out, len(out), q, len(q), p, layer, table, tokens-1, 1, h0, h1, s)
}

// AttendChunk computes n consecutive query positions pos, pos+1, … of one sequence, each over the tokens up to and
// including itself; the keys and values of all of them must be stored. Position pos+i has its queries at q[i*ldq:] and
// its result at out[i*ldo:], both [Heads*HeadDim]; only the heads that share KV heads [h0,h1) are read and written.
// Several threads may compute different positions or heads at once, each with its own scratch. The bits for a
// position do not depend on n (K1).
func AttendChunk(out []float32, ldo int, q []float32, ldq int, p *Pages, layer int, table []int32, pos, n, h0, h1 int, s *AttendScratch) {
	l := p.Layout
	need := (pos + n + PageTokens - 1) / PageTokens
	switch {
	case n == 0:
		return
	case pos < 0 || n < 0 || need > len(table):
		panic(fmt.Sprintf("kernel: attention at positions [%d,%d) over a table of %d blocks", pos, pos+n, len(table)))
	case p.Heads%l.KVHeads != 0 || h0 < 0 || h1 > l.KVHeads || layer < 0 || layer >= l.Layers:
		panic(fmt.Sprintf("kernel: attention of %d heads, KV heads [%d,%d) of %d, layer %d of %d", p.Heads, h0, h1, l.KVHeads, layer, l.Layers))
	}
	for _, b := range table[:need] {
		if b < 0 || (int(b)+1)*l.BlockBytes() > len(p.Base) {
			panic(fmt.Sprintf("kernel: block %d is outside the pool", b))
		}
	}
	s.Grow(pos+n, l.HeadDim)
	g := chunkGroup{p: p, s: s, out: out, q: q, ldo: ldo, ldq: ldq, pos: pos, share: p.Heads / l.KVHeads, scale: p.Scale}
	if g.scale == 0 {
		g.scale = float32(1 / math.Sqrt(float64(l.HeadDim)))
	}
	group := groupTokens
	if l.Type == KVQ8_0 {
		group = groupTokensQ8
	}
	for h := h0; h < h1; h++ {
		keys := unsafe.Pointer(&p.Base[layer*l.LayerBytes()+2*h*l.pageBytes()])
		for c := 0; c < n*g.share; c += group {
			g.run(keys, table, h, c, min(group, n*g.share-c))
		}
	}
}

// groupTokensQ8 is the largest number of columns in a group over KVQ8_0, whose kernels have two sums for each.
const groupTokensQ8 = 12

// chunkGroup are the arguments that all groups of columns of one AttendChunk share. A column is a pair of a position
// and one of the heads that share a KV head, in the order of positions.
type chunkGroup struct {
	p        *Pages
	s        *AttendScratch
	out, q   []float32
	ldo, ldq int
	pos      int
	share    int // query heads per KV head
	scale    float32
}

// pageCall are the arguments of the attention kernels.
type pageCall struct {
	base  unsafe.Pointer // page of block 0
	table *int32         // blocks
	size  int            // bytes of a block
	pages int            // blocks to visit
	dims  int            // HeadDim/16
	x     *float32       // scores: queries [dims][n][16]; mix: probabilities [pages][n][16]
	y     *float32       // scores: out [pages][n][16]; mix: accumulated [n][dims*16]
	tmp   unsafe.Pointer // mix of KVQ8_0: [n][16]float32 to use
}

// run computes columns [c0,c0+n) of KV head h.
func (g *chunkGroup) run(keys unsafe.Pointer, table []int32, h, c0, n int) {
	l := g.p.Layout
	hd, kind := l.HeadDim, l.Type
	g.queries(h, c0, n)
	last := g.pos + (c0+n-1)/g.share
	pages := last/PageTokens + 1
	call := pageCall{base: keys, size: l.BlockBytes(), dims: hd / 16}
	step := max(1, unitsMax/(call.dims*n))
	first := g.firstToken(c0) / PageTokens
	for at := first; at < pages; at += step {
		call.table, call.pages = &table[at], min(step, pages-at)
		call.x, call.y = &g.s.q[0], &g.s.s[at*n*16]
		active.scores[kind](call, n)
	}
	var norm [groupTokens]float32
	for j := range n {
		norm[j] = 1 / g.probabilities(c0, j, n, first, pages)
	}
	call.base, call.tmp = unsafe.Add(keys, l.pageBytes()), unsafe.Pointer(&g.s.q[0]) // the queries are done with
	clear(g.s.o[:n*hd])
	for at := first; at < pages; at += step {
		call.table, call.pages = &table[at], min(step, pages-at)
		call.x, call.y = &g.s.s[at*n*16], &g.s.o[0]
		active.mix[kind](call, n)
	}
	for j := range n {
		i, head := (c0+j)/g.share, h*g.share+(c0+j)%g.share
		dst, src := g.out[i*g.ldo+head*hd:][:hd], g.s.o[j*hd:][:hd]
		for d, v := range src {
			dst[d] = v * norm[j]
		}
	}
}

// queries prepares the scaled queries of columns [c0,c0+n) in the form that the scores are computed from.
func (g *chunkGroup) queries(h, c0, n int) {
	hd, kind := g.p.Layout.HeadDim, g.p.Layout.Type
	for j := range n {
		i, head := (c0+j)/g.share, h*g.share+(c0+j)%g.share
		src := g.q[i*g.ldq+head*hd:][:hd]
		if kind == KVQ8_0 {
			scaled := g.s.o[:hd]
			for k, v := range src {
				scaled[k] = v * g.scale
			}
			rec := unsafe.Add(unsafe.Pointer(&g.s.q[0]), j*q8TokenBytes)
			active.quantise(rec, &scaled[0], hd/BlockCols, n*q8TokenBytes)
			continue
		}
		for b := 0; b < hd; b += 16 {
			dst := (*[16]float32)(g.s.q[b*n+j*16:])
			for k := range dst {
				dst[k] = src[b+k] * g.scale
			}
		}
	}
	if active.pairs && kind == KVBF16 {
		active.roundLines(&g.s.q[0], n*hd/16)
	}
}

func (c pageCall) page(i int) unsafe.Pointer {
	b := *(*int32)(unsafe.Add(unsafe.Pointer(c.table), 4*i))
	return unsafe.Add(c.base, int(b)*c.size)
}

// line returns 16 floats at the given index of lines.
func line(x *float32, i int) *[16]float32 {
	return (*[16]float32)(unsafe.Add(unsafe.Pointer(x), 64*i))
}

func scoresBF16Go(c pageCall, n int) {
	for p := range c.pages {
		for j := range n {
			acc := (*panelSum)(line(c.y, p*n+j))
			*acc = panelSum{}
			for d := range c.dims {
				bf16Block(acc, unsafe.Add(c.page(p), 512*d), line(c.x, d*n+j))
			}
		}
	}
}

func scoresF32Go(c pageCall, n int) {
	for p := range c.pages {
		for j := range n {
			acc := (*panelSum)(line(c.y, p*n+j))
			*acc = panelSum{}
			for d := range c.dims {
				f32Block(acc, unsafe.Add(c.page(p), 1024*d), line(c.x, d*n+j))
			}
		}
	}
}

// f32Block adds 16 columns of a float32 panel, in order; four rows at a time keep their sums in registers.
func f32Block(acc *panelSum, w unsafe.Pointer, xs *[16]float32) {
	ws := (*[16][PanelRows / 4][4]float32)(w)
	sums := (*[PanelRows / 4][4]float32)(unsafe.Pointer(acc))
	for r := range sums {
		a, b, c, d := sums[r][0], sums[r][1], sums[r][2], sums[r][3]
		for k, v := range xs {
			row := &ws[k][r]
			a += float32(row[0] * v)
			b += float32(row[1] * v)
			c += float32(row[2] * v)
			d += float32(row[3] * v)
		}
		sums[r] = [4]float32{a, b, c, d}
	}
}

func mixBF16Go(c pageCall, n int) {
	for p := range c.pages {
		for j := range n {
			for d := range c.dims {
				bf16Block((*panelSum)(line(c.y, j*c.dims+d)), unsafe.Add(c.page(p), 512*d), line(c.x, p*n+j))
			}
		}
	}
}

func mixF32Go(c pageCall, n int) {
	for p := range c.pages {
		for j := range n {
			for d := range c.dims {
				f32Block((*panelSum)(line(c.y, j*c.dims+d)), unsafe.Add(c.page(p), 1024*d), line(c.x, p*n+j))
			}
		}
	}
}

// scoresQ8Go multiplies in integers, as products with Q8_0 weights do (K2); dims is in units of 16.
func scoresQ8Go(c pageCall, n int) {
	for p := range c.pages {
		mmQ8Go(mmCall{w: c.page(p), x: unsafe.Pointer(c.x), y: &line(c.y, p*n)[0], kb: c.dims / 2, np: 1, xs: n * q8TokenBytes, ldy: 64}, n)
	}
}

// mixQ8Go weighs each token's integers with its probability times its scale.
func mixQ8Go(c pageCall, n int) {
	for p := range c.pages {
		for j := range n {
			x := line(c.x, p*n+j)
			for d := range c.dims {
				block := unsafe.Add(c.page(p), d/2*q8PageBlock)
				scales := (*[PageTokens]uint16)(block)
				q := (*[PageTokens][16]int8)(unsafe.Add(block, 32+256*(d%2)))
				acc := line(c.y, j*c.dims+d)
				for t := range q {
					by := float32(x[t] * halfToFloat(scales[t]))
					for i, v := range q[t] {
						acc[i] += float32(by * float32(v))
					}
				}
			}
		}
	}
}

// softmaxPageGo replaces the scores of one column (16 per page, stride bytes from page to page) by exp(s-max), for
// tokens not below the given count by 0, and returns the sum.
func softmaxPageGo(s *float32, stride, pages, tokens int) float32 {
	at := func(t int) *float32 {
		return (*float32)(unsafe.Add(unsafe.Pointer(s), t/PageTokens*stride+t%PageTokens*4))
	}
	peak := float32(math.Inf(-1))
	for t := range tokens {
		peak = max(peak, *at(t))
	}
	sum := 0.0
	for t := range pages * PageTokens {
		if t >= tokens {
			*at(t) = 0
			continue
		}
		e := math.Exp(float64(*at(t) - peak))
		*at(t) = float32(e)
		sum += e
	}
	return float32(sum)
}
