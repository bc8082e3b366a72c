// Package nfc brings text into Unicode's normal form C: a letter and its accents become one
// character where there is one.
//
// It has the version of Unicode that the reference implementation of tokenizers has (see
// tools/tokenizer/tables.py), which is older than the one of Go: what a tokenizer makes of a text
// must not change with a release of Go. It changes no byte that is not part of valid UTF-8 and
// inserts nothing, however many accents follow each other. Only tokenizer imports it.
//
// Invariants, cited by code and tests:
//
//	N1  String of String's result changes nothing
//	N2  the time is O(n log n), whatever the text
package nfc
