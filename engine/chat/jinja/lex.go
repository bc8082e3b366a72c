package jinja

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a template's source (J2, J4), far above what templates in use have.
const (
	tagsMax     = 8192
	tagBytesMax = 16 << 10 // of code in one tag, strings not counted
	nestingMax  = 100      // of brackets in one tag, of signs in front of a value, and of blocks
)

type tokenKind uint8

const (
	tokData    tokenKind = iota // text of the template
	tokOpen                     // {{
	tokClose                    // }}
	tokBlock                    // {%
	tokEnd                      // %}
	tokName                     // names and words
	tokString                   // without quotes, escapes resolved
	tokInteger                  // digits
	tokFloat
	tokSign // operators and brackets
	tokEOF
)

type token struct {
	kind tokenKind
	text string
	line int
}

// is says whether the token is this word or sign.
func (t token) is(text string) bool {
	return (t.kind == tokName || t.kind == tokSign) && t.text == text
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokClose:
		return "'}}'"
	case tokEnd:
		return "'%}'"
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer parts a template into tokens, with the white space of Jinja2's trim_blocks and
// lstrip_blocks.
type lexer struct {
	src        string
	at         int
	line       int
	lineStarts bool // what was read last ended with a line's end
	tags       int
	out        []token
}

// IsSpace is white space as Python sees it.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trimLeft(s string) string  { return strings.TrimLeftFunc(s, IsSpace) }
func trimRight(s string) string { return strings.TrimRightFunc(s, IsSpace) }

func lex(src string) ([]token, error) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	l := lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStarts: true}
	for l.at < len(l.src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return append(l.out, token{kind: tokEOF, line: l.line}), nil
}

func (l *lexer) fail(format string, args ...any) error {
	return &Error{Line: l.line, Message: fmt.Sprintf(format, args...)}
}

func (l *lexer) emit(k tokenKind, text string) {
	l.out = append(l.out, token{k, text, l.line})
}

// skip goes n bytes on.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.src[l.at:l.at+n], "\n")
	l.at += n
}

// next reads text up to a tag, and the tag.
func (l *lexer) next() error {
	rest := l.src[l.at:]
	open := 0
	for ; open < len(rest); open++ {
		if rest[open] == '{' && open+1 < len(rest) && strings.IndexByte("{%#", rest[open+1]) >= 0 {
			break
		}
	}
	if open == len(rest) {
		l.data(rest)
		l.skip(open)
		return nil
	}
	if l.tags++; l.tags > tagsMax {
		return l.fail("the template has more than %d tags", tagsMax)
	}
	sign := byte(0)
	if open+2 < len(rest) && (rest[open+2] == '-' || rest[open+2] == '+') {
		sign = rest[open+2]
	}
	l.data(trimEnd(rest[:open], sign, rest[open+1] != '{', l.lineStarts))
	l.skip(open)
	kind := rest[open+1]
	if kind == '%' {
		if n, ok := rawBegin(rest[open:]); ok {
			l.lineStarts = rest[open+n-1] == '\n'
			l.skip(n)
			return l.raw()
		}
	}
	l.skip(2)
	if sign != 0 {
		l.skip(1)
	}
	switch kind {
	case '#':
		return l.comment()
	case '%':
		l.emit(tokBlock, "{%")
		return l.code("%}")
	}
	l.emit(tokOpen, "{{")
	return l.code("}}")
}

func (l *lexer) data(text string) {
	if text != "" {
		l.emit(tokData, text)
	}
}

// trimEnd is what the tag behind a text leaves of it.
func trimEnd(text string, sign byte, block, lineStarts bool) string {
	switch {
	case sign == '-':
		return trimRight(text)
	case sign == '+' || !block:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || lineStarts) && trimLeft(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// after goes over the end of a tag and what it takes with it: all white space behind "-", else a
// line's end where the tag is a block or comment.
func (l *lexer) after(sign byte, block bool) {
	n := 2
	rest := l.src[l.at+n:]
	switch {
	case sign == '-':
		n += len(rest) - len(trimLeft(rest))
	case sign != '+' && block && strings.HasPrefix(rest, "\n"):
		n++
	}
	l.lineStarts = l.src[l.at+n-1] == '\n'
	l.skip(n)
}

func (l *lexer) comment() error {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		return l.fail("a comment is not closed")
	}
	sign := byte(0)
	if n > 0 {
		sign = l.src[l.at+n-1]
	}
	l.skip(n)
	l.after(sign, true)
	return nil
}

// rawBegin returns the length of the begin of a raw block.
func rawBegin(s string) (int, bool) {
	word := s[2:]
	if word != "" && (word[0] == '-' || word[0] == '+') {
		word = word[1:]
	}
	word, ok := strings.CutPrefix(trimLeft(word), "raw")
	word = trimLeft(word)
	if rest, cut := strings.CutPrefix(word, "-%}"); ok && cut {
		return len(s) - len(trimLeft(rest)), true
	}
	rest, cut := strings.CutPrefix(word, "%}")
	return len(s) - len(rest), ok && cut
}

// raw reads what stands in a raw block, and its end.
func (l *lexer) raw() error {
	rest := l.src[l.at:]
	for n := 0; ; n += 2 {
		i := strings.Index(rest[n:], "{%")
		if i < 0 {
			return l.fail("a raw block is not closed")
		}
		n += i
		end, sign := rest[n+2:], byte(0)
		if end != "" && (end[0] == '-' || end[0] == '+') {
			sign, end = end[0], end[1:]
		}
		end, ok := strings.CutPrefix(trimLeft(end), "endraw")
		end = trimLeft(end)
		last := byte(0)
		if end != "" && (end[0] == '-' || end[0] == '+') {
			last, end = end[0], end[1:]
		}
		if !ok || !strings.HasPrefix(end, "%}") {
			continue
		}
		l.data(trimEnd(rest[:n], sign, true, l.lineStarts))
		l.skip(len(rest) - len(end))
		l.after(last, true)
		return nil
	}
}

// signs of two bytes and of one.
var signs2 = []string{"//", "**", "==", "!=", "<=", ">="}

const signs1 = "+-*/%~()[]{}=<>.:|,;"

// code reads the code of a tag and its end.
func (l *lexer) code(end string) error {
	depth, from := 0, l.at
	strs := 0
	for {
		if l.at-from-strs > tagBytesMax {
			return l.fail("a tag has more than %d bytes of code", tagBytesMax)
		}
		rest := l.src[l.at:]
		if trimmed := trimLeft(rest); len(trimmed) < len(rest) {
			l.skip(len(rest) - len(trimmed))
			continue
		}
		if rest == "" {
			return l.fail("a tag is not closed")
		}
		c := rest[0]
		signed := (c == '-' || c == '+' && end == "%}") && strings.HasPrefix(rest[1:], end)
		if depth == 0 && (signed || strings.HasPrefix(rest, end)) {
			sign := byte(0)
			if signed {
				sign = c
				l.skip(1)
			}
			kind := tokClose
			if end == "%}" {
				kind = tokEnd
			}
			l.emit(kind, end)
			l.after(sign, end == "%}")
			return nil
		}
		if c == '\'' || c == '"' {
			n := closing(rest)
			if n < 0 {
				return l.fail("a string is not closed")
			}
			l.emit(tokString, unescape(rest[1:n-1]))
			strs += n
			l.skip(n)
			continue
		}
		n, err := l.word(rest)
		if err != nil {
			return err
		}
		if strings.IndexByte("([{", c) >= 0 {
			if depth++; depth > nestingMax {
				return l.fail("brackets are nested more than %d deep", nestingMax)
			}
		} else if strings.IndexByte(")]}", c) >= 0 {
			if depth--; depth < 0 {
				return l.fail("unexpected %q", c)
			}
		}
		l.skip(n)
	}
}

// word reads a name, number or sign.
func (l *lexer) word(s string) (int, error) {
	r, _ := utf8.DecodeRuneInString(s)
	if unicode.IsDigit(r) && r < utf8.RuneSelf {
		n, kind := digits(s)
		l.emit(kind, strings.ReplaceAll(s[:n], "_", ""))
		return n, nil
	}
	if r == '_' || unicode.IsLetter(r) {
		n := strings.IndexFunc(s, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		})
		if n < 0 {
			n = len(s)
		}
		l.emit(tokName, s[:n])
		return n, nil
	}
	for _, sign := range signs2 {
		if strings.HasPrefix(s, sign) {
			l.emit(tokSign, sign)
			return 2, nil
		}
	}
	if strings.IndexByte(signs1, s[0]) >= 0 {
		l.emit(tokSign, s[:1])
		return 1, nil
	}
	return 0, l.fail("unexpected char %q", r)
}

// digits returns the length and kind of the number that s begins with.
func digits(s string) (n int, kind tokenKind) {
	run := func(i int, set string) int {
		for i < len(s) && (strings.IndexByte(set, s[i]) >= 0 || s[i] == '_' && i+1 < len(s) && strings.IndexByte(set, s[i+1]) >= 0) {
			i++
		}
		return i
	}
	const decimal = "0123456789"
	if s[0] == '0' && len(s) > 2 {
		if set := map[byte]string{'x': decimal + "abcdefABCDEF", 'o': "01234567", 'b': "01"}[lower(s[1])]; set != "" {
			if n := run(2, set); n > 2 {
				return n, tokInteger
			}
		}
	}
	n, kind = run(1, decimal), tokInteger
	if n+1 < len(s) && s[n] == '.' && strings.IndexByte(decimal, s[n+1]) >= 0 {
		n, kind = run(n+1, decimal), tokFloat
	}
	if e := n + 1; n < len(s) && lower(s[n]) == 'e' {
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if end := run(e, decimal); end > e {
			n, kind = end, tokFloat
		}
	}
	return n, kind
}

// closing is the length of the string literal that s begins with, or -1.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}
