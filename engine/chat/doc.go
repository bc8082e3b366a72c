// Package chat turns a conversation into token ids by the template that a model brings.
//
// It never lets a message's content become a special token: each content is rendered as a
// sentinel, the result is split at the sentinels, the template's own text is encoded with
// special tokens and the contents without. Everybody in engine and above may import it; it
// imports tokenizer and a Jinja engine.
//
// Invariants, cited by code and tests:
//
//	C1  no id that comes from a content is special
//	C2  without special tokens in the contents, Encode gives the tokens of Render
//	C3  what a template renders is bounded, and its time with it: rounds of loops, macros inside
//	    each other, and the nesting of its source. Not bounded is what one expression makes of
//	    a string by multiplying or doubling it: that is for who trusts a model file to judge.
//	C4  white space, strings and line numbers are those of Jinja2 with Hugging Face's settings
package chat
