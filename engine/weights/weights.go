package weights

import "baton/engine/weights/gguf"

// Tensor is a view of one tensor: a name, how its numbers are stored, its shape (Dims[0] is the
// row length, whatever the format's own order) and the stored bytes. Read only.
type Tensor = gguf.Tensor

// File is an opened set of weights. It may be used by several goroutines, but for Close.
type File interface {
	Tensor(name string) (Tensor, bool)
	Tensors() []Tensor // all, in a fixed order; the slice belongs to the file
	Size() int64       // in bytes, of all files together
	// Digest returns a sum over everything that decides what the weights mean. The first call
	// reads all of it.
	Digest() uint64
	// Release says that nobody will read these bytes of a tensor soon: the memory that they
	// take in this process is given back. They may be read again, at the price of a page fault.
	Release(data []byte)
	// Close gives the mapping back. No Tensor may be used afterwards.
	Close() error
}

var _ File = (*gguf.File)(nil)
