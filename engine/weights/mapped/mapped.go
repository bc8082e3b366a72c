package mapped

import (
	"fmt"
	"os"
)

// File is an open file. Its bytes are read only.
type File struct {
	Bytes []byte
	unmap func() error // nil if the bytes were read
}

// Open maps the file of that path. An empty file is refused: there is nothing to map.
func Open(path string) (*File, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	st, err := h.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case st.Size() == 0:
		return nil, fmt.Errorf("%s is empty", path)
	case int64(int(st.Size())) != st.Size():
		return nil, fmt.Errorf("%s has %d bytes, more than this machine can address", path, st.Size())
	}
	b, unmap, err := mapFile(h, int(st.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{b, unmap}, nil
}

// readEvery is how much Read hands out at a time.
const readEvery = 16 << 20

// Read calls f with all bytes, piece by piece, and gives the pages of each back: a whole read of
// a mapped file would count as this process's memory from then on.
func (m *File) Read(f func(b []byte)) {
	for at := 0; at < len(m.Bytes); at += readEvery {
		b := m.Bytes[at:min(at+readEvery, len(m.Bytes))]
		f(b)
		m.Release(b)
	}
}

// Release gives the memory back that b, a part of Bytes, takes in this process. It stays
// readable, at the price of a page fault.
func (m *File) Release(b []byte) {
	if m.unmap != nil {
		release(b)
	}
}

// Close gives the mapping back. Bytes must not be used afterwards.
func (m *File) Close() error {
	u := m.unmap
	m.unmap = nil
	if u == nil {
		return nil
	}
	return u()
}
