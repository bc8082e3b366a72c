// Package tokenizer turns text into token ids and back, as a model file describes it: a GGUF file
// (FromGGUF: byte-level BPE, and SentencePiece's vocabularies with scores) or a tokenizer.json
// (FromJSON: BPE of bytes or of characters). The ids are those of the reference implementation of
// each: llama.cpp for GGUF, the Hugging Face library for tokenizer.json. So a text for a
// Qwen model is normalised (NFC) with its tokenizer.json and is not with its GGUF file, and
// the two have different digests.
//
// It never adds a BOS by itself, and never lets text become a special token unless the caller asks
// for that. Special is what the file says, and what is named like it (<|…|>, <｜…｜>, <unused…>:
// DeepSeek's <｜Assistant｜> structures a prompt, whatever its flag says). User-defined tokens that
// are not special (<think>, <tool_call>, runs of newlines) are found in every text, as both
// references do: they are words of the vocabulary, not of the structure.
// Everybody in engine and above may import it; it imports gguf, xxh3 and its own parts: split
// (pieces, classes of characters) and nfc.
//
// Invariants, cited by code and tests:
//
//	T1  decoding gives back exactly what was encoded, if the vocabulary has all bytes of it (see
//	    MissingBytes) and no special tokens were asked for; but for what the file wants changed:
//	    NFC, a space put in front, and in vocabularies of characters U+2581, which is their space
//	T2  no id of a result is a control token unless asked for, whatever the text; in EncodeParts
//	    only where its whole name lies in parts that may have it. The unknown token stands only
//	    for a character that the vocabulary lacks
//	T3  encoding n bytes takes O(n log n), whatever the text; expressions that are not known to
//	    split, and added tokens with long names, have bounds of their own
//	T4  a Stream's pieces joined are what Decode gives, and each piece is valid UTF-8
//	T5  Text has the exact bytes that a token adds to a text: of every kind, but for special ones,
//	    which have their name
//
// Differences from the references, all by choice:
//
//   - bytes that are no part of valid UTF-8 are encoded as they are and come back; llama.cpp writes
//     U+FFFD for them, the Hugging Face library takes none
//   - when decoding, each of them becomes U+FFFD; ByteFallback there gives up whole runs of byte
//     tokens for one of them
//   - a space that a decoder takes away at the start of a text (Strip, Metaspace) stays: a stream
//     goes on where a prompt ends
//   - no end token is put behind a text, and at most one token in front of it
//   - where the whole name of a special token is a piece of a vocabulary with ignore_merges, the
//     Hugging Face library takes it for that token though it is not to
//   - overlapping names of added tokens: leftmost, then longest, as the Hugging Face library;
//     llama.cpp takes the longest first
//   - llama.cpp makes a control token of a token called </s> in any file
//   - the classes of characters are those of Unicode 16 (17 for Digits, 10 for NFC) as in the
//     Hugging Face library; llama.cpp's are of Unicode 15 (the digits U+10D40 to U+10D49)
package tokenizer
