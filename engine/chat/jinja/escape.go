package jinja

import (
	"strings"
	"unicode/utf8"
)

// unescape resolves the escapes of a Python string; one that is not known stays as it is.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if at := strings.IndexByte("abfnrtv\\'\"\n", c); at >= 0 {
			b.WriteString([...]string{"\a", "\b", "\f", "\n", "\r", "\t", "\v", "\\", "'", "\"", ""}[at])
			continue
		}
		if r, n := number(s[i:]); n > 0 {
			b.WriteRune(r)
			i += n - 1
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	return b.String()
}

// number reads the escape of a character by its number, without the backslash: x41, u00e9,
// U0001f600, 101.
func number(s string) (r rune, n int) {
	base, from, to := rune(16), 1, map[byte]int{'x': 3, 'u': 5, 'U': 9}[s[0]]
	exact := to > 0
	if !exact {
		base, from, to = 8, 0, 3
	}
	for n = from; n < to && n < len(s); n++ {
		digit := strings.IndexByte("0123456789abcdef", lower(s[n]))
		if digit < 0 || rune(digit) >= base {
			break
		}
		r = r*base + rune(digit)
	}
	if n == from || exact && n < to || !utf8.ValidRune(r) {
		return 0, 0
	}
	return r, n
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
