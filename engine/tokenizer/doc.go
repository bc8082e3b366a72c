// Package tokenizer turns text into token ids and back: byte-level BPE as GGUF files describe it.
//
// It never adds a BOS by itself, never lets text become a special token unless the caller asks
// for that, and never normalises text (Hugging Face composes characters, NFC, for Qwen models;
// llama.cpp does not, and neither does this package, so that what goes in comes back).
// Everybody in engine and above may import it; it imports gguf and xxh3.
//
// Invariants, cited by code and tests:
//
//	T1  decoding gives back exactly what was encoded, if the vocabulary has all bytes of it
//	    (see MissingBytes) and no special tokens were asked for
//	T2  with parseSpecial false no id of the result is special, whatever the text
//	T3  encoding n bytes takes O(n log n), whatever the text
//	T4  a Stream's pieces joined are what Decode gives, and each piece is valid UTF-8
package tokenizer
