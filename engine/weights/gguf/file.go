package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"
)

// File is an open model file: its keys and views of its tensors. It is safe for use by several
// goroutines; nothing changes after Parse.
type File struct {
	Version   uint32
	Alignment uint64

	bytes   []byte
	unmap   func() error // nil if nothing is to be released
	values  map[string]value
	keys    []string // in file order
	tensors []Tensor // in file order
	byName  map[string]int

	digestOnce sync.Once
	digest     uint64
	shaOnce    sync.Once
	sha        string
}

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

// releaseEvery is how much of a file is read before its pages are given back: a whole read of a
// mapped file would count as this process's memory from then on.
const releaseEvery = 16 << 20

// Tensor is a view of one tensor of the file.
type Tensor struct {
	Name string
	Type Type
	Dims []uint64 // Dims[0] is the row length (inputs), Dims[1] the rows (outputs), ...
	Data []byte   // Rows() rows of Type.RowBytes(Cols()) bytes; belongs to the file, read only
}

// Cols returns the row length.
func (t Tensor) Cols() int { return int(t.Dims[0]) }

// Rows returns the product of all dimensions but the first.
func (t Tensor) Rows() int {
	n := uint64(1)
	for _, d := range t.Dims[1:] {
		n *= d
	}
	return int(n)
}

// Row returns the stored bytes of row r.
func (t Tensor) Row(r int) []byte {
	n := t.Type.RowBytes(t.Cols())
	return t.Data[r*n : (r+1)*n : (r+1)*n]
}

func (t Tensor) String() string { return fmt.Sprintf("%s %s %v", t.Name, t.Type, t.Dims) }

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Tensors returns all tensors in file order. The slice belongs to the file.
func (f *File) Tensors() []Tensor { return f.tensors }

// Keys returns all keys in file order. The slice belongs to the file.
func (f *File) Keys() []string { return f.keys }

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.bytes)) }

// Digest returns the xxh3 sum of the whole file. The first call reads all of it.
func (f *File) Digest() uint64 {
	f.digestOnce.Do(func() {
		h := xxh3.New()
		for b := range slices.Chunk(f.bytes, releaseEvery) {
			h.Write(b)
			f.Release(b)
		}
		f.digest = h.Sum64()
	})
	return f.digest
}

// SHA256 returns the SHA-256 of the whole file in hexadecimal. The first call reads all of it.
func (f *File) SHA256() string {
	f.shaOnce.Do(func() {
		s := sha256.Sum256(f.bytes)
		f.sha = hex.EncodeToString(s[:])
	})
	return f.sha
}

// Release gives the memory back that the mapped bytes b, a part of a tensor's Data, take in this
// process. They stay readable, at the price of a page fault. Bytes in memory (Parse) stay.
func (f *File) Release(b []byte) {
	if f.unmap != nil {
		release(b)
	}
}

// Close gives the mapping back. No Tensor of the file may be used afterwards.
func (f *File) Close() error {
	u := f.unmap
	f.unmap = nil
	if u == nil {
		return nil
	}
	return u()
}
