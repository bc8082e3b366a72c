package kernel

import (
	"fmt"
	"sync"
	"unsafe"
)

// tiles are the operations of a level that multiplies in matrix tiles (AMX): 16 rows of 32 bfloat16. Everything else of
// such a level is as in the level below, which computes all tokens that are not of a prompt.
type tiles struct {
	// product is c = a*b, or c += a*b if acc is not 0, for 32 tokens and two panels: a has two rows of kb tiles, astride
	// bytes apart, b two panels of bfloat16 with kb blocks of 32 columns, bstride apart, c rows of 32 float32, ldc apart.
	product func(a, b, c unsafe.Pointer, kb, astride, bstride, acc, ldc int)
	// widen turns kb blocks of a quantised panel into bfloat16; nil for BF16 and F32, which is multiplied without tiles.
	widen [formats]func(dst, src unsafe.Pointer, kb int)
	// round is roundPairs with lines that are a tile apart.
	round func(dst unsafe.Pointer, x *float32, blocks, stride int)
	below Level // that computes the other tokens
}

const (
	tileBytes  = 1024 // of 16 rows and 32 columns in bfloat16
	tileRows   = 16
	tileTokens = 2 * tileRows // of one product
	// tileBlocks is the number of blocks of 32 columns that are widened and multiplied at a time: two panels of them are
	// 64 KiB, which stay in the second-level cache. It is also fixed because sums are rounded between such runs (K1).
	tileBlocks = 32
	// tileRunBytes is the size of the tokens that stay in the second-level cache while panels pass by: half of the 2 MiB
	// that processors with tiles have. Weights are widened again for each such run.
	tileRunBytes = 1 << 20
)

// HasTiles reports whether the level in use multiplies the tokens of prompts (Input.Tile) in another way than others.
func HasTiles() bool { return active.tile != nil }

// Family names the arithmetic that all tokens have which are not given to Input.Tile: the level in use, or the one below
// if that is a level with tiles. Machines of one family compute the same bits.
func Family() Level {
	if t := active.tile; t != nil {
		return t.below
	}
	return active.level
}

// Tile says that the first n tokens belong to prompts, so that a level with tiles multiplies them in tiles: faster,
// with weights and activations rounded to bfloat16, and so with other bits than tokens that are generated. Bits do not
// depend on which tokens, or how many, stand together (K1), as long as each stays in its family. It is called after Reset
// and before SetRange; at other levels it does nothing.
func (in *Input) Tile(n int) {
	if n < 0 || n > in.n {
		panic(fmt.Sprintf("kernel: %d tokens in tiles of an input of %d", n, in.n))
	}
	if active.tile == nil {
		return
	}
	in.tiled = n
	in.tile = Sized(in.tile, (n+tileTokens-1)/tileTokens*tileTokens*in.cols*2)
}

// tileRow writes columns of token j in tiles, from block b0 on.
func (in *Input) tileRow(j, b0 int, row []float32) {
	blocks := in.cols / BlockCols
	at := (j/tileRows*blocks+b0)*tileBytes + j%tileRows*b16TokenBytes
	active.tile.round(unsafe.Pointer(&in.tile[at]), &row[0], len(row)/BlockCols, tileBytes)
}

// tileScratch is the working memory of one call.
type tileScratch struct {
	wide [2 * tileBlocks * tileBytes]byte   // two panels
	edge [tileTokens][2 * PanelRows]float32 // results that do not all belong into y
}

// tileScratches are those not in use. Calls come from as many threads as a team has, so there are as many in all.
var tileScratches struct {
	sync.Mutex
	free []*tileScratch
}

func takeTileScratch() *tileScratch {
	p := &tileScratches
	p.Lock()
	defer p.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	b := Alloc(int(unsafe.Sizeof(tileScratch{})))
	return (*tileScratch)(unsafe.Pointer(&b[0]))
}

func (s *tileScratch) giveBack() {
	p := &tileScratches
	p.Lock()
	defer p.Unlock()
	p.free = append(p.free, s)
}

// tileCall are the arguments of a product in tiles.
type tileCall struct {
	y      []float32
	ldy    int
	w      *Matrix
	in     *Input
	s      *tileScratch
	blocks int // of 32 columns
}

// tileMatMul is MatMul for the tokens in tiles.
func tileMatMul(y []float32, ldy int, w *Matrix, in *Input, p0, p1 int) {
	c := tileCall{y, ldy, w, in, takeTileScratch(), w.Cols / BlockCols}
	run := max(tileTokens, tileRunBytes/(2*w.Cols)/tileTokens*tileTokens)
	for j := 0; j < in.tiled; j += run {
		for p := p0; p < p1; p += 2 {
			for k := 0; k < c.blocks; k += tileBlocks {
				c.pair(p, min(2, p1-p), j, min(j+run, in.tiled), k, min(tileBlocks, c.blocks-k))
			}
		}
	}
	c.s.giveBack()
}

// pair multiplies np panels from p on with tokens [j,end), kb blocks of columns from k on.
func (c *tileCall) pair(p, np, j, end, k, kb int) {
	size := c.w.panelBytes() / c.blocks
	b := unsafe.Add(c.w.panel(p), k*size)
	stride := c.w.panelBytes()
	if widen := active.tile.widen[c.w.Format]; widen != nil {
		stride = tileBlocks * tileBytes
		for q := range np {
			widen(unsafe.Pointer(&c.s.wide[q*stride]), unsafe.Add(b, q*c.w.panelBytes()), kb)
		}
		b = unsafe.Pointer(&c.s.wide)
	}
	if np == 1 {
		stride = 0 // the one panel twice
	}
	row := c.blocks * tileBytes // of tiles
	for ; j < end; j += tileTokens {
		a := unsafe.Pointer(&c.in.tile[j/tileRows*row+k*tileBytes])
		if np == 2 && j+tileTokens <= end {
			active.tile.product(a, b, unsafe.Pointer(&c.y[j*c.ldy+p*PanelRows]), kb, row, stride, k, 4*c.ldy)
			continue
		}
		n, width := min(tileTokens, end-j), np*PanelRows
		if k > 0 {
			for i := range n {
				copy(c.s.edge[i][:width], c.y[(j+i)*c.ldy+p*PanelRows:])
			}
		}
		active.tile.product(a, b, unsafe.Pointer(&c.s.edge), kb, row, stride, k, 4*2*PanelRows)
		for i := range n {
			copy(c.y[(j+i)*c.ldy+p*PanelRows:], c.s.edge[i][:width])
		}
	}
}

// checkTiles compares products in tiles with plain Go on a few of them. A level that fails is not used.
func checkTiles(t *tiles) error {
	const kb, ldc = 3, 40
	var a, b [2 * kb * tileBytes / 2]uint16
	for i := range a { // all exact in bfloat16, no two rows or columns alike
		a[i], b[i] = floatToBF16(float32(i*37%61-30)/8), floatToBF16(float32(i*53%47-23)/16)
	}
	var got, want [tileTokens * ldc]float32
	for acc := range 2 {
		t.product(unsafe.Pointer(&a), unsafe.Pointer(&b), unsafe.Pointer(&got), kb, kb*tileBytes, kb*tileBytes, acc, 4*ldc)
		tileProductGo(unsafe.Pointer(&a), unsafe.Pointer(&b), unsafe.Pointer(&want), kb, kb*tileBytes, kb*tileBytes, acc, 4*ldc)
		for i := range got {
			if d := got[i] - want[i]; d > 1e-2 || d < -1e-2 || d != d {
				return fmt.Errorf("a product in tiles is wrong: element %d of row %d is %g, want %g", i%ldc, i/ldc, got[i], want[i])
			}
		}
	}
	return nil
}

// tileProductGo does what the tile registers do, with the order of additions that their definition has: even and odd
// columns of a tile apart.
func tileProductGo(a, b, c unsafe.Pointer, kb, astride, bstride, acc, ldc int) {
	for j := range tileTokens {
		for p := range 2 {
			sums := (*panelSum)(unsafe.Add(c, j*ldc+p*PanelRows*4))
			if acc == 0 {
				*sums = panelSum{}
			}
			x := unsafe.Add(a, j/tileRows*astride+j%tileRows*b16TokenBytes)
			w := unsafe.Add(b, p*bstride)
			for k := range kb {
				tileDotGo(sums, (*[16][2]uint16)(unsafe.Add(x, k*tileBytes)), (*[16][PanelRows][2]uint16)(unsafe.Add(w, k*tileBytes)))
			}
		}
	}
}

// tileDotGo is one row of one product of two tiles.
func tileDotGo(sums *panelSum, x *[16][2]uint16, w *[16][PanelRows][2]uint16) {
	for r := range sums {
		var even, odd float32
		for k := range x {
			even += float32(bf16ToFloat(x[k][0]) * bf16ToFloat(w[k][r][0]))
			odd += float32(bf16ToFloat(x[k][1]) * bf16ToFloat(w[k][r][1]))
		}
		sums[r] += float32(even + odd)
	}
}

// widenGo is the definition of widen: the value of each weight, rounded half up.
func widenGo(f Format, dst, src unsafe.Pointer, kb int) {
	for b := range kb {
		block := unsafe.Add(src, b*PanelRows*rowBlockBytes[f])
		out := (*[16][PanelRows][2]uint16)(unsafe.Add(dst, b*tileBytes))
		for r := range PanelRows {
			for k := range BlockCols {
				v := f.weight(block, r, k)
				out[k/2][r][k%2] = uint16((*(*uint32)(unsafe.Pointer(&v)) + 0x8000) >> 16)
			}
		}
	}
}

// weight is the value of row r and column k of a quantised block of a panel.
func (f Format) weight(block unsafe.Pointer, r, k int) float32 {
	scale := float64(halfToFloat((*[PanelRows]uint16)(block)[r]))
	if f == Q8_0 {
		q := (*[8][PanelRows][4]int8)(unsafe.Add(block, 32))
		return float32(scale * float64(q[k/4][r][k%4]))
	}
	low, at := -8*scale, 32
	if f == Q4_1 {
		low, at = float64(halfToFloat((*[2][PanelRows]uint16)(block)[1][r])), 64
	}
	q := (*[4][PanelRows][4]byte)(unsafe.Add(block, at))[k%16/4][r][k%4] >> (k / 16 * 4) & 15
	return float32(scale*float64(q) + low)
}

// goTiles are the tile operations in plain Go.
func goTiles() tiles {
	t := tiles{product: tileProductGo, round: roundPairsGo}
	for _, f := range []Format{Q8_0, Q4_0, Q4_1} {
		t.widen[f] = func(dst, src unsafe.Pointer, kb int) { widenGo(f, dst, src, kb) }
	}
	return t
}

// UseEmulatedTiles is Use of a level AMX on top of the level in use, with tiles in plain Go: for tests, on any machine, of
// what it means that prompts have an arithmetic of their own. Use of another level ends it.
func UseEmulatedTiles() { active = tileTable(*active, goTiles()) }

// tileTable is a level with tiles on top of another one.
func tileTable(below table, t tiles) *table {
	t.below = below.level
	below.level, below.tile = AMX, &t
	return &below
}
