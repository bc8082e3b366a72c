package split

import (
	_ "embed"
	"encoding/binary"
	"unicode/utf8"
)

//go:embed classes.bin
var packed []byte

// Class is a set of what the expressions tell apart. A byte that is no part of valid UTF-8 has
// none.
type Class uint8

const (
	Letter Class = 1 << iota // \p{L}
	Number                   // \p{N}
	Space                    // \s
	Mark                     // \p{M}
	Punct                    // \p{P}
	Symbol                   // \p{S}
	Digit                    // what the pre-tokenizer Digits takes for one: a newer \p{N}
	Word                     // \w, for added tokens that are to stand alone
)

// of is the table of classes: blocks of 256 code points share pages.
var of = func() (t struct {
	block [(utf8.MaxRune + 1) >> 8]uint16
	page  [][256]Class
}) {
	t.page = make([][256]Class, 1)
	at, rest := 0, packed
	number := func() int {
		v, n := binary.Uvarint(rest)
		rest = rest[n:]
		return int(v)
	}
	for len(rest) > 0 {
		at += number()
		n := number()
		class := Class(rest[0])
		rest = rest[1:]
		for ; n > 0; n, at = n-1, at+1 {
			b := &t.block[at>>8]
			if *b == 0 {
				*b = uint16(len(t.page))
				t.page = append(t.page, [256]Class{})
			}
			t.page[*b][at&255] = class
		}
	}
	return t
}()

// ascii is the first half of its first page, where most text is.
var ascii = [utf8.RuneSelf]Class(of.page[of.block[0]][:utf8.RuneSelf])

// Of returns the classes of a character.
func Of(r rune) Class {
	if r < 0 || r > utf8.MaxRune {
		return 0
	}
	return of.page[of.block[r>>8]][r&255]
}

// next returns classes and length of the first character of s[i:], or 0, 0 at the end.
func next(s string, i int) (Class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		return 0, 1
	}
	return of.page[of.block[r>>8]][r&255], n
}

// run returns where the run of characters that begins at i ends whose classes within mask are
// want.
func run(s string, i int, mask, want Class) int {
	for i < len(s) {
		k, n := next(s, i)
		if k&mask != want {
			break
		}
		i += n
	}
	return i
}
