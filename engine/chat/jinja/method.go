package jinja

import (
	"errors"
	"fmt"
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
		return &function{name, func(r *run, _ arguments) (Value, error) {
			if err := r.pay(itemBytes * len(d.entries)); err != nil {
				return nil, err
			}
			out := &List{items: make([]Value, len(d.entries))}
			for i, e := range d.entries {
				out.items[i] = f(e)
			}
			return out, nil
		}}, true
	}
	switch name {
	case "items":
		return &function{name, func(r *run, _ arguments) (Value, error) { return r.pairs(d.entries) }}, true
	case "keys":
		return view(entryKey)
	case "values":
		return view(func(e entry) Value { return e.value })
	case "copy":
		return &function{name, func(*run, arguments) (Value, error) { return d, nil }}, true
	case "get":
		return &function{name, func(r *run, a arguments) (Value, error) {
			p, err := a.named("get", "key", "default")
			if err != nil || p[0] == nil {
				return nil, errors.Join(err, errors.New("get expected at least 1 argument, got 0"))
			}
			if v, ok, err := r.get(d, p[0]); ok || err != nil {
				return v, err
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
