package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

// withTiles runs the body with tiles in plain Go on top of the best level below, and on the machine's own.
func withTiles(t *testing.T, body func(t *testing.T)) {
	was := active
	t.Cleanup(func() { active = was })
	below := *tables[0]
	for _, x := range tables {
		if x.level < Pairs {
			below = *x
		}
	}
	active = &below
	UseEmulatedTiles()
	t.Run("emulated", body)
	t.Run("processor", func(t *testing.T) {
		if !slices.Contains(Levels(), AMX) {
			t.Skipf("this processor has no tiles, or may not use them: %v", Notes())
		}
		use(t, AMX)
		body(t)
	})
	active = was
}

var tileFormats = []Format{BF16, Q8_0, Q4_0, Q4_1}

// Shapes with an odd number of panels, more columns than are multiplied at a time, rows to pad, and one of everything.
var tileShapes = [][2]int{{32, 64}, {16, 32}, {40, 96}, {80, 1120}, {33, 2048}}

func TestProductsInTilesMatchFloat64(t *testing.T) {
	withTiles(t, func(t *testing.T) {
		r := newRand(30)
		for _, f := range tileFormats {
			for _, shape := range tileShapes {
				for _, n := range []int{1, 16, 31, 32, 70} {
					w := randMatrix(t, r, f, shape[0], shape[1])
					x := randFloats(r, n*w.Cols)
					var in Input
					in.Reset(n, w.Cols, f.Form())
					in.Tile(n)
					in.SetRange(x, w.Cols, 0, n)
					ldy := w.PaddedRows() + 3
					y := make([]float32, n*ldy)
					for i := range y {
						y[i] = 1234
					}
					MatMul(y, ldy, w, &in, 0, w.Panels())
					wantTiles(t, y, ldy, w, x, n)
				}
			}
		}
	})
}

// wantTiles compares with products of the weights and activations, both rounded to bfloat16, in float64.
func wantTiles(t *testing.T, y []float32, ldy int, w *Matrix, x []float32, n int) {
	t.Helper()
	for j := range n {
		for r := range w.Rows {
			sum, size := 0.0, 0.0
			for k := range w.Cols {
				a, b := float64(bf16ToFloat(floatToBF16(x[j*w.Cols+k]))), tileWeight(w, r, k)
				sum += a * b
				size += math.Abs(a * b)
			}
			if d := math.Abs(float64(y[j*ldy+r]) - sum); !(d <= 1e-5*size) {
				t.Fatalf("%s %dx%d, %d tokens: token %d row %d is %g, want %g", w.Format, w.Rows, w.Cols, n, j, r, y[j*ldy+r], sum)
			}
		}
		for i := w.PaddedRows(); i < ldy; i++ {
			if y[j*ldy+i] != 1234 {
				t.Fatalf("%s %dx%d, %d tokens: token %d was written beyond its row", w.Format, w.Rows, w.Cols, n, j)
			}
		}
	}
}

// tileWeight is a weight as tiles have it.
func tileWeight(w *Matrix, r, k int) float64 {
	block := unsafe.Add(w.panel(r/PanelRows), k/BlockCols*PanelRows*rowBlockBytes[w.Format])
	if w.Format == BF16 {
		return float64(bf16ToFloat((*[16][PanelRows][2]uint16)(block)[k%BlockCols/2][r%PanelRows][k%2]))
	}
	v := w.Format.weight(block, r%PanelRows, k%BlockCols)
	return float64(math.Float32frombits((math.Float32bits(v) + 0x8000) &^ 0xffff))
}

// K1 within the family, and tokens outside it have the bits of the level below, wherever they stand.
func TestTilesKeepToTheirTokens(t *testing.T) {
	withTiles(t, func(t *testing.T) {
		r := newRand(31)
		for _, f := range allFormats {
			w := randMatrix(t, r, f, 72, 1120)
			const n = 75
			x := randFloats(r, n*w.Cols)
			product := func(lo, hi, tiled int) []float32 {
				var in Input
				in.Reset(hi-lo, w.Cols, f.Form())
				in.Tile(tiled)
				block := r.IntN(w.Cols/BlockCols + 1)
				in.SetBlocks(x[lo*w.Cols:], w.Cols, 0, hi-lo, block, w.Cols/BlockCols)
				in.SetBlocks(x[lo*w.Cols:], w.Cols, 0, hi-lo, 0, block)
				y := make([]float32, (hi-lo)*w.PaddedRows())
				for _, p := range [][2]int{{3, w.Panels()}, {0, 1}, {1, 3}} {
					MatMul(y, w.PaddedRows(), w, &in, p[0], p[1])
				}
				return y
			}
			all, none := product(0, n, n), product(0, n, 0)
			if f != F32 == slices.Equal(bits(all), bits(none)) {
				t.Errorf("%s: tiles make a difference: %v", f, f != F32)
			}
			row := w.PaddedRows()
			for range 12 {
				lo := r.IntN(n)
				hi := lo + 1 + r.IntN(n-lo)
				tiled := r.IntN(hi - lo + 1)
				got := product(lo, hi, tiled)
				if !slices.Equal(bits(got[:tiled*row]), bits(all[lo*row:][:tiled*row])) {
					t.Fatalf("%s: tokens [%d,%d) in tiles differ from all together", f, lo, lo+tiled)
				}
				if !slices.Equal(bits(got[tiled*row:]), bits(none[(lo+tiled)*row:hi*row])) {
					t.Fatalf("%s: tokens [%d,%d) beside tiles differ from the level below", f, lo+tiled, hi)
				}
			}
		}
	})
}

// K5 for tiles.
func TestTilesAllocateNothing(t *testing.T) {
	withTiles(t, func(t *testing.T) {
		r := newRand(32)
		w := randMatrix(t, r, Q8_0, 48, 64)
		x, y := randFloats(r, 40*64), make([]float32, 40*48)
		var in Input
		if n := testing.AllocsPerRun(10, func() {
			in.Reset(40, 64, FormQ8)
			in.Tile(35)
			in.SetRange(x, 64, 0, 40)
			MatMul(y, 48, w, &in, 0, 3)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestTheFamilyIsTheLevelBelow(t *testing.T) {
	withTiles(t, func(t *testing.T) {
		if !HasTiles() || Family() == AMX || Active() != AMX {
			t.Errorf("tiles %v, level %s, family %s", HasTiles(), Active(), Family())
		}
	})
	atEachLevel(t, func(t *testing.T) {
		if HasTiles() != (Active() == AMX) || !HasTiles() && Family() != Active() {
			t.Errorf("tiles %v, level %s, family %s", HasTiles(), Active(), Family())
		}
	})
}

// What is wrong in one place of one product is found before the level is used.
func TestWrongTilesAreFound(t *testing.T) {
	good := goTiles()
	if err := checkTiles(&good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(c unsafe.Pointer, acc, ldc int){
		"an element":   func(c unsafe.Pointer, _, ldc int) { *(*float32)(unsafe.Add(c, 31*ldc+4*31))++ },
		"not a number": func(c unsafe.Pointer, _, ldc int) { *(*float32)(c) = float32(math.NaN()) },
		"outside":      func(c unsafe.Pointer, _, ldc int) { *(*float32)(unsafe.Add(c, 4*33)) = 5 },
	} {
		bad := goTiles()
		bad.product = func(a, b, c unsafe.Pointer, kb, astride, bstride, acc, ldc int) {
			tileProductGo(a, b, c, kb, astride, bstride, acc, ldc)
			spoil(c, acc, ldc)
		}
		if checkTiles(&bad) == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
	bad := goTiles()
	bad.product = func(a, b, c unsafe.Pointer, kb, astride, bstride, _, ldc int) {
		tileProductGo(a, b, c, kb, astride, bstride, 0, ldc)
	}
	if checkTiles(&bad) == nil {
		t.Error("sums that are not continued are not found")
	}
}
