//go:build unix

package gguf

import (
	"os"

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
