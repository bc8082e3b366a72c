package gguf

import "encoding/binary"

var le = binary.LittleEndian

// Open maps the file at path and parses it.
func Open(path string) (*File, error) { panic("not yet") }

// Parse reads a model file that is in memory; the File and its tensors point into b.
func Parse(b []byte) (*File, error) { panic("not yet") }

// Dequant decodes len(dst) numbers of type t from src into dst. len(dst) must be a whole number
// of blocks and src exactly as long as those.
func Dequant(dst []float32, t Type, src []byte) error { panic("not yet") }

// Writer builds a model file in memory, for tests and tiny models. Keys and tensors are written in the order in which
// they were added.
type Writer struct{}

// Set adds a key. v is one of uint8…uint64, int8…int64, float32, float64, bool, string or a
// slice of one of them.
func (w *Writer) Set(key string, v any) { panic("not yet") }

// Add adds a tensor; dims[0] is the row length, data the stored bytes.
func (w *Writer) Add(name string, t Type, dims []uint64, data []byte) { panic("not yet") }

// Bytes returns the file.
func (w *Writer) Bytes() ([]byte, error) { panic("not yet") }
