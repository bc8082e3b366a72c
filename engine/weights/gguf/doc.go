// Package gguf reads model files in the GGUF format, versions 2 and 3, and turns their tensors
// into float32.
//
// It never trusts the file: every count, length, offset, alignment and product of dimensions is
// compared with the size of the file before anything is allocated from it. It never copies
// tensor bytes (a Tensor is a view into the mapped file) and knows nothing about models.
// Everybody in engine and above may import it; it imports mapped and xxh3.
//
// Invariants, cited by code and tests:
//
//	G1  what Parse allocates is bounded by a constant times the length of the file
//	G2  every Tensor that Parse returns lies inside the file and holds exactly Rows() rows of
//	    Type.RowBytes(Cols()) bytes
//	G3  a key or a tensor name that occurs twice is an error, never "the last one wins"
//	G4  a file cut short at any byte is an error, never a panic
package gguf
