package jinja

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// item is of[key]: what is in it first, then its attribute.
func (r *run) item(of, key Value) (Value, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if t, ok := key.(Text); ok { // it is looked through
		if err := r.pay(len(t.s)); err != nil {
			return nil, err
		}
	}
	switch v := of.(type) {
	case undef:
		return nil, errors.New(v.what)
	case *Dict:
		if x, ok := v.get(key); ok {
			return x, nil
		}
	case *namespace:
		if x, ok := v.d.get(key); ok {
			return x, nil
		}
	case *List:
		if n, ok := whole(key); ok && !v.gen {
			if n < 0 {
				n += int64(len(v.items))
			}
			if n >= 0 && n < int64(len(v.items)) {
				return v.items[n], nil
			}
		}
	case Text:
		if n, ok := whole(key); ok {
			var end *int64
			if n != -1 && n != math.MaxInt64 {
				next := n + 1
				end = &next
			}
			t, err := r.slice(v, [3]*int64{&n, end, nil})
			if err != nil || truth(t) {
				return t, err
			}
		}
	}
	if t, ok := key.(Text); ok {
		if x, ok := method(of, t.s); ok {
			return x, nil
		}
	}
	if t, ok := key.(Text); ok {
		return undef{fmt.Sprintf("'%s' has no attribute '%s'", objectName(of), short(t.s))}, nil
	}
	k, err := r.repr(key, 0)
	if err != nil {
		return nil, err
	}
	return undef{fmt.Sprintf("%s has no element %s", objectName(of), short(k.s))}, nil
}

// attr is of.name: a method first, then what is in it.
func (r *run) attr(of Value, name string) (Value, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if u, ok := of.(undef); ok {
		return nil, errors.New(u.what)
	}
	if x, ok := method(of, name); ok {
		return x, nil
	}
	switch v := of.(type) {
	case *Dict:
		if x, ok := v.name(name); ok {
			return x, nil
		}
	case *namespace:
		if x, ok := v.d.name(name); ok {
			return x, nil
		}
	case *round:
		if x, ok := v.attr(name); ok {
			return x, nil
		}
	}
	return undef{fmt.Sprintf("'%s' has no attribute '%s'", objectName(of), name)}, nil
}

// shortMax is how many bytes an error has: it may hold what a client brought.
const shortMax = 1000

// short is a text as an error shows it.
func short(s string) string {
	if len(s) <= shortMax {
		return s
	}
	return strings.ToValidUTF8(s[:shortMax], "") + "…"
}

// objectName is how Jinja2 names the type of a value in errors.
func objectName(v Value) string {
	switch v.(type) {
	case none:
		return "None"
	case *Dict, *List, Text, integer, float, boolean:
		return typeName(v) + " object"
	}
	return typeName(v)
}

// path returns the attribute that a filter looks at: "a.b.0".
func (r *run) path(v, attr Value) (Value, error) {
	t, ok := attr.(Text)
	if !ok {
		return r.item(v, attr)
	}
	for part := range strings.SplitSeq(t.s, ".") {
		var key Value = Text{s: part}
		if n, rest := 0, strings.TrimLeft(part, "0123456789"); part != "" && rest == "" && len(part) < 9 {
			fmt.Sscan(part, &n)
			key = integer{v: int64(n)}
		}
		var err error
		if v, err = r.item(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}
