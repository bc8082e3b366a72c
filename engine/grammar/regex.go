package grammar

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// regexBytesMost bounds a regular expression's text.
	regexBytesMost = 4096
	// regexStepsMost bounds its program: counted repetitions are written out.
	regexStepsMost = 8192
)

// regexForm says how a regular expression is used.
type regexForm struct {
	json     bool // what it matches stands inside a JSON string
	search   bool // it may match a part of the text
	min, max int  // characters; max -1: no bound
}

// formats are the formats of strings, as expressions that match as a whole; "" says nothing of
// the form. They accept a part of what the RFCs do, and nothing else.
var formats = map[string]string{
	"date":      datePattern,
	"time":      timePattern,
	"date-time": datePattern + "T" + timePattern,
	"duration":  `P(?:\d{1,4}W|(?:\d{1,4}Y(?:\d{1,2}M(?:\d{1,2}D)?)?|\d{1,2}M(?:\d{1,2}D)?|\d{1,3}D)(?:T(?:` + dayPattern + `))?|T(?:` + dayPattern + `))`,
	"uuid":      `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"email":     `[A-Za-z0-9_+-]{1,20}(?:\.[A-Za-z0-9_+-]{1,20}){0,2}@` + hostPattern,
	"hostname":  hostPattern,
	"ipv4":      `(?:` + bytePattern + `\.){3}` + bytePattern,
	"ipv6":      `(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}:[0-9a-f]{1,4}|::1|::`,
	"uri":       `https?://` + hostPattern + `(?::[1-9]\d{0,3})?(?:/[A-Za-z0-9._~-]{0,40}){0,10}(?:\?[A-Za-z0-9._~=&-]{0,80})?(?:#[A-Za-z0-9._~-]{0,40})?`,
	"byte":      `(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`,
	"binary":    "", "password": "", "path": "", "int32": "", "int64": "", "float": "", "double": "",
}

const (
	datePattern = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
		`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	timePattern = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	dayPattern  = `\d{1,2}H(?:\d{1,2}M(?:\d{1,2}S)?)?|\d{1,2}M(?:\d{1,2}S)?|\d{1,2}S`
	bytePattern = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	// hostPattern has labels shorter than DNS allows, so that the whole is never too long.
	hostPattern = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?){1,4}`
)

func formatNames() string {
	var list []string
	for name := range formats {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// regex returns the start of what pattern matches, after which to comes.
func (b *builder) regex(pattern string, form regexForm, to int32) (int32, error) {
	if len(pattern) > regexBytesMost {
		return 0, fmt.Errorf("the expression has %d bytes, allowed are %d", len(pattern), regexBytesMost)
	}
	if !b.spend(regexWork(pattern)) {
		return 0, b.err
	}
	if form.search {
		pattern = fromECMA(pattern)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the expression %s is none that is supported (RE2 syntax): %w", quote(pattern), err)
	}
	if n := regexSize(re); n > regexStepsMost {
		return 0, fmt.Errorf("the expression %s is too large: its repetitions written out have more than %d steps", quote(pattern), regexStepsMost)
	}
	if !b.spend(4 * regexSize(re)) {
		return 0, b.err
	}
	re = withoutGroups(re)
	if form.search {
		any := &syntax.Regexp{Op: syntax.OpStar, Sub: []*syntax.Regexp{{Op: syntax.OpAnyChar}}}
		re = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{any, re, any}}
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, fmt.Errorf("the expression %s: %w", quote(pattern), err)
	}
	w := regexWalk{builder: b, prog: prog, form: form, to: to, holes: map[regexPlace]int32{}, rules: map[*rune]int32{}}
	start := w.at(regexPlace{pc: uint32(prog.Start), begin: true})
	for len(w.todo) > 0 && b.err == nil {
		p := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if err := w.visit(p); err != nil {
			return 0, fmt.Errorf("the expression %s: %w", quote(pattern), err)
		}
	}
	return start, nil
}

// regexWork is what reading an expression counts in the work: classes of Unicode are lists of up to
// 1,300 numbers, and ranges of letters whose case does not count are gone through one by one.
func regexWork(pattern string) int {
	units := 8 * len(pattern)
	folds := strings.Contains(pattern, "(?")
	for i := 0; i+1 < len(pattern); i++ {
		switch c, next := pattern[i], pattern[i+1]; {
		case c == '\\' && (next == 'p' || next == 'P'):
			units += 256
		case c == '-' && folds && (next == '\\' || next >= utf8.RuneSelf):
			units += 1 << 15
		}
	}
	return units
}

// fromECMA returns what ECMA-262 writes as \u00e9 as RE2 does: \x{00e9}; two halves of a pair as
// the character that they stand for.
func fromECMA(pattern string) string {
	if !strings.Contains(pattern, `\u`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); {
		r, n := codePoint(pattern[i:])
		if n == 0 { // a character, or an escape of two
			n = 1
			if pattern[i] == '\\' && i+1 < len(pattern) {
				n = 2
			}
			b.WriteString(pattern[i : i+n])
			i += n
			continue
		}
		i += n
		if low, n := codePoint(pattern[i:]); n > 0 && utf16.IsSurrogate(r) {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				r, i = both, i+n
			}
		}
		fmt.Fprintf(&b, `\x{%04x}`, r)
	}
	return b.String()
}

// codePoint reads \u and four hexadecimal digits at the beginning of s; n is 0 if they are not there.
func codePoint(s string) (r rune, n int) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(v), 6
}

// withoutGroups returns re with what its groups hold in their place: nobody asks for them, and
// stars of stars become one.
func withoutGroups(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	c := *re
	c.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, s := range re.Sub {
		c.Sub[i] = withoutGroups(s)
	}
	return &c
}

// regexSize is about how many steps a program of re has.
func regexSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, s := range re.Sub {
		n += regexSize(s)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min+1, 1)
	}
	return min(n, regexStepsMost+1)
}

// regexWalk turns a program over characters into nodes over bytes. What a place in the program
// means also depends on whether the text has begun, or must end, and on its length if that is
// bounded.
type regexWalk struct {
	*builder
	prog  *syntax.Prog
	form  regexForm
	to    int32
	holes map[regexPlace]int32
	rules map[*rune]int32 // of classes, by the list: instructions that were written out share it
	todo  []regexPlace
}

type regexPlace struct {
	pc         uint32
	begin, fin bool // nothing was read so far; nothing may be read any more
	count      int32
}

func (w *regexWalk) at(p regexPlace) int32 {
	if h, ok := w.holes[p]; ok {
		return h
	}
	w.spend(4)
	h := w.hole()
	w.holes[p] = h
	w.todo = append(w.todo, p)
	return h
}

func (w *regexWalk) visit(p regexPlace) error {
	hole := w.holes[p]
	in := &w.prog.Inst[p.pc]
	next := p
	next.pc = in.Out
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		other := p
		other.pc = in.Arg
		w.fill(hole, w.at(next), w.at(other))
	case syntax.InstCapture, syntax.InstNop:
		w.fill(hole, w.at(next))
	case syntax.InstEmptyWidth:
		switch syntax.EmptyOp(in.Arg) {
		case syntax.EmptyBeginText:
			if !p.begin {
				return nil
			}
		case syntax.EmptyEndText:
			next.fin = true
		default:
			return fmt.Errorf(`\b, \B and ^ and $ at lines are not supported, only at the whole text`)
		}
		w.fill(hole, w.at(next))
	case syntax.InstMatch:
		if int(p.count) >= w.form.min {
			w.fill(hole, w.to)
		}
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		if p.fin || w.form.max >= 0 && int(p.count) >= w.form.max {
			return nil
		}
		next.begin = false
		if most := max(w.form.min, w.form.max); int(p.count) < most {
			next.count++
		}
		w.fill(hole, w.runes(in, w.at(next)))
	}
	return nil
}

// runes returns the start of one character that an instruction takes.
func (w *regexWalk) runes(in *syntax.Inst, to int32) int32 {
	s := runesOf(in)
	if len(s) < classFrom {
		return w.class(s, w.form.json, to)
	}
	rule, ok := w.rules[&s[0]]
	if !ok {
		rule = w.classRule(s, w.form.json)
		w.rules[&s[0]] = rule
	}
	return w.call(rule, to)
}

// classFrom is how long the list of a class is that is looked up by itself, not by what it holds.
const classFrom = 32

// runesOf returns the characters that an instruction takes.
func runesOf(in *syntax.Inst) set {
	switch in.Op {
	case syntax.InstRuneAny:
		return everyRune
	case syntax.InstRuneAnyNotNL:
		return everyRuneButLine
	}
	if len(in.Rune) != 1 {
		return in.Rune
	}
	r := in.Rune[0]
	out := []rune{r}
	if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	var s set
	for _, r := range out {
		s = append(s, r, r)
	}
	return s
}

// until returns the start of any text up to and with the first s, which is not empty, or mark,
// if that is not 0.
func (b *builder) until(s string, mark byte, to int32) int32 {
	want := []rune(s)
	if strings.ContainsRune(s, utf8.RuneError) && !utf8.ValidString(s) {
		b.fail("until is not valid UTF-8")
		return end
	}
	holes := make([]int32, len(want))
	for i := range holes {
		holes[i] = b.hole()
	}
	// back[i] is how many characters at the end of the first i, not all of them, are the beginning
	// of want: what counts where the next character is another.
	back := make([]int, len(want)+1)
	after := func(i int, r rune) int {
		for i == len(want) || want[i] != r {
			if i == 0 {
				return 0
			}
			i = back[i]
		}
		return i + 1
	}
	for i := 1; i < len(want); i++ {
		back[i+1] = after(back[i], want[i])
	}
	for i := range want {
		var letters []rune // that do not lead back to the beginning
		for k := i; b.spend(1); k = back[k] {
			if !slices.Contains(letters, want[k]) {
				letters = append(letters, want[k])
			}
			if k == 0 {
				break
			}
		}
		slices.Sort(letters)
		if !b.spend(8 + 2*len(letters)) {
			return end
		}
		starts := []int32{b.class(everyRune.without(letters...), false, holes[0])}
		for _, r := range letters {
			next := to
			if n := after(i, r); n < len(want) {
				next = holes[n]
			}
			starts = append(starts, b.class(set{r, r}, false, next))
		}
		if mark != 0 {
			starts = append(starts, b.byte(mark, to))
		}
		b.fill(holes[i], starts...)
	}
	return holes[0]
}
