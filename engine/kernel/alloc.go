package kernel

import "unsafe"

// lineBytes is the alignment of memory from Alloc: a cache line and a 512-bit register.
const lineBytes = 64

// hugeFrom is the size from which Alloc asks the system for huge pages: one such page of x86-64.
const hugeFrom = 2 << 20

// Alloc returns n zero bytes that begin on a cache line. From 2 MiB on they come straight from the system, in huge
// pages where it has them (a quarter more bandwidth when weights are streamed), and are not seen by the garbage
// collector: they live until Free or the end of the process. The slice has exactly the length and capacity n; by K3
// no slack follows it.
func Alloc(n int) []byte {
	if n >= hugeFrom {
		if b := allocSystem(n); b != nil {
			return b
		}
	}
	b := make([]byte, n+lineBytes)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & (lineBytes - 1))
	return b[at : at+n : at+n]
}

// Free gives memory from Alloc back. It must be the whole slice, and nothing may use it afterwards.
func Free(b []byte) {
	if cap(b) >= hugeFrom {
		freeSystem(b[:cap(b)])
	}
}

func allocFloats(n int) []float32 {
	b := Alloc(4 * n)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
