package jinja

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

type textMethod func(r *run, t Text, a arguments) (Value, error)

var textMethods map[string]textMethod

func init() {
	textMethods = map[string]textMethod{
		"lower": recase(lowered).method(), "upper": recase(raised).method(), "casefold": recase(unfolded).method(),
		"title": recase(pythonTitle).method(), "swapcase": recase(swapcase).method(), "capitalize": recase(capitalize).method(),
		"isdigit": each(unicode.IsDigit), "isdecimal": each(unicode.IsDigit), "isnumeric": each(unicode.IsNumber),
		"isalpha": each(unicode.IsLetter), "isspace": each(IsSpace),
		"isalnum": each(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isascii": asks(func(_ *run, t Text) (bool, error) { return ascii(t.s), nil }),
		"islower": asks(func(r *run, t Text) (bool, error) { return cased(r, t, true) }),
		"isupper": asks(func(r *run, t Text) (bool, error) { return cased(r, t, false) }),
		"istitle": asks(func(_ *run, t Text) (bool, error) { return isTitle(t), nil }),
		"strip":   strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": without(true), "removesuffix": without(false),
		"split": splitMethod(false), "rsplit": splitMethod(true), "splitlines": splitlines,
		"partition": partition(false), "rpartition": partition(true),
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count": count, "join": joinMethod, "format": formatMethod, "zfill": zfill, "center": pad(inTheMiddle),
		"ljust": pad(func(int, int) int { return 0 }), "rjust": pad(func(missing, _ int) int { return missing }),
		"replace": func(r *run, t Text, a arguments) (Value, error) { return replace(r, t, a) },
	}
}

// asks is a method that answers yes or no.
func asks(f func(r *run, t Text) (bool, error)) textMethod {
	return func(r *run, t Text, _ arguments) (Value, error) {
		ok, err := f(r, t)
		return boolean{v: ok}, err
	}
}

// each asks whether f is true of each character, and there is one.
func each(f func(rune) bool) textMethod {
	return asks(func(_ *run, t Text) (bool, error) {
		return t.s != "" && strings.IndexFunc(t.s, func(c rune) bool { return !f(c) }) < 0, nil
	})
}

func strip(left, right bool) textMethod {
	return func(r *run, t Text, a arguments) (Value, error) {
		p, err := a.named("strip", "chars")
		if err != nil {
			return nil, err
		}
		return r.stripped(t, p[0], left, right)
	}
}

// pad is center, ljust and rjust.
func pad(left func(missing, width int) int) textMethod {
	return func(r *run, t Text, a arguments) (Value, error) {
		p, err := a.named("just", "width", "fillchar")
		if err != nil {
			return nil, err
		}
		n, err := width(p[0], 0)
		fill := Literal(" ")
		if f, ok := p[1].(Text); ok {
			fill = f
		}
		if err != nil || runeLen(fill.s) != len(fill.s) || fill.s == "" {
			return nil, errors.Join(err, errors.New("the fill character must be exactly one character long"))
		}
		return r.padded(t, n, fill, left)
	}
}

// zfill fills with zeros, behind a sign.
func zfill(r *run, t Text, a arguments) (Value, error) {
	p, err := a.named("zfill", "width")
	if err != nil {
		return nil, err
	}
	n, err := width(p[0], 0)
	if err != nil {
		return nil, err
	}
	signs := 0
	if t.s != "" && strings.IndexByte("+-", t.s[0]) >= 0 {
		signs = 1
	}
	v, err := r.padded(t.Slice(signs, len(t.s)), max(0, n-signs), Literal("0"), func(missing, _ int) int { return missing })
	if err != nil {
		return nil, err
	}
	return r.concat(t.Slice(0, signs), v.(Text))
}

// stripped is strip, lstrip and rstrip of white space or of chars.
func (r *run) stripped(t Text, chars Value, left, right bool) (Value, error) {
	gone := IsSpace
	switch c := chars.(type) {
	case nil, none:
	case Text:
		if err := r.pay(itemBytes * len(c.s)); err != nil {
			return nil, err
		}
		set := map[rune]bool{}
		for _, c := range c.s {
			set[c] = true
		}
		gone = func(c rune) bool { return set[c] }
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
	return func(r *run, t Text, a arguments) (Value, error) {
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
			if err := errors.Join(r.step(), r.pay(min(len(s.s), len(t.s)))); err != nil {
				return nil, err
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
