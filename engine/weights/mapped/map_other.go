//go:build !unix

package mapped

import (
	"io"
	"os"
)

// mapFile reads size bytes of h into memory.
func mapFile(h *os.File, size int) ([]byte, func() error, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(h, b); err != nil {
		return nil, nil, err
	}
	return b, nil, nil
}

// release has nothing to give back: the file was read into memory.
func release([]byte) {}
