// Package tokenizer turns text into token ids and back: byte-level BPE as GGUF files describe it.
//
// It never adds a BOS by itself, never lets text become a special token unless the caller asks
// for that, and never loses a byte: Decode(Encode(x, false), false) == x for every valid UTF-8.
// Everybody in engine and above may import it; it imports gguf and x/text.
//
// Invariants, cited by code and tests:
//
//	T1  decoding gives back exactly what was encoded (valid UTF-8, no special tokens)
//	T2  with parseSpecial false no id of the result is special, whatever the text
//	T3  encoding n bytes takes O(n log n), whatever the text
//	T4  a Stream's pieces joined are what Decode gives, and each piece is valid UTF-8
package tokenizer
