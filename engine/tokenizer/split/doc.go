// Package split cuts text into the pieces that a tokenizer merges one by one: what model files
// call the pre-tokenizer.
//
// The regular expressions of the models in use are written out as functions, ten times as fast
// as an engine for regular expressions; any other runs in one, with a limit of time for all of a
// text, behind which is an error. Letters, digits and the like are those of the reference implementation's version of Unicode (16 for its
// expressions, 17 for its digits; tools/tokenizer/tables.py), not of Go's: U+1C89, a letter since
// Unicode 16, is one here. Only tokenizer imports it.
//
// Invariants, cited by code and tests:
//
//	S1  a Func's pieces are never empty, and joined they are the text, valid UTF-8 or not
//	S2  a piece of valid text ends between two characters
//	S3  the time is O(n), whatever the text; with expressions that are not known, it is bounded for
//	    all of a text (Limit), and the pieces do not depend on the clock
package split
