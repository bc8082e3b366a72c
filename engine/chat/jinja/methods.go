package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// method returns a method of a value. Those that change a list or a dict are not there, as in
// Hugging Face's sandbox.
func method(v Value, name string) (Value, bool) {
	switch v := v.(type) {
	case Text:
		if m, ok := textMethods[name]; ok {
			return &function{name, func(r *run, a arguments) (Value, error) {
				if err := r.pay(len(v.s) + itemBytes); err != nil {
					return nil, err
				}
				return m(r, v, a)
			}}, true
		}
	case *Dict:
		return dictMethod(v, name)
	case *List:
		switch name {
		case "index", "count":
			return &function{name, func(r *run, a arguments) (Value, error) { return v.search(r, name, a) }}, true
		case "copy":
			return &function{name, func(*run, arguments) (Value, error) { return v, nil }}, !v.tuple
		case "append", "extend", "insert", "pop", "remove", "reverse", "sort", "clear":
			return unsafe(v, name), !v.tuple
		}
	}
	return nil, false
}

func unsafe(v Value, name string) Value {
	return undef{fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe.", name, typeName(v))}
}

func dictMethod(d *Dict, name string) (Value, bool) {
	view := func(f func(e entry) Value) (Value, bool) {
		return &function{name, func(*run, arguments) (Value, error) {
			out := &List{}
			for _, e := range d.entries {
				out.items = append(out.items, f(e))
			}
			return out, nil
		}}, true
	}
	switch name {
	case "items":
		return view(func(e entry) Value { return &List{items: []Value{e.key, e.value}, tuple: true} })
	case "keys":
		return view(func(e entry) Value { return e.key })
	case "values":
		return view(func(e entry) Value { return e.value })
	case "copy":
		return &function{name, func(*run, arguments) (Value, error) { return d, nil }}, true
	case "get":
		return &function{name, func(_ *run, a arguments) (Value, error) {
			p, err := a.named("get", "key", "default")
			if err != nil || p[0] == nil {
				return nil, errors.Join(err, errors.New("get expected at least 1 argument, got 0"))
			}
			if _, ok := hash(p[0]); !ok {
				return nil, fmt.Errorf("unhashable type: '%s'", typeName(p[0]))
			}
			if v, ok := d.get(p[0]); ok {
				return v, nil
			}
			if p[1] != nil {
				return p[1], nil
			}
			return none{}, nil
		}}, true
	case "update", "pop", "popitem", "setdefault", "clear":
		return unsafe(d, name), true
	}
	return nil, false
}

func (l *List) search(r *run, name string, a arguments) (Value, error) {
	if len(a.pos) != 1 {
		return nil, fmt.Errorf("%s takes one argument", name)
	}
	n := int64(0)
	for i, x := range l.items {
		ok, err := r.equal(x, a.pos[0])
		if err != nil {
			return nil, err
		}
		if ok && name == "index" {
			return integer{v: int64(i)}, nil
		}
		if ok {
			n++
		}
	}
	if name == "index" {
		return nil, errors.New("the value is not in list")
	}
	return integer{v: n}, nil
}

type textMethod func(r *run, t Text, a arguments) (Value, error)

var textMethods map[string]textMethod

func init() {
	plain := func(f func(string) string) textMethod {
		return func(_ *run, t Text, _ arguments) (Value, error) { return t.mapped(f), nil }
	}
	all := func(f func(rune) bool) textMethod {
		return func(_ *run, t Text, _ arguments) (Value, error) {
			return boolean{v: t.s != "" && strings.IndexFunc(t.s, func(c rune) bool { return !f(c) }) < 0}, nil
		}
	}
	strip := func(left, right bool) textMethod {
		return func(_ *run, t Text, a arguments) (Value, error) {
			p, err := a.named("strip", "chars")
			if err != nil {
				return nil, err
			}
			return stripped(t, p[0], left, right)
		}
	}
	pad := func(left func(missing, width int) int) textMethod {
		return func(r *run, t Text, a arguments) (Value, error) {
			p, err := a.named("just", "width", "fillchar")
			if err != nil {
				return nil, err
			}
			n, err := natural(p[0], 0)
			fill := Text{s: " "}
			if f, ok := p[1].(Text); ok {
				fill = f
			}
			if err != nil || runeLen(fill.s) != len(fill.s) || fill.s == "" {
				return nil, errors.Join(err, errors.New("the fill character must be exactly one character long"))
			}
			return r.padded(t, n, fill, left)
		}
	}
	textMethods = map[string]textMethod{
		"lower": plain(strings.ToLower), "upper": plain(strings.ToUpper), "casefold": plain(strings.ToLower),
		"title": plain(pythonTitle), "swapcase": plain(swapcase),
		"capitalize": func(_ *run, t Text, _ arguments) (Value, error) { return t.as(capitalize(t.s)), nil },
		"isdigit":    all(unicode.IsDigit), "isdecimal": all(unicode.IsDigit), "isnumeric": all(unicode.IsNumber), "isalpha": all(unicode.IsLetter),
		"isalnum": all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }), "isspace": all(IsSpace),
		"isascii": func(_ *run, t Text, _ arguments) (Value, error) { return boolean{v: ascii(t.s)}, nil },
		"islower": func(r *run, t Text, _ arguments) (Value, error) {
			ok, err := cased(r, t, true)
			return boolean{v: ok}, err
		},
		"isupper": func(r *run, t Text, _ arguments) (Value, error) {
			ok, err := cased(r, t, false)
			return boolean{v: ok}, err
		},
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": without(true), "removesuffix": without(false),
		"split": splitMethod(false), "rsplit": splitMethod(true),
		"splitlines": func(_ *run, t Text, a arguments) (Value, error) {
			p, err := a.named("splitlines", "keepends")
			return &List{items: texts(lines(t, p != nil && p[0] != nil && truth(p[0])))}, err
		},
		"partition": partition(false), "rpartition": partition(true),
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count": count, "join": joinMethod, "format": formatMethod,
		"replace": func(r *run, t Text, a arguments) (Value, error) { return replace(r, t, a) },
		"zfill": func(r *run, t Text, a arguments) (Value, error) {
			a.pos = append(slices.Clone(a.pos), Text{s: "0"})
			return pad(func(missing, _ int) int { return missing })(r, t, a)
		},
		"center": pad(func(n, width int) int { return n/2 + n&width&1 }),
		"ljust":  pad(func(int, int) int { return 0 }), "rjust": pad(func(missing, _ int) int { return missing }),
	}
}

func swapcase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

// pythonTitle begins a word behind whatever is no letter.
func pythonTitle(s string) string {
	inside := false
	return strings.Map(func(c rune) rune {
		was := inside
		if inside = unicode.IsLetter(c); was {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

// stripped is strip, lstrip and rstrip of white space or of chars.
func stripped(t Text, chars Value, left, right bool) (Value, error) {
	gone := IsSpace
	switch c := chars.(type) {
	case nil, none:
	case Text:
		gone = func(r rune) bool { return strings.ContainsRune(c.s, r) }
	default:
		return nil, errors.New("strip arg must be None or str")
	}
	from, to := 0, len(t.s)
	if left {
		from = len(t.s) - len(strings.TrimLeftFunc(t.s, gone))
	}
	if right {
		to = len(strings.TrimRightFunc(t.s, gone))
	}
	return t.Slice(from, to), nil
}

// affix is startswith and endswith, of a text or a tuple of texts.
func affix(has func(s, part string) bool) textMethod {
	return func(_ *run, t Text, a arguments) (Value, error) {
		if len(a.pos) != 1 {
			return nil, errors.New("startswith and endswith take one argument")
		}
		parts := []Value{a.pos[0]}
		if l, ok := a.pos[0].(*List); ok && l.tuple {
			parts = l.items
		}
		for _, p := range parts {
			s, ok := p.(Text)
			if !ok {
				return nil, fmt.Errorf("startswith and endswith take str or a tuple of str, not %s", typeName(p))
			}
			if has(t.s, s.s) {
				return boolean{v: true}, nil
			}
		}
		return boolean{}, nil
	}
}

// one returns the only argument, a text.
func one(f string, a arguments) (Text, error) {
	if len(a.pos) == 1 {
		if t, ok := a.pos[0].(Text); ok {
			return t, nil
		}
	}
	return Text{}, fmt.Errorf("%s takes one str", f)
}

func without(prefix bool) textMethod {
	return func(_ *run, t Text, a arguments) (Value, error) {
		s, err := one("removeprefix", a)
		switch {
		case err != nil:
			return nil, err
		case prefix && strings.HasPrefix(t.s, s.s):
			return t.Slice(len(s.s), len(t.s)), nil
		case !prefix && strings.HasSuffix(t.s, s.s):
			return t.Slice(0, len(t.s)-len(s.s)), nil
		}
		return t, nil
	}
}

func texts(in []Text) []Value {
	out := make([]Value, len(in))
	for i, t := range in {
		out[i] = t
	}
	return out
}

// lines is splitlines.
func lines(t Text, keep bool) (out []Text) {
	for at := 0; at < len(t.s); {
		n := strings.IndexFunc(t.s[at:], func(c rune) bool {
			return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
		})
		if n < 0 {
			return append(out, t.Slice(at, len(t.s)))
		}
		end := at + n + runeLen(t.s[at+n:])
		if strings.HasPrefix(t.s[at+n:], "\r\n") {
			end = at + n + 2
		}
		to := at + n
		if keep {
			to = end
		}
		out = append(out, t.Slice(at, to))
		at = end
	}
	return out
}

// splitMethod is split and rsplit.
func splitMethod(right bool) textMethod {
	return func(r *run, t Text, a arguments) (Value, error) {
		p, err := a.named("split", "sep", "maxsplit")
		if err != nil {
			return nil, err
		}
		limit := -1
		if p[1] != nil {
			n, ok := whole(p[1])
			if !ok {
				return nil, fmt.Errorf("'%s' object cannot be interpreted as an integer", typeName(p[1]))
			}
			limit = int(max(-1, min(n, int64(len(t.s)))))
		}
		sep := ""
		switch s := p[0].(type) {
		case nil, none:
		case Text:
			if sep = s.s; sep == "" {
				return nil, errors.New("empty separator")
			}
		default:
			return nil, fmt.Errorf("must be str or None, not %s", typeName(s))
		}
		out := split(t, sep, limit, right)
		if right {
			slices.Reverse(out)
		}
		return &List{items: texts(out)}, r.pay(itemBytes * len(out))
	}
}

// split parts a text at sep, or at runs of white space; from the right the parts come in reverse.
func split(t Text, sep string, limit int, right bool) (out []Text) {
	cut := func(s string) (at, n int) {
		if sep != "" {
			if right {
				return strings.LastIndex(s, sep), len(sep)
			}
			return strings.Index(s, sep), len(sep)
		}
		if right {
			if at = strings.LastIndexFunc(s, IsSpace); at < 0 {
				return -1, 0
			}
			end := at + runeLen(s[at:])
			at = len(trimRight(s[:end]))
			return at, end - at
		}
		if at = strings.IndexFunc(s, IsSpace); at < 0 {
			return -1, 0
		}
		return at, len(s[at:]) - len(trimLeft(s[at:]))
	}
	from, to := 0, len(t.s)
	if sep == "" && right {
		to = len(trimRight(t.s))
	} else if sep == "" {
		from = len(t.s) - len(trimLeft(t.s))
	}
	for ; limit != 0; limit-- {
		at, n := cut(t.s[from:to])
		if at < 0 {
			break
		}
		at += from
		if right {
			out, to = append(out, t.Slice(at+n, to)), at
		} else {
			out, from = append(out, t.Slice(from, at)), at+n
		}
	}
	if sep == "" && from >= to {
		return out
	}
	return append(out, t.Slice(from, to))
}

func partition(right bool) textMethod {
	return func(_ *run, t Text, a arguments) (Value, error) {
		sep, err := one("partition", a)
		if err != nil || sep.s == "" {
			return nil, errors.Join(err, errors.New("empty separator"))
		}
		at := strings.Index(t.s, sep.s)
		if right {
			at = strings.LastIndex(t.s, sep.s)
		}
		out := []Value{t, Text{}, Text{}}
		switch {
		case at >= 0:
			end := at + len(sep.s)
			out = []Value{t.Slice(0, at), t.Slice(at, end), t.Slice(end, len(t.s))}
		case right:
			out = []Value{Text{}, Text{}, t}
		}
		return &List{items: out, tuple: true}, nil
	}
}

func find(index func(s, part string) int, must bool) textMethod {
	return func(_ *run, t Text, a arguments) (Value, error) {
		s, err := one("find", a)
		if err != nil {
			return nil, err
		}
		at := index(t.s, s.s)
		if at < 0 {
			if must {
				return nil, errors.New("substring not found")
			}
			return integer{v: -1}, nil
		}
		return length(nil, t.Slice(0, at), arguments{})
	}
}

func count(_ *run, t Text, a arguments) (Value, error) {
	s, err := one("count", a)
	return integer{v: int64(strings.Count(t.s, s.s)), client: t.fromClient()}, err
}

func joinMethod(r *run, t Text, a arguments) (Value, error) {
	if len(a.pos) != 1 {
		return nil, errors.New("join takes one argument")
	}
	items, err := r.items(a.pos[0])
	if err != nil {
		return nil, err
	}
	for i, x := range items {
		if _, ok := x.(Text); !ok {
			return nil, fmt.Errorf("sequence item %d: expected str instance, %s found", i, typeName(x))
		}
	}
	return joined(r, &List{items: items}, arguments{pos: []Value{t}})
}
