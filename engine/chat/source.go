package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a template's source (C3), far above what templates in use have. With them no nesting
// of the engine's parser and evaluator, which recurse, comes near the end of a stack, of which
// there is no coming back.
const (
	tagsMax     = 8192
	tagBytesMax = 16 << 10 // of code in one tag, strings not counted
	nestingMax  = 100      // of brackets in one tag, and of blocks
)

// Names of the callables that are put into a template to count what it does.
const (
	stepName  = "baton_step"  // once per round of a loop
	enterName = "baton_enter" // when a macro begins
	leaveName = "baton_leave" // when it ends
)

// source rewrites a template for the engine (C3, C4):
//
//	white space  is trimmed here as Jinja2 does with Hugging Face's settings (trim_blocks,
//	             lstrip_blocks); the engine also trims text that stands behind another tag
//	text         becomes an expression, so that the engine finds nothing to trim
//	strings      have their escapes resolved, of which the engine knows a few
//	loops        and macros count, so that no template runs for ever (C3)
//
// Lines keep their numbers, for the errors of the engine. What it cannot read it leaves for the
// engine to say.
func source(src string) (string, error) {
	if i := strings.Index(src, "baton_"); i >= 0 {
		return "", fmt.Errorf("a name begins with %q, which is reserved", "baton_")
	}
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	r := rewriter{src: strings.TrimSuffix(src, "\n"), lineStarts: true}
	for r.at < len(r.src) {
		if err := r.next(); err != nil {
			return "", err
		}
	}
	return r.out.String(), nil
}

type rewriter struct {
	src        string
	at         int
	out        strings.Builder
	lineStarts bool // what was read last ended with a line's end
	tags       int
	blocks     int
}

// next reads text up to a tag, and the tag.
func (r *rewriter) next() error {
	rest := r.src[r.at:]
	open := 0
	for ; open < len(rest); open++ {
		if rest[open] == '{' && open+1 < len(rest) && strings.IndexByte("{%#", rest[open+1]) >= 0 {
			break
		}
	}
	text := rest[:open]
	if open == len(rest) {
		r.literal(text, len(text))
		r.at = len(r.src)
		return nil
	}
	if r.tags++; r.tags > tagsMax {
		return fmt.Errorf("the template has more than %d tags", tagsMax)
	}
	sign := byte(0)
	if open+2 < len(rest) {
		sign = rest[open+2]
	}
	r.literal(trimRight(text, sign, rest[open+1] != '{', r.lineStarts), len(text))
	r.at += open + 2
	if sign == '-' || sign == '+' {
		r.at++
	}
	switch rest[open+1] {
	case '#':
		return r.comment()
	case '%':
		if body, ok := r.raw(); ok {
			return r.endRaw(body)
		}
	}
	return r.tag(rest[open+1] == '%')
}

// trimRight is what the tag behind a text leaves of it.
func trimRight(text string, sign byte, block, lineStarts bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, unicode.IsSpace)
	case sign == '+' || !block:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || lineStarts) && strings.TrimSpace(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// literal writes text as an expression, with as many line ends as the original has.
func (r *rewriter) literal(text string, original int) {
	lines := strings.Repeat("\n", strings.Count(r.src[r.at:r.at+original], "\n"))
	switch {
	case text != "":
		r.out.WriteString("{{ " + quote(text) + lines + " }}")
	case lines != "":
		r.out.WriteString("{#" + lines + "#}")
	}
}

// skip goes n bytes on and keeps their line ends.
func (r *rewriter) skip(n int) {
	r.literal("", n)
	r.at += n
}

// after goes over what the end of a tag takes with it: all white space behind "-", else a line's
// end where the tag is a block or comment. width is the end's own, without its sign.
func (r *rewriter) after(sign byte, width int, block bool) {
	n := width
	rest := r.src[r.at+n:]
	switch {
	case sign == '-':
		n += len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	case sign != '+' && block && strings.HasPrefix(rest, "\n"):
		n++
	}
	r.lineStarts = r.src[r.at+n-1] == '\n'
	r.skip(n)
}

func (r *rewriter) comment() error {
	n := strings.Index(r.src[r.at:], "#}")
	if n < 0 {
		return fmt.Errorf("a comment is not closed")
	}
	sign := byte(0)
	if n > 0 {
		sign = r.src[r.at+n-1]
	}
	r.skip(n)
	r.after(sign, 2, true)
	return nil
}

// raw reads the begin of a raw block and returns the length of what begins there.
func (r *rewriter) raw() (int, bool) {
	word, ok := strings.CutPrefix(strings.TrimLeftFunc(r.src[r.at:], unicode.IsSpace), "raw")
	word = strings.TrimLeftFunc(word, unicode.IsSpace)
	if !ok {
		return 0, false
	}
	if rest, ok := strings.CutPrefix(word, "-%}"); ok {
		return len(r.src) - r.at - len(strings.TrimLeftFunc(rest, unicode.IsSpace)), true
	}
	rest, ok := strings.CutPrefix(word, "%}")
	return len(r.src) - r.at - len(rest), ok
}

// endRaw writes what stands in a raw block.
func (r *rewriter) endRaw(begin int) error {
	r.lineStarts = r.src[r.at+begin-1] == '\n'
	r.skip(begin)
	rest := r.src[r.at:]
	for n := range len(rest) {
		if !strings.HasPrefix(rest[n:], "{%") {
			continue
		}
		end, sign := rest[n+2:], byte(0)
		if end != "" && (end[0] == '-' || end[0] == '+') {
			sign, end = end[0], end[1:]
		}
		end, ok := strings.CutPrefix(strings.TrimLeftFunc(end, unicode.IsSpace), "endraw")
		end = strings.TrimLeftFunc(end, unicode.IsSpace)
		last := byte(0)
		if end != "" && (end[0] == '-' || end[0] == '+') {
			last, end = end[0], end[1:]
		}
		if !ok || !strings.HasPrefix(end, "%}") {
			continue
		}
		r.literal(trimRight(rest[:n], sign, true, r.lineStarts), n)
		r.at += n
		r.skip(len(rest) - n - len(end))
		r.after(last, 2, true)
		return nil
	}
	return fmt.Errorf("a raw block is not closed")
}

// tag writes a statement or an expression without its signs, and counters around it.
func (r *rewriter) tag(block bool) error {
	code, n, sign, err := code(r.src[r.at:], block)
	if err != nil {
		return err
	}
	r.at += n
	word := strings.TrimLeftFunc(code, unicode.IsSpace)
	end := strings.IndexFunc(word, func(c rune) bool { return !unicode.IsLetter(c) && c != '_' })
	if end >= 0 {
		word = word[:end]
	}
	switch {
	case !block:
		r.out.WriteString("{{ " + code + " }}")
	case word == "endmacro":
		r.out.WriteString("{% if " + leaveName + "() %}{% endif %}{% endmacro %}")
	case word == "for":
		r.out.WriteString("{% " + code + " %}{% if " + stepName + "() %}{% endif %}")
	case word == "macro":
		r.out.WriteString("{% " + code + " %}{% if " + enterName + "() %}{% endif %}")
	default:
		r.out.WriteString("{% " + code + " %}")
	}
	if strings.HasPrefix(word, "end") {
		r.blocks--
	} else if block && (word != "set" || !strings.Contains(code, "=")) && opens[word] {
		r.blocks++
	}
	if r.blocks > nestingMax {
		return fmt.Errorf("blocks are nested more than %d deep", nestingMax)
	}
	r.after(sign, 2, block)
	return nil
}

// opens are the statements that an "end" belongs to.
var opens = map[string]bool{"for": true, "if": true, "macro": true, "call": true, "filter": true, "set": true, "generation": true}

// code reads the code of a tag up to its end: what the engine is to read, where the end begins,
// and the sign in front of it.
func code(s string, block bool) (clean string, n int, sign byte, err error) {
	end := "}}"
	if block {
		end = "%}"
	}
	var b strings.Builder
	depth, text := 0, 0
	for i := 0; i < len(s); {
		if b.Len()-text > tagBytesMax {
			return "", 0, 0, fmt.Errorf("a tag has more than %d bytes of code", tagBytesMax)
		}
		c := s[i]
		signed := (c == '-' || c == '+' && block) && strings.HasPrefix(s[i+1:], end)
		switch {
		case depth == 0 && signed:
			return b.String(), i + 1, c, nil
		case depth == 0 && strings.HasPrefix(s[i:], end):
			return b.String(), i, 0, nil
		case c == '\'' || c == '"':
			size := closing(s[i:])
			if size < 0 {
				return "", 0, 0, fmt.Errorf("a string is not closed")
			}
			lines := strings.Repeat("\n", strings.Count(s[i:i+size], "\n"))
			before := b.Len()
			b.WriteString(quote(unescape(s[i+1:i+size-1])) + lines)
			text += b.Len() - before
			i += size
			continue
		case strings.IndexByte("([{", c) >= 0:
			if depth++; depth > nestingMax {
				return "", 0, 0, fmt.Errorf("brackets are nested more than %d deep", nestingMax)
			}
		case strings.IndexByte(")]}", c) >= 0:
			depth = max(0, depth-1)
			if strings.HasPrefix(s[i+1:], "}") {
				b.WriteByte(c)
				c = ' ' // or the engine takes both for the end of an expression
			}
		}
		b.WriteByte(c)
		i++
	}
	return "", 0, 0, fmt.Errorf("a tag is not closed")
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

// quote writes a string literal as the engine reads it.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`).Replace(text) + "'"
}

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
