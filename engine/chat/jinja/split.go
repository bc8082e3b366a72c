package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

func texts(in []Text) []Value {
	out := make([]Value, len(in))
	for i, t := range in {
		out[i] = t
	}
	return out
}

// splitlines is the method.
func splitlines(r *run, t Text, a arguments) (Value, error) {
	p, err := a.named("splitlines", "keepends")
	if err != nil {
		return nil, err
	}
	all, err := r.lines(t, p[0] != nil && truth(p[0]))
	return &List{items: texts(all)}, err
}

// lines parts a text where Python sees a line end, and pays for each line.
func (r *run) lines(t Text, keep bool) (out []Text, err error) {
	for at := 0; at < len(t.s); {
		n := strings.IndexFunc(t.s[at:], func(c rune) bool {
			return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
		})
		if n < 0 {
			return append(out, t.Slice(at, len(t.s))), r.pay(textBytes)
		}
		if err := r.pay(textBytes); err != nil {
			return nil, err
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
	return out, nil
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
		out, err := r.split(t, sep, limit, right)
		if right {
			slices.Reverse(out)
		}
		return &List{items: texts(out)}, err
	}
}

// split parts a text at sep, or at runs of white space, and pays for each part; from the right they
// come in reverse.
func (r *run) split(t Text, sep string, limit int, right bool) (out []Text, err error) {
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
		if err := r.pay(textBytes); err != nil {
			return nil, err
		}
		at += from
		if right {
			out, to = append(out, t.Slice(at+n, to)), at
		} else {
			out, from = append(out, t.Slice(from, at)), at+n
		}
	}
	if sep == "" && from >= to {
		return out, nil
	}
	return append(out, t.Slice(from, to)), r.pay(textBytes)
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
