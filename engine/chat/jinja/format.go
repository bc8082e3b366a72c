package jinja

import (
	"errors"
	"fmt"
	"math"
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

// percent is Python's "%s %d" % (…): s, r, d, i, x, c, f and their like, and %%, with width and precision.
func (r *run) percent(t Text, v Value) (Value, error) {
	given := []Value{v}
	if l, ok := v.(*List); ok && l.tuple {
		given = l.items
	}
	b := r.builder()
	at := 0
	for {
		i := strings.IndexByte(t.s[at:], '%')
		if i < 0 {
			break
		}
		b.add(t.Slice(at, at+i))
		at += i + 1
		n := len(t.s[at:]) - len(strings.TrimLeft(t.s[at:], "-+ 0123456789."))
		if at+n == len(t.s) {
			return nil, errors.New("incomplete format")
		}
		how, verb := t.Slice(at, at+n), t.s[at+n]
		if at += n + 1; verb == '%' {
			b.add(t.Slice(at-1, at))
			continue
		}
		if len(given) == 0 {
			return nil, errors.New("not enough arguments for format string")
		}
		f, err := readField(how)
		if err != nil {
			return nil, err
		}
		x, err := r.field(f, verb, given[0])
		if err != nil {
			return nil, err
		}
		given = given[1:]
		b.add(x)
		if b.err != nil {
			return nil, b.err
		}
	}
	if len(given) > 0 {
		if _, ok := given[0].(*Dict); !ok {
			return nil, errors.New("not all arguments converted during string formatting")
		}
	}
	b.add(t.Slice(at, len(t.s)))
	return b.value()
}

// field is what stands between % and its letter.
type field struct {
	flags            string // those of - + 0 and blank
	width, precision int    // precision is -1 where there is none
	client           bool   // who asked for it
}

func readField(how Text) (field, error) {
	f := field{precision: -1, client: how.fromClient()}
	rest := strings.TrimLeft(how.s, "-+ 0")
	f.flags = how.s[:len(how.s)-len(rest)]
	width, precision, dot := strings.Cut(rest, ".")
	var err error
	if width != "" {
		f.width, err = strconv.Atoi(width)
	}
	if f.precision = -1; dot && err == nil {
		if f.precision = 0; precision != "" {
			f.precision, err = strconv.Atoi(precision)
		}
	}
	if err != nil || max(f.width, f.precision) > formatMax || min(f.width, f.precision) < -1 || len(f.flags) > formatMax {
		return f, fmt.Errorf("a width and a precision of at most %d are needed, not %s", formatMax, short(how.s))
	}
	return f, nil
}

// number writes one as fmt does, whose flags are Python's.
func (f field) number(verb byte, x any, client bool) Text {
	how := "%" + f.flags + "*"
	if f.precision >= 0 {
		return from(client || f.client, fmt.Sprintf(how+".*"+string(verb), f.width, f.precision, x))
	}
	return from(client || f.client, fmt.Sprintf(how+string(verb), f.width, x))
}

// text cuts and fills.
func (f field) text(r *run, t Text) (Text, error) {
	if f.precision >= 0 {
		to := int64(f.precision)
		v, err := r.slice(t, [3]*int64{nil, &to, nil})
		if err != nil {
			return Text{}, err
		}
		t = v.(Text)
	}
	v, err := r.padded(t, f.width, from(f.client, " "), func(missing, _ int) int {
		if strings.Contains(f.flags, "-") {
			return 0
		}
		return missing
	})
	if err != nil {
		return Text{}, err
	}
	return v.(Text), nil
}

// field formats one value.
func (r *run) field(f field, verb byte, v Value) (Text, error) {
	switch verb {
	case 's', 'r', 'c':
		t, err := r.str(v)
		if verb == 'r' {
			t, err = r.repr(v, 0)
		}
		if verb == 'c' {
			t, err = character(v)
		}
		if err != nil {
			return t, err
		}
		return f.text(r, t)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		n, ok := whole(v)
		if x, isFloat := v.(float); isFloat && strings.IndexByte("diu", verb) >= 0 && math.Abs(x.v) < 1<<63 {
			n, ok = int64(x.v), true
		}
		if !ok {
			return Text{}, fmt.Errorf("%%%c format: a real number of at most 64 bits is required, not %s", verb, typeName(v))
		}
		if verb == 'i' || verb == 'u' {
			verb = 'd'
		}
		return f.number(verb, n, fromClient(v)), nil
	case 'f', 'F', 'e', 'E', 'g', 'G':
		x, ok := asNumber(v)
		if !ok {
			return Text{}, fmt.Errorf("must be real number, not %s", typeName(v))
		}
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return f.text(r, from(fromClient(v), pythonFloat(x, "inf", "nan")))
		}
		if f.precision < 0 {
			f.precision = 6
		}
		return f.number(verb, x, fromClient(v)), nil
	}
	return Text{}, fmt.Errorf("unsupported format character %q", verb)
}

// character is what %c writes.
func character(v Value) (Text, error) {
	n, ok := whole(v)
	if t, isText := v.(Text); isText && t.s != "" && runeLen(t.s) == len(t.s) {
		return t, nil
	}
	if !ok || n < 0 || n > unicode.MaxRune {
		return Text{}, errors.New("%c requires int or char")
	}
	return from(fromClient(v), string(rune(n))), nil
}

// formatMethod is "{} {0} {name}".format(…), without attributes and format specifications.
func formatMethod(r *run, t Text, a arguments) (Value, error) {
	b := r.builder()
	names := map[string]Value{}
	for _, k := range a.kw {
		names[k.name.s] = k.value
	}
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
		if named, ok := names[field]; ok {
			v = named
		}
		if v == nil {
			return nil, fmt.Errorf("format: there is no argument for {%s}, or it is not supported", short(field))
		}
		x, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if b.add(x); b.err != nil {
			return nil, b.err
		}
	}
	return b.value()
}
