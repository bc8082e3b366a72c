// Package kernel is the arithmetic of the CPU engine: packed weight matrices, matrix products, the small
// elementwise operations of a transformer, attention over a paged KV cache, and the team of threads that runs them.
//
// It knows nothing of models, files, requests or tokens, never logs, and never keeps a reference to memory that it
// was handed after a call returns. Only package model, tests and benchmarks import it.
//
// Every operation exists in plain Go (level generic), which runs everywhere and is the oracle of the tests, and in
// assembly printed by the generator in gen. A level is a set of implementations; the best one that the processor
// has is chosen at start, and the environment variable KERNELS names another.
//
// # Words
//
// A matrix has rows (outputs) and cols (inputs); both sides of a product are stored for streaming:
//
//	panel   16 rows of a matrix, all columns, contiguous; rows are padded with zeros to whole panels
//	input   the activations of n tokens ("columns" of the product), prepared once for several matrices
//	group   up to 16 tokens of an input, interleaved so that one pass over a panel serves them all
//	page    16 tokens of one layer and head of the KV cache; a page of keys is laid out as a panel
//
// # Levels
//
//	generic  plain Go
//	avx2     int8 and nibble products by sign and VPMADDUBSW, float32 FMA of 8 lanes
//	avx512   float32 FMA of 16 lanes; integer products as avx2
//	vnni     integer products by VPDPBUSD
//	bf16     bfloat16 weights, and attention over bfloat16 pages, by VDPBF16PS: activations, queries and probabilities
//	         are rounded to bfloat16 there. The default on AMD, where it is twice as fast; on Intel it is not, and vnni
//	         is the default.
//	amx      as vnni for tokens that are generated; for those of prompts (Input.Tile) products with all weights but
//	         float32 in matrix tiles of bfloat16. Used where the system permits it and a product of a few tiles is
//	         right; Notes has the reason if not.
//
// Weights and pages in float32 are multiplied in float32 at every level.
//
// # Invariants
//
//	K1  For one row and one token a result has the same bits whatever the number of tokens in the call, the way the
//	    panels are split and the number of threads, within one level. Every variant of a kernel therefore adds in the
//	    same order into the same number of partial sums. The same holds for Attend against AttendChunk. A level with
//	    tiles is two families in one: those tokens that Input.Tile names, and all others.
//	K2  Products with quantised weights (Q8_0, Q4_0, Q4_1) have the same bits at every level, generic included:
//	    the sums inside a block of 32 are integers, and what follows is multiplied and added without fusing.
//	K3  A kernel reads and writes no byte outside the slices that it was given (prefetches do not count, they cannot
//	    fault). No memory needs slack.
//	K4  One call into assembly takes at most about 100 microseconds, because such code cannot be preempted and a
//	    stop of the world waits for it.
//	K5  Nothing is allocated once buffers have reached their size.
package kernel

//go:generate go run ./gen
