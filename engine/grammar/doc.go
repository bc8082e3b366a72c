// Package grammar says which tokens may come next so that an answer is a JSON document of a
// schema, a text of a regular expression, one of a list, or a sequence of these.
//
// A Spec becomes a network of byte automata that call each other (net), so that schemas may refer
// to themselves. What a text may be at is determinised as it is met (machine), and the mask of a
// state is found by walking the vocabulary as a byte trie in which whole subtrees end at once
// (matcher). Tokens count by their bytes alone: they may span any border, and special tokens have
// no bytes. Inside strings, where nearly all tokens may come, those of plain characters are known
// beforehand.
//
// It never looks at logits, reads no clock and knows no request. Everybody in engine and above
// may import it; it imports tokenizer.
//
// # How JSON is written
//
// Between the marks of a document stands nothing, one space, or a line break and up to 20 spaces
// (as documents are indented); none before a comma or a colon, nothing but one space after a
// colon, none around the document. So no model can write white space for ever.
// Members come in the order of properties; those not required may be left out; others, where
// additionalProperties allows them, come after. An object that declares properties and does not
// say additionalProperties has no others, unless Spec.Loose; one that declares none may have any.
// Integers have up to 20 digits, other numbers as many before and after the point, and an exponent
// of up to two digits unless a bound or multipleOf is set. Values of enum and const, strings with a
// pattern or format, and names beside declared ones are written in one form: no escape that is not
// needed, the short one where there is one. A document nests at most 64 levels where its schema
// does without end.
//
// # What of JSON Schema
//
// type (also a list), properties, required, additionalProperties, unevaluatedProperties false (beside
// $ref, allOf, anyOf or oneOf it speaks of all that holds for the value), items, prefixItems,
// additionalItems, minItems, maxItems, enum, const, anyOf, oneOf (as anyOf: that only one fits is not
// enforced), allOf (merged), $ref inside the document, $defs, definitions, minLength, maxLength,
// pattern (RE2 syntax; not together with format), format (see formats),
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf 1, 0.1, 0.01 and so on. A schema
// without type means the types that its keywords speak of. Annotations, such as title,
// description, default, and keywords that begin with x- say nothing. All others are refused by
// name.
//
// # Masks that are cut
//
// The search for a mask is bounded (maskWorkMost), for all rooms of a step wait for it: an expression
// of which every token leads somewhere else is not looked through to its end. Its mask is cut: of
// tokens of several bytes only some that fit are allowed, of those of one byte all (or, where these alone
// take longer, at least one). So what comes out
// still fits (G2) and can be finished (G1), if in smaller pieces than the model would choose; and it
// is cut alike wherever the same text is met (G4). It takes about 5 ms on a quiet core over 150,000
// tokens. Masks of schemas as applications have them are never cut.
//
// # What Validate and Compile cost
//
// All that they do for one Spec counts in one budget (workMost), at most about 50 ms and 32 MB; what
// would take more is refused before it is done. At most 256 schemas hold together for one value.
//
// Invariants, cited by code and tests:
//
//	G1  whatever is allowed can be finished: no state is a dead end
//	G2  what was finished fits the Spec
//	G3  what fits the Spec, written as above, is never refused, however it is cut into tokens
//	    (but for the bounds placesMost, visitsMost and maskWorkMost, which hostile Specs reach)
//	G4  a state and its mask depend on the Spec, the vocabulary and the tokens pushed alone, not on
//	    what other states of the grammar have met
//	G5  in a state that was met before, a mask and a token allocate nothing
package grammar
