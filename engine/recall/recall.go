package recall

import _ "embed"

//go:embed recall.gguf
var file []byte

// GGUF returns the embedded model file: F16 matrices, F32 norms, 2.6 MB. It is shared and must
// not be written.
func GGUF() []byte { return file }
