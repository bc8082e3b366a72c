package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// formatMax is the widest field of formatting.
const formatMax = 1000

// formatFilter is "%s" | format(x).
func formatFilter(r *run, v Value, a arguments) (Value, error) {
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	if len(a.kw) > 0 {
		return nil, errors.New("the filter format takes no names here")
	}
	return r.percent(t, &List{items: a.pos, tuple: true})
}

// percent is Python's "%s %d" % (…): s, r, d, i, x, f and %%, with width and precision.
func (r *run) percent(t Text, v Value) (Value, error) {
	given := []Value{v}
	if l, ok := v.(*List); ok && l.tuple {
		given = l.items
	}
	var b builder
	rest := t
	for {
		i := strings.IndexByte(rest.s, '%')
		if i < 0 {
			break
		}
		b.add(rest.Slice(0, i))
		rest = rest.Slice(i+1, len(rest.s))
		n := len(rest.s) - len(strings.TrimLeft(rest.s, "-+ 0123456789."))
		if n == len(rest.s) {
			return nil, errors.New("incomplete format")
		}
		flags, verb := rest.s[:n], rest.s[n]
		rest = rest.Slice(n+1, len(rest.s))
		if verb == '%' {
			b.lit("%")
			continue
		}
		if len(given) == 0 {
			return nil, errors.New("not enough arguments for format string")
		}
		x, err := r.field(flags, verb, given[0])
		if err != nil {
			return nil, err
		}
		given = given[1:]
		b.add(x)
	}
	if len(given) > 0 {
		if _, ok := given[0].(*Dict); !ok {
			return nil, errors.New("not all arguments converted during string formatting")
		}
	}
	b.add(rest)
	return b.text(), r.pay(b.Len())
}

// field formats one value.
func (r *run) field(flags string, verb byte, v Value) (Text, error) {
	for part := range strings.SplitSeq(strings.Trim(flags, "-+ "), ".") {
		if n, err := strconv.Atoi(part); part != "" && (err != nil || n > formatMax) {
			return Text{}, fmt.Errorf("a width of at most %d is needed, not %s", formatMax, part)
		}
	}
	switch verb {
	case 's', 'r':
		t, err := r.str(v)
		if verb == 'r' {
			t, err = r.repr(v, 0)
		}
		if err != nil || flags == "" {
			return t, err
		}
		return t.as(fmt.Sprintf("%"+flags+"s", t.s)), nil
	case 'd', 'i', 'x', 'X', 'o':
		n, ok := whole(v)
		if f, isFloat := v.(float); isFloat && verb == 'd' {
			n, ok = int64(f.v), true
		}
		if !ok {
			return Text{}, fmt.Errorf("%%%c format: a real number is required, not %s", verb, typeName(v))
		}
		if verb == 'i' {
			verb = 'd'
		}
		return from(fromClient(v), fmt.Sprintf("%"+flags+string(verb), n)), nil
	case 'c':
		n, ok := whole(v)
		if t, isText := v.(Text); isText {
			return t, nil
		}
		if !ok || n < 0 || n > unicode.MaxRune {
			return Text{}, errors.New("%c requires int or char")
		}
		return from(fromClient(v), string(rune(n))), nil
	case 'f', 'F', 'e', 'g':
		f, ok := asNumber(v)
		if !ok {
			return Text{}, fmt.Errorf("must be real number, not %s", typeName(v))
		}
		return from(fromClient(v), fmt.Sprintf("%"+flags+string(verb), f)), nil
	}
	return Text{}, fmt.Errorf("unsupported format character '%c'", verb)
}

// formatMethod is "{} {0} {name}".format(…), without attributes and format specifications.
func formatMethod(r *run, t Text, a arguments) (Value, error) {
	var b builder
	next, numbered := 0, false
	for at := 0; at < len(t.s); {
		i := strings.IndexAny(t.s[at:], "{}")
		if i < 0 {
			b.add(t.Slice(at, len(t.s)))
			break
		}
		b.add(t.Slice(at, at+i))
		at += i
		if at+1 < len(t.s) && t.s[at+1] == t.s[at] {
			b.add(t.Slice(at, at+1))
			at += 2
			continue
		}
		end := strings.IndexByte(t.s[at:], '}')
		if end <= 0 {
			return nil, errors.New("Single '{' or '}' encountered in format string")
		}
		field := t.s[at+1 : at+end]
		at += end + 1
		v := Value(nil)
		if n, err := strconv.Atoi(field); field == "" || err == nil {
			if field == "" {
				n = next
				next++
			} else {
				numbered = true
			}
			if numbered && next > 0 {
				return nil, errors.New("cannot switch between manual field specification and automatic field numbering")
			}
			if n >= 0 && n < len(a.pos) {
				v = a.pos[n]
			}
		}
		for _, k := range a.kw {
			if k.name == field {
				v = k.value
			}
		}
		if v == nil {
			return nil, fmt.Errorf("format: there is no argument for {%s}, or it is not supported", field)
		}
		x, err := r.str(v)
		if err == nil {
			err = r.pay(x.size())
		}
		if err != nil {
			return nil, err
		}
		b.add(x)
	}
	return b.text(), nil
}
