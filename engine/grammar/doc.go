// Package grammar says which tokens may come next so that an answer is a JSON document of a
// schema, a text of a regular expression, one of a list, or a sequence of these.
//
// It never looks at logits, reads no clock and knows no request. Everybody in engine and above
// may import it; it imports tokenizer.
package grammar
