// Package recall is the embedded default model and the task that it was trained for: facts in a
// prompt, questions about them, and right answers that can be computed.
//
// The answer depends on one place of the context and on nothing a model could know, so a block
// of keys and values that is missing, stale, of another request or in the wrong place gives a
// wrong answer. It never reads a file or a clock. Everybody in engine and above may import it;
// it imports chat for its message type, and gguf.
package recall
