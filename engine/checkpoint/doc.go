// Package checkpoint opens a model wherever it lies, a GGUF file, a directory of safetensors or
// the bytes inside the binary, and gives what serving needs of it: the shape, the tokenizer, the
// chat template, and the loaded model when asked. Gateway, worker, bench and tests load through
// it, so that all of them see one model.
//
// It never looks for a model on the network (store.Pull does) and decides nothing about formats:
// model, tokenizer and chat read, it only brings them their files. Everybody above engine may
// import it.
package checkpoint
