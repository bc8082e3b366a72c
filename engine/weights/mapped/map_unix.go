//go:build unix

package mapped

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of h read-only. The mapping outlives h.
func mapFile(h *os.File, size int) ([]byte, func() error, error) {
	b, err := unix.Mmap(int(h.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return b, func() error { return os.NewSyscallError("munmap", unix.Munmap(b)) }, nil
}

// release gives the pages that lie wholly inside b back. Those at its ends may hold others' bytes
// that are being read; they would only be mapped again. It is a hint, so its errors say nothing.
func release(b []byte) {
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := (page - at%page) % page
	if uintptr(len(b)) < skip+page {
		return
	}
	n := (uintptr(len(b)) - skip) / page * page
	_ = unix.Madvise(b[skip:skip+n], unix.MADV_DONTNEED)
}
