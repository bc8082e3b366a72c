// Package sample chooses the next token from logits and keeps what a request has said so far:
// stop strings, stop tokens, length.
//
// It never keeps a random generator: the random number of a token is a function of (seed,
// choice, position), so hand-off, retry, batch and worker change nothing. It never reads a
// clock. Everybody in engine and above may import it; it imports
// kernel, tokenizer and grammar.
//
// Invariants, cited by code and tests:
//
//	P1  Pick is a function of its arguments, and to the last bits of weights, as logits are, of the
//	    family of kernels; equal probabilities go to the lowest id
//	P2  Pick allocates nothing once its Scratch has grown
//	P3  the texts of a Sequence's pieces joined never contain a stop string, nor a byte after one
//	    (with include_stop: the first one, at their end); one that ends in the text of the first
//	    min_tokens tokens is none, one that begins there and ends later is
//	P4  a Sequence finishes exactly once
//	P5  log-probabilities are those of the unmodified logits
//	P6  a Sequence that begins behind generated tokens goes on as the one that generated them
//
// What changes logits is applied in the order logit_bias, allowed_token_ids and bad_words,
// min_tokens, grammar, repetition_penalty, presence_penalty and frequency_penalty; then come
// temperature, top_k, top_p, min_p and the draw.
package sample
