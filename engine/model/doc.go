// Package model turns the weights of a Llama, Qwen2, Qwen3 or Gemma 3, in a GGUF file or a directory
// of safetensors, into a running transformer: it reads and checks the hyper-parameters, repacks the
// weights into kernel panels, owns the pool of KV blocks and runs steps over mixed batches of
// prefill chunks and decode tokens.
//
// It never decides what runs (core does), never logs, never samples (engine/sample does), never moves KV
// between processes (transfer does) and never reads a clock, but for Bench. serve and bench
// may import it; it imports engine/kernel, engine/weights and engine/tokenizer.
//
// Invariants, cited by code and tests:
//
//	M1  The logits of a row are the same bits whatever else is in the batch, wherever the
//	    borders of its chunks were and however many threads ran the step, within one kernel
//	    level (K1 of engine/kernel). Hence prefill elsewhere, a retry and a migration change no token.
//	M2  A KV block whose row 0 was written by Step holds zeros in every row that no token has
//	    filled yet, so that the sum of a block is a function of its tokens.
//	M3  Step allocates nothing once a batch of the same size has been run.
//	M4  A file is refused before anything is allocated by its numbers: every hyper-parameter
//	    has a named bound and every tensor must have exactly the shape that they imply.
//	M5  Two workers exchange KV only if their manifests are equal.
//	M6  Weights, pool and activations lie outside the collector's heap. A buffer that is
//	    outgrown goes back at once; KV.Close and Model.Close leave nothing (kernel.Outside).
//
// Queries and keys keep the order that the file has them in, interleaved or half (Rope), rather
// than being permuted at load, so that the bytes of a file decide those of its KV; the manifest says
// which. Layers with a sliding window (Gemma 3, Qwen2 if it says so) keep the keys and values of all
// tokens in their blocks, as the other layers do: one pool, one table, any prefix usable. Attention
// reads the pages of the window only, so that they cost time by the window and memory by the context.
//
// Arrays are row-major; [n][d] has n rows of d values. A block table lists the physical blocks
// of one sequence from its token 0: token t is row t%16 of block table[t/16].
package model
