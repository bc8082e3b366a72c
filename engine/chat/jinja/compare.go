package jinja

import (
	"errors"
	"fmt"
	"strings"
)

var errDeep = fmt.Errorf("a value is nested more than %d deep", depthMax)

func (r *run) equal(a, b Value) (bool, error) { return r.same(a, b, 0) }

func (r *run) same(a, b Value, depth int) (bool, error) {
	if depth > depthMax {
		return false, errDeep
	}
	if err := r.step(); err != nil {
		return false, err
	}
	if x, ok := a.(integer); ok && x.big != "" {
		y, ok := b.(integer)
		return ok && x.big == y.big, nil
	}
	if x, ok := asNumber(a); ok {
		if m, ok := whole(a); ok {
			if n, ok := whole(b); ok {
				return m == n, nil
			}
		}
		y, ok := asNumber(b)
		return ok && x == y, nil
	}
	switch a := a.(type) {
	case Text:
		b, ok := b.(Text)
		if ok && len(a.s) == len(b.s) {
			return a.s == b.s, r.pay(len(a.s))
		}
		return false, nil
	case none, undef:
		return typeName(a) == typeName(b), nil
	case *List:
		b, ok := b.(*List)
		if !ok || a.tuple != b.tuple || len(a.items) != len(b.items) || a.gen {
			return false, nil
		}
		for i := range a.items {
			if ok, err := r.same(a.items[i], b.items[i], depth+1); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || len(a.entries) != len(b.entries) {
			return false, nil
		}
		for _, e := range a.entries {
			v, ok := b.get(e.key)
			if !ok {
				return false, nil
			}
			if ok, err := r.same(e.value, v, depth+1); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return a == b, nil // the same function or namespace
}

// less is Python's <.
func (r *run) less(a, b Value, depth int) (bool, error) {
	if depth > depthMax {
		return false, errDeep
	}
	if err := r.step(); err != nil {
		return false, err
	}
	if x, ok := asNumber(a); ok {
		if y, ok := asNumber(b); ok {
			if m, ok := whole(a); ok {
				if n, ok := whole(b); ok {
					return m < n, nil
				}
			}
			return x < y, nil
		}
	}
	switch x := a.(type) {
	case Text:
		if y, ok := b.(Text); ok {
			return x.s < y.s, r.pay(min(len(x.s), len(y.s)))
		}
	case *List:
		y, ok := b.(*List)
		if !ok || x.tuple != y.tuple {
			break
		}
		for i := range min(len(x.items), len(y.items)) {
			same, err := r.same(x.items[i], y.items[i], depth+1)
			if err != nil {
				return false, err
			}
			if !same {
				return r.less(x.items[i], y.items[i], depth+1)
			}
		}
		return len(x.items) < len(y.items), nil
	case undef:
		return false, errors.New(x.what)
	}
	if u, ok := b.(undef); ok {
		return false, errors.New(u.what)
	}
	return false, fmt.Errorf("'<' not supported between instances of '%s' and '%s'", typeName(a), typeName(b))
}

func (r *run) compare(op string, a, b Value) (ok bool, err error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		ok, err = r.equal(a, b)
		return !ok, err
	case "<":
		return r.less(a, b, 0)
	case ">":
		return r.less(b, a, 0)
	case "<=", ">=":
		if op == ">=" {
			a, b = b, a
		}
		if ok, err = r.less(a, b, 0); ok || err != nil {
			return ok, err
		}
		return r.equal(a, b)
	case "in":
		return r.contains(b, a)
	}
	ok, err = r.contains(b, a)
	return !ok, err
}

// contains is Python's "x in v".
func (r *run) contains(v, x Value) (bool, error) {
	switch v := v.(type) {
	case Text:
		s, ok := x.(Text)
		if !ok {
			return false, fmt.Errorf("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		if err := r.pay(len(v.s) + len(s.s)); err != nil {
			return false, err
		}
		return strings.Contains(v.s, s.s), nil
	case *Dict:
		_, ok, err := r.get(v, x)
		return ok, err
	}
	items, err := r.items(v)
	if err != nil {
		return false, fmt.Errorf("argument of type '%s' is not iterable", typeName(v))
	}
	for _, item := range items {
		if ok, err := r.equal(item, x); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
