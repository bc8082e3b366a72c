package kernel

import (
	"sync/atomic"
	"unsafe"
)

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
			outside.Add(int64(n))
			return b
		}
	}
	b := make([]byte, n+lineBytes)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & (lineBytes - 1))
	return b[at : at+n : at+n]
}

// Free gives memory from Alloc back. It must be the whole slice, and nothing may use it afterwards.
func Free[T byte | float32](b []T) {
	if n := cap(b) * sizeOf[T](); n >= hugeFrom && freeSystem((*byte)(unsafe.Pointer(unsafe.SliceData(b)))) {
		outside.Add(-int64(n))
	}
}

// Sized returns b with n elements if b ever was so large. Otherwise it gives b back and returns fresh memory of the
// next power of two, so that a buffer which grows step by step is replaced a few times only and never kept twice. What
// b held is lost.
func Sized[T byte | float32](b []T, n int) []T {
	if n <= cap(b) {
		return b[:n]
	}
	Free(b)
	size := 1
	for size < n {
		size *= 2
	}
	a := Alloc(size * sizeOf[T]())
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(a))), size)[:n]
}

func sizeOf[T byte | float32]() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// outside counts the bytes of Alloc that the garbage collector does not see.
var outside atomic.Int64

// Outside returns how many bytes Alloc took from the system and Free has not given back. The collector knows nothing
// of them, so that whoever forgets a Free shows here alone.
func Outside() int64 { return outside.Load() }
