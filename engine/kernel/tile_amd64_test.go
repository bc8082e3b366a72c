package kernel

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The vector kernels that prepare tiles run on more processors than have tiles.
func TestWideningMatchesItsDefinition(t *testing.T) {
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512BW {
		t.Skip("this processor has no AVX-512")
	}
	r := newRand(33)
	for f, widen := range map[Format]func(dst, src unsafe.Pointer, kb int){Q8_0: widenQ8AVX512, Q4_0: widenQ40AVX512, Q4_1: widenQ41AVX512} {
		const blocks = 5
		w := randMatrix(t, r, f, PanelRows, blocks*BlockCols)
		got, want := make([]byte, blocks*tileBytes+8), make([]byte, blocks*tileBytes+8)
		widen(unsafe.Pointer(&got[0]), w.panel(0), blocks)
		widenGo(f, unsafe.Pointer(&want[0]), w.panel(0), blocks)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: widened weights differ from the definition", f)
		}
	}
}
