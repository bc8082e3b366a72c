// Package safetensors reads model directories as Hugging Face transformers writes them:
// config.json, and tensors in one model.safetensors or in shards that an index lists. Files are
// mapped, not read.
//
// It never computes with a number, knows no architecture and writes nothing. Engine packages
// may import it; it imports weights and gguf (for the types of tensors).
package safetensors
