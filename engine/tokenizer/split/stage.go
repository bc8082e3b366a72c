package split

import (
	"strings"
	"unicode/utf8"
)

// Stage cuts a text that is not empty into pieces and yields them in order, none of them empty.
// Unlike a Func it may change the text or leave parts of it out. Once the limit has failed, the
// pieces mean nothing.
type Stage func(s string, l *Limit, yield func(piece string))

// Stage makes a Stage of f.
func (f Func) Stage() Stage {
	return func(s string, _ *Limit, yield func(string)) {
		for len(s) > 0 {
			n := f(s)
			yield(s[:n])
			s = s[n:]
		}
	}
}

// Sequence cuts with each stage what the ones before it yield.
func Sequence(stages ...Stage) Stage {
	switch len(stages) {
	case 0:
		return func(s string, _ *Limit, yield func(string)) { yield(s) }
	case 1:
		return stages[0]
	}
	first, rest := stages[0], Sequence(stages[1:]...)
	return func(s string, l *Limit, yield func(string)) {
		first(s, l, func(piece string) { rest(piece, l, yield) })
	}
}

// Prefix puts text in front unless the text begins with it.
func Prefix(text string) Stage {
	return func(s string, _ *Limit, yield func(string)) {
		if !strings.HasPrefix(s, text) {
			s = text + s
		}
		yield(s)
	}
}

// Behavior says what becomes of matches and of what is between them.
type Behavior uint8

const (
	Isolated           Behavior = iota // each match is a piece, and each stretch between two
	Removed                            // matches are left out
	MergedWithPrevious                 // a match belongs to the stretch in front of it
	MergedWithNext                     // a match belongs to the stretch behind it
	Contiguous                         // matches in a row are one piece
)

// Behaviors are the names by which tokenizer.json calls them.
var Behaviors = map[string]Behavior{
	"Isolated": Isolated, "Removed": Removed, "MergedWithPrevious": MergedWithPrevious,
	"MergedWithNext": MergedWithNext, "Contiguous": Contiguous,
}

// matcher returns place and end of the first match in s from byte from on, and lo -1 if there is
// none.
type matcher func(s string, from int) (lo, hi int)

// span is a match or a stretch between two.
type span struct {
	lo, hi int
	match  bool
}

// stage makes a Stage of what a matcher finds. With invert, what is between matches counts as
// match.
func (find matcher) stage(b Behavior, invert bool) Stage {
	return func(s string, _ *Limit, yield func(string)) { cut(s, find.spans(s, invert), b, yield) }
}

func (find matcher) spans(s string, invert bool) []span {
	var all []span
	at := 0
	for at < len(s) {
		lo, hi := find(s, at)
		if lo < 0 {
			break
		}
		if lo > at {
			all = append(all, span{at, lo, invert})
		}
		all = append(all, span{lo, hi, !invert})
		at = hi
	}
	if at < len(s) {
		all = append(all, span{at, len(s), invert})
	}
	return all
}

func cut(s string, all []span, b Behavior, yield func(string)) {
	for i := 0; i < len(all); {
		first := all[i]
		end := i + 1
		switch b {
		case Removed:
			if first.match {
				i = end
				continue
			}
		case Contiguous:
			for end < len(all) && all[end].match == first.match {
				end++
			}
		case MergedWithPrevious:
			// Of matches in a row only the first belongs to what is in front.
			if !first.match && end < len(all) && all[end].match {
				end++
			}
		case MergedWithNext:
			if first.match && end < len(all) && !all[end].match {
				end++
			}
		}
		yield(s[first.lo:all[end-1].hi])
		i = end
	}
}

// Literal cuts at a literal text.
func Literal(text string, b Behavior, invert bool) Stage {
	return matcher(func(s string, from int) (int, int) {
		at := -1
		if text != "" {
			at = strings.Index(s[from:], text)
		}
		if at < 0 {
			return -1, -1
		}
		return from + at, from + at + len(text)
	}).stage(b, invert)
}

// Digits cuts out numbers, as a whole or digit by digit.
func Digits(individual bool) Stage {
	b := Contiguous
	if individual {
		b = Isolated
	}
	return class(func(r rune) bool { return Of(r)&Digit != 0 }).stage(b, false)
}

// Punctuation cuts at \p{P} and ASCII's symbols.
func Punctuation(b Behavior) Stage {
	return class(func(r rune) bool {
		return Of(r)&Punct != 0 || r < utf8.RuneSelf && Of(r)&Symbol != 0
	}).stage(b, false)
}

// Whitespace cuts at white space and leaves it out.
func Whitespace() Stage {
	return class(func(r rune) bool { return Of(r)&Space != 0 }).stage(Removed, false)
}

// class matches single characters.
func class(in func(r rune) bool) matcher {
	return func(s string, from int) (int, int) {
		for i := from; i < len(s); {
			r, n := utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || n > 1) && in(r) {
				return i, i + n
			}
			i += n
		}
		return -1, -1
	}
}
