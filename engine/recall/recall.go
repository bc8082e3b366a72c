package recall

import (
	_ "embed"

	"baton/engine/weights/gguf"
)

//go:embed recall.gguf
var file []byte

// GGUF returns the embedded model file: F16 matrices, F32 norms, 2.6 MB. It is shared and must
// not be written.
func GGUF() []byte { return file }

// Open returns the embedded model file, read. It panics if that is broken, which no file of ours is.
func Open() *gguf.File {
	f, err := gguf.Parse(file)
	if err != nil {
		panic("recall: the embedded model: " + err.Error())
	}
	return f
}
