package kernel

import "testing"

// TestGrowingBuffersGiveTheOldMemoryBack: what an Input, a scratch or a plain buffer outgrows
// is not seen by the collector, so it has to go back at once, and the rest with Free.
func TestGrowingBuffersGiveTheOldMemoryBack(t *testing.T) {
	before := Outside()
	var in Input
	var s AttendScratch
	var b []float32
	const cols = 2048
	for n := 1; n <= 2048; n++ {
		in.Reset(n, cols, FormF32|FormQ8|FormBF16)
		s.Grow(64*n, 64)
		b = Sized(b, n*cols)
		if len(b) != n*cols {
			t.Fatalf("%d elements, want %d", len(b), n*cols)
		}
	}
	need := int64(4*2048*cols + 2048*cols/BlockCols*q8TokenBytes + 2*2048*cols + 64*64*2048 + 4*2048*cols)
	if held := Outside() - before; held > 2*need {
		t.Errorf("buffers that need %d bytes hold %d", need, held)
	}
	in.Free()
	s.Free()
	Free(b)
	if held := Outside() - before; held != 0 {
		t.Errorf("%d bytes are held after everything was given back", held)
	}
}
