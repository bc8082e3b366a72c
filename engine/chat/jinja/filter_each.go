package jinja

import (
	"errors"
	"fmt"
	"slices"
)

// mapped is map(attribute=…, default=…) or map("filter", …).
func mapped(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var attr, missing Value
	for _, k := range a.kw {
		switch k.name.s {
		case "attribute":
			attr = k.value
		case "default":
			missing = k.value
		}
	}
	one := func(x Value) (Value, error) {
		y, err := r.path(x, attr)
		if _, none := y.(undef); none && missing != nil {
			return missing, err
		}
		return y, err
	}
	if len(a.pos) > 0 {
		t, _ := a.pos[0].(Text)
		f, ok := filters[t.s]
		if !ok {
			return nil, fmt.Errorf("No filter named '%s'.", t.s)
		}
		one = func(x Value) (Value, error) { return r.filter(f, t.s, x, arguments{a.pos[1:], a.kw}) }
	} else if attr == nil {
		return nil, errors.New("map requires a filter argument")
	}
	out := &List{gen: true}
	for _, x := range items {
		y, err := one(x)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, y)
	}
	return out, nil
}

// selecting is select, reject, selectattr and rejectattr.
func selecting(rejects, byAttr bool) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		var attr Value
		if byAttr {
			if len(a.pos) == 0 {
				return nil, errors.New("Missing parameter for attribute name")
			}
			attr, a.pos = a.pos[0], a.pos[1:]
		}
		is := func(_ *run, x Value, _ arguments) (bool, error) { return truth(x), nil }
		if len(a.pos) > 0 {
			t, _ := a.pos[0].(Text)
			f, ok := tests[t.s]
			if !ok {
				return nil, fmt.Errorf("No test named '%s'.", t.s)
			}
			is, a.pos = f, a.pos[1:]
		}
		out := &List{gen: true}
		for _, x := range items {
			if err := r.step(); err != nil {
				return nil, err
			}
			y := x
			if byAttr {
				if y, err = r.path(x, attr); err != nil {
					return nil, err
				}
			}
			ok, err := is(r, y, a)
			if err != nil {
				return nil, err
			}
			if ok != rejects {
				out.items = append(out.items, x)
			}
		}
		return out, nil
	}
}

func joined(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("join", "d", "attribute")
	if err != nil {
		return nil, err
	}
	var between Text
	if p[0] != nil {
		if between, err = r.str(p[0]); err != nil {
			return nil, err
		}
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	b := r.builder()
	for i, x := range items {
		if p[1] != nil {
			if x, err = r.path(x, p[1]); err != nil {
				return nil, err
			}
		}
		t, err := r.str(x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.add(between)
		}
		if b.add(t); b.err != nil {
			return nil, b.err
		}
	}
	return b.value()
}

func sum(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("sum", "attribute", "start")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var out Value = integer{}
	if p[1] != nil {
		out = p[1]
	}
	for _, x := range items {
		if p[0] != nil {
			if _, none := p[0].(none); !none {
				if x, err = r.path(x, p[0]); err != nil {
					return nil, err
				}
			}
		}
		if out, err = r.binary("+", out, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// batch parts items into lists of n.
func batch(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("batch", "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 0)
	items, err2 := r.items(v)
	if err = errors.Join(err, err2); err != nil || n == 0 {
		return nil, errors.Join(err, errors.New("batch needs a count"))
	}
	out := &List{gen: true}
	for chunk := range slices.Chunk(items, n) {
		size := len(chunk)
		if p[1] != nil {
			size = n
		}
		if err := r.pay(itemBytes * (2 + size)); err != nil {
			return nil, err
		}
		l := append(make([]Value, 0, size), chunk...)
		for p[1] != nil && len(l) < n {
			l = append(l, p[1])
		}
		out.items = append(out.items, &List{items: l})
	}
	return out, nil
}

// sliced parts items into n lists.
func sliced(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("slice", "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 0)
	items, err2 := r.items(v)
	if err = errors.Join(err, err2); err != nil || n == 0 {
		return nil, errors.Join(err, errors.New("slice needs a count"))
	}
	if err := r.pay(itemBytes * (3*n + len(items))); err != nil {
		return nil, err
	}
	out := &List{gen: true}
	size, more := len(items)/n, len(items)%n
	for i := range n {
		k := size
		if i < more {
			k++
		}
		l := append(make([]Value, 0, k+1), items[:k]...)
		items = items[k:]
		if p[1] != nil && more > 0 && i >= more {
			l = append(l, p[1])
		}
		out.items = append(out.items, &List{items: l})
	}
	return out, nil
}
