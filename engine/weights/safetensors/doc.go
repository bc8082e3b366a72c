// Package safetensors reads model directories as Hugging Face transformers writes them:
// config.json, and tensors in one model.safetensors or in shards that an index lists. Files are
// mapped, not read.
//
// It never computes with a number, knows no architecture and writes nothing. Engine packages
// may import it; it imports mapped, gguf (for the types of tensors) and xxh3.
//
// Invariants, cited by code and tests:
//
//	F1  what Open allocates is bounded by a constant times the bytes of headers and index, which
//	    have limits with names
//	F2  every Tensor lies inside its file, has exactly the bytes that shape and dtype imply, and
//	    shares none with another; the tensors of a file cover its data without a gap
//	F3  a tensor that occurs twice, or in another shard than the index says, is an error
//	F4  a file cut short at any byte is an error, never a panic
package safetensors
