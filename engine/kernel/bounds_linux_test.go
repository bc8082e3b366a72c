package kernel

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced returns n bytes with an inaccessible page right behind them: reading or writing one byte more ends the process.
func fenced(t *testing.T, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m[size-n : size : size]
}

func fencedFloats(t *testing.T, x []float32) []float32 {
	b := fenced(t, 4*len(x))
	out := unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(x))
	copy(out, x)
	return out
}

// TestKernelsStayInTheirMemory holds K3: everything that is read or written ends at a fence.
func TestKernelsStayInTheirMemory(t *testing.T) {
	atEachLevel(t, func(t *testing.T) {
		r := newRand(30)
		for _, f := range allFormats {
			for _, n := range []int{1, 2, 3, 5, 11, 16, 18} {
				const rows, cols = 80, 64
				row := randRow(r, f, cols)
				m, err := Pack(f, rows, cols, func(int) []byte { return row }, func(n int) []byte { return fenced(t, n) })
				if err != nil {
					t.Fatal(err)
				}
				x := fencedFloats(t, randFloats(r, n*cols))
				in := Input{f32: fencedFloats(t, make([]float32, n*cols)), q8: fenced(t, n*cols/BlockCols*q8TokenBytes), b16: fenced(t, 2*n*cols)}
				in.Set(x, n, cols, FormF32|FormQ8|FormBF16)
				MatMul(fencedFloats(t, make([]float32, n*rows)), rows, m, &in, 0, m.Panels())
			}
		}
		for _, n := range lengths {
			x, y := fencedFloats(t, randFloats(r, n)), fencedFloats(t, randFloats(r, n))
			RMSNorm(y, x, x, 1e-5)
			SiluMul(y, x, x)
			Add(y, x)
			Scale(y, 2)
			LogSumExp(x, y)
			Softmax(y)
			Dot(x, y)
			ArgMax(x)
			if n%2 == 0 {
				c := fencedFloats(t, randFloats(r, n/2))
				RopeHalf(x, c, c)
				RopeInterleaved(x, c, c)
			}
		}
		for _, c := range layouts {
			x := newContext(r, c.l, c.heads, 40, 0)
			base := fenced(t, len(x.pages.Base))
			copy(base, x.pages.Base)
			x.pages.Base = base
			width := c.heads * c.l.HeadDim
			q, out := fencedFloats(t, randFloats(r, 6*width)), fencedFloats(t, make([]float32, 6*width))
			s := AttendScratch{tokens: 48}
			s.q, s.o = fencedFloats(t, make([]float32, 16*c.l.HeadDim)), fencedFloats(t, make([]float32, 16*c.l.HeadDim))
			s.s = fencedFloats(t, make([]float32, 16*48))
			AttendChunk(out, width, q, width, &x.pages, 0, x.table, 34, 6, 0, c.l.KVHeads, &s)
			kv := fencedFloats(t, randFloats(r, c.l.KVHeads*c.l.HeadDim))
			c.l.StoreKV(fenced(t, c.l.BlockBytes()), 0, 15, kv, kv)
		}
	})
}
