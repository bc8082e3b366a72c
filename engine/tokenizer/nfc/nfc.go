package nfc

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"sync"
	"unicode/utf8"
)

//go:embed nfc.bin
var packed []byte

// forms is what the table in packed says, spread out for looking up.
type forms struct {
	page  [(utf8.MaxRune + 1) >> 8]uint8 // number of the page of a block of 256 code points
	pages [][256]uint8                   // combining class, or restless
	full  map[rune][]rune                // full decompositions
	pair  map[[2]rune]rune               // what two make together
}

// restless marks characters of class 0 that do not always stay as they are: they are taken apart
// and never put together again, or they may join the one in front. No combining class is 255.
const restless = 255

// Hangul syllables are put together by a rule.
const (
	hangulFirst, hangulLast = 0xac00, 0xac00 + 11172 - 1
	leadFirst, leads        = 0x1100, 19
	vowelFirst, vowels      = 0x1161, 21
	tailFirst, tails        = 0x11a7, 28 // the first is no tail
)

// stable is the lead byte below which all characters stay as they are: U+0300 is the first mark.
const stable = 0xcc

var tables = sync.OnceValue(unpack)

func unpack() *forms {
	f := &forms{pages: make([][256]uint8, 1), full: map[rune][]rune{}, pair: map[[2]rune]rune{}}
	rest := packed
	number := func() int {
		v, n := binary.Uvarint(rest)
		rest = rest[n:]
		return int(v)
	}
	at := 0
	for range number() {
		at += number()
		n, class := number(), number()
		for range n {
			f.set(rune(at), uint8(class))
			at++
		}
	}
	r := rune(0)
	for range number() {
		r += rune(number())
		head, parts := rune(number()), make([]rune, number())
		for i := range parts {
			parts[i] = rune(number())
		}
		f.full[r] = parts
		if head == 0 {
			f.stir(r)
			continue
		}
		f.pair[[2]rune{head, parts[len(parts)-1]}] = r
		f.stir(parts[len(parts)-1])
	}
	for v := range rune(vowels) {
		f.stir(vowelFirst + v)
	}
	for t := rune(1); t < tails; t++ {
		f.stir(tailFirst + t)
	}
	return f
}

func (f *forms) set(r rune, v uint8) {
	p := &f.page[r>>8]
	if *p == 0 {
		*p = uint8(len(f.pages))
		f.pages = append(f.pages, [256]uint8{})
	}
	f.pages[*p][r&255] = v
}

// stir marks a character of class 0 as restless.
func (f *forms) stir(r rune) {
	if f.at(r) == 0 {
		f.set(r, restless)
	}
}

// at returns the combining class of r, or restless.
func (f *forms) at(r rune) uint8 { return f.pages[f.page[r>>8]][r&255] }

// class is the combining class alone.
func (f *forms) class(r rune) uint8 {
	if r < 0 {
		return 0
	}
	if c := f.at(r); c != restless {
		return c
	}
	return 0
}

// String returns s in normal form C; s itself if it is.
func String(s string) string {
	var f *forms
	var out []byte
	var buf []rune
	done, start := 0, 0 // s[:done] is in out; a stretch that may change begins at start
	for i := 0; i < len(s); {
		if s[i] < stable {
			start = i
			i++
			for i < len(s) && s[i]&0xc0 == 0x80 {
				i++
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if f == nil {
			f = tables()
		}
		if r == utf8.RuneError && n == 1 || f.at(r) == 0 {
			start = i
			i += n
			continue
		}
		// The stretch goes up to the next character that always stays and joins nothing.
		buf = f.appendApart(buf[:0], s[start:i])
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || f.at(r) == 0 {
				break
			}
			buf = f.appendApart(buf, s[i:i+n])
			i += n
		}
		out = append(out, s[done:start]...)
		out = appendText(out, f.together(buf))
		done, start = i, i
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// appendApart appends the decomposition of s; a byte b that is no part of a character is -1-b.
func (f *forms) appendApart(dst []rune, s string) []rune {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, -1-rune(s[0]))
		case hangulFirst <= r && r <= hangulLast:
			r -= hangulFirst
			dst = append(dst, leadFirst+r/(vowels*tails), vowelFirst+r/tails%vowels)
			if r%tails > 0 {
				dst = append(dst, tailFirst+r%tails)
			}
		default:
			if parts, ok := f.full[r]; ok {
				dst = append(dst, parts...)
			} else {
				dst = append(dst, r)
			}
		}
		s = s[n:]
	}
	return dst
}

// together orders the marks of b by class and puts together what can be.
func (f *forms) together(b []rune) []rune {
	for i := 0; i < len(b); i++ {
		end := i
		for end < len(b) && f.class(b[end]) != 0 {
			end++
		}
		if end > i+1 {
			slices.SortStableFunc(b[i:end], func(x, y rune) int { return int(f.class(x)) - int(f.class(y)) })
		}
		i = end
	}
	out, starter, last := b[:0], -1, uint8(0) // last: class of the character that was kept last
	for _, r := range b {
		class := f.class(r)
		if starter >= 0 && (last < class || len(out) == starter+1) {
			if whole, ok := f.join(out[starter], r); ok {
				out[starter] = whole
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		out, last = append(out, r), class
	}
	return out
}

// join returns what a and b make together.
func (f *forms) join(a, b rune) (rune, bool) {
	if l, v := a-leadFirst, b-vowelFirst; 0 <= l && l < leads && 0 <= v && v < vowels {
		return hangulFirst + (l*vowels+v)*tails, true
	}
	if s, t := a-hangulFirst, b-tailFirst; 0 <= s && a <= hangulLast && s%tails == 0 && 0 < t && t < tails {
		return a + t, true
	}
	r, ok := f.pair[[2]rune{a, b}]
	return r, ok
}

func appendText(dst []byte, b []rune) []byte {
	for _, r := range b {
		if r < 0 {
			dst = append(dst, byte(-1-r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
