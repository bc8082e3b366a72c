package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"baton/engine/weights/mapped"

	"github.com/zeebo/xxh3"
)

// File is an open model file: its keys and views of its tensors. It is safe for use by several
// goroutines; nothing changes after Parse.
type File struct {
	Version   uint32
	Alignment uint64

	mapped  *mapped.File
	bytes   []byte // of mapped
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
	m, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f := newFile(m)
	if err := f.parse(); err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	return f, nil
}

func newFile(m *mapped.File) *File {
	return &File{mapped: m, bytes: m.Bytes, values: map[string]value{}, byName: map[string]int{}}
}

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
		f.mapped.Read(func(b []byte) { h.Write(b) })
		f.digest = h.Sum64()
	})
	return f.digest
}

// SHA256 returns the SHA-256 of the whole file in hexadecimal. The first call reads all of it.
func (f *File) SHA256() string {
	f.shaOnce.Do(func() {
		h := sha256.New()
		f.mapped.Read(func(b []byte) { h.Write(b) })
		f.sha = hex.EncodeToString(h.Sum(nil))
	})
	return f.sha
}

// Release gives the memory back that the mapped bytes b, a part of a tensor's Data, take in this
// process. They stay readable, at the price of a page fault. Bytes in memory (Parse) stay.
func (f *File) Release(b []byte) { f.mapped.Release(b) }

// Close gives the mapping back. No Tensor of the file may be used afterwards.
func (f *File) Close() error { return f.mapped.Close() }
