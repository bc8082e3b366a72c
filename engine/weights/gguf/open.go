package gguf

import (
	"fmt"
	"os"
)

// Open maps the file at path and parses it. The file must not be cut or overwritten while it is
// open; replacing it by rename is fine.
func Open(path string) (*File, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	defer h.Close()
	st, err := h.Stat()
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("gguf: %s is not a regular file", path)
	}
	if st.Size() == 0 {
		return nil, fmt.Errorf("gguf: %s is empty", path)
	}
	if int64(int(st.Size())) != st.Size() {
		return nil, fmt.Errorf("gguf: %s has %d bytes, more than this machine can address", path, st.Size())
	}
	b, unmap, err := mapFile(h, int(st.Size()))
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	f := &File{bytes: b, unmap: unmap, values: map[string]value{}, byName: map[string]int{}}
	if err := f.parse(); err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	return f, nil
}
