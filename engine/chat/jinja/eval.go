package jinja

import (
	"errors"
	"fmt"
	"slices"
)

func (c constant) eval(r *run) (Value, error) { return c.v, r.step() }
func (n name) eval(r *run) (Value, error)     { return r.lookup(n.name), r.step() }

func (a attribute) eval(r *run) (Value, error) {
	of, err := a.of.eval(r)
	if err != nil {
		return nil, err
	}
	return r.attr(of, a.name)
}

func (i item) eval(r *run) (Value, error) {
	of, err := i.of.eval(r)
	if err != nil {
		return nil, err
	}
	key, err := i.key.eval(r)
	if err != nil {
		return nil, err
	}
	return r.item(of, key)
}

func (s slice) eval(r *run) (Value, error) {
	of, err := s.of.eval(r)
	if err != nil {
		return nil, err
	}
	var at [3]*int64
	for i, x := range []expr{s.from, s.to, s.step} {
		if x == nil {
			continue
		}
		v, err := x.eval(r)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(none); ok {
			continue
		}
		n, ok := whole(v)
		if !ok {
			return nil, errors.New("slice indices must be integers or None or have an __index__ method")
		}
		at[i] = &n
	}
	return r.slice(of, at)
}

func (a args) eval(r *run) (out arguments, err error) {
	for _, x := range a.pos {
		v, err := x.eval(r)
		if err != nil {
			return out, err
		}
		out.pos = append(out.pos, v)
	}
	for _, k := range a.kw {
		v, err := k.value.eval(r)
		if err != nil {
			return out, err
		}
		out.kw = append(out.kw, keyword{Literal(k.name), v})
	}
	if a.more != nil {
		v, err := a.more.eval(r)
		if err != nil {
			return out, err
		}
		items, err := r.items(v)
		if err != nil {
			return out, err
		}
		if err := r.pay(itemBytes * len(items)); err != nil {
			return out, err
		}
		out.pos = append(slices.Clip(out.pos), items...)
	}
	if a.kv != nil {
		v, err := a.kv.eval(r)
		if err != nil {
			return out, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return out, errors.New("argument after ** must be a mapping")
		}
		if err := r.pay(2 * itemBytes * len(d.entries)); err != nil {
			return out, err
		}
		named := out.kw
		for _, e := range d.entries {
			key, ok := e.key.(Text)
			if !ok {
				return out, errors.New("keywords must be strings")
			}
			if slices.ContainsFunc(named, func(k keyword) bool { return k.name.s == key.s }) {
				return out, fmt.Errorf("got multiple values for keyword argument '%s'", key.s)
			}
			out.kw = append(out.kw, keyword{key, e.value})
		}
	}
	return out, r.pay(itemBytes * (len(out.pos) + len(out.kw)))
}

func (c call) eval(r *run) (Value, error) {
	f, err := c.f.eval(r)
	if err != nil {
		return nil, err
	}
	a, err := c.args.eval(r)
	if err != nil {
		return nil, err
	}
	return r.call(f, a)
}

func (r *run) call(f Value, a arguments) (Value, error) {
	switch f := f.(type) {
	case *function:
		v, err := f.call(r, a)
		if err != nil {
			return nil, err
		}
		return r.made(v)
	case *round:
		if f.again != nil {
			return r.call(f.again, a)
		}
		return nil, errors.New("the loop must have the 'recursive' marker to be called recursively")
	case undef:
		return nil, errors.New(f.what)
	}
	return nil, fmt.Errorf("'%s' object is not callable", typeName(f))
}

func (f filtered) eval(r *run) (Value, error) {
	v, err := f.of.eval(r)
	if err != nil {
		return nil, err
	}
	a, err := f.args.eval(r)
	if err != nil {
		return nil, err
	}
	return r.filter(f.f, f.name, v, a)
}

// filter applies a filter and pays for what it makes.
func (r *run) filter(f filter, name string, v Value, a arguments) (Value, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if t, ok := v.(Text); ok { // all look at it
		if err := r.pay(len(t.s)); err != nil {
			return nil, err
		}
	}
	out, err := f(r, v, a)
	if err != nil {
		return nil, err
	}
	return r.made(out)
}

func (t tested) eval(r *run) (Value, error) {
	v, err := t.of.eval(r)
	if err != nil {
		return nil, err
	}
	a, err := t.args.eval(r)
	if err != nil {
		return nil, err
	}
	ok, err := t.f(r, v, a)
	return boolean{v: ok}, err
}

func (n not) eval(r *run) (Value, error) {
	v, err := n.x.eval(r)
	return boolean{v: err == nil && !truth(v)}, err
}

func (a and) eval(r *run) (Value, error) {
	v, err := a.a.eval(r)
	if err != nil || !truth(v) {
		return v, err
	}
	return a.b.eval(r)
}

func (o or) eval(r *run) (Value, error) {
	v, err := o.a.eval(r)
	if err != nil || truth(v) {
		return v, err
	}
	return o.b.eval(r)
}

func (c cond) eval(r *run) (Value, error) {
	v, err := c.test.eval(r)
	switch {
	case err != nil:
		return nil, err
	case truth(v):
		return c.yes.eval(r)
	case c.no == nil:
		return undef{"the inline if-expression evaluated to false and no else section was defined."}, nil
	}
	return c.no.eval(r)
}

func (j join) eval(r *run) (Value, error) {
	var b builder
	for _, x := range j.xs {
		v, err := x.eval(r)
		if err != nil {
			return nil, err
		}
		t, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.pay(t.size()); err != nil {
			return nil, err
		}
		b.add(t)
	}
	return b.text(), nil
}

func (l list) eval(r *run) (Value, error) {
	out := &List{tuple: l.tuple, items: make([]Value, 0, len(l.items))}
	for _, x := range l.items {
		v, err := x.eval(r)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	return r.made(out)
}

func (d dict) eval(r *run) (Value, error) {
	out := NewDict()
	for i, x := range d.keys {
		k, err := x.eval(r)
		if err != nil {
			return nil, err
		}
		v, err := d.values[i].eval(r)
		if err != nil {
			return nil, err
		}
		if err := r.put(out, k, v); err != nil {
			return nil, err
		}
	}
	return r.made(out)
}

func (c compare) eval(r *run) (Value, error) {
	a, err := c.a.eval(r)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		b, err := c.xs[i].eval(r)
		if err != nil {
			return nil, err
		}
		ok, err := r.compare(op, a, b)
		if err != nil || !ok {
			return boolean{}, err
		}
		a = b
	}
	return boolean{v: true}, nil
}

func (b binary) eval(r *run) (Value, error) {
	x, err := b.a.eval(r)
	if err != nil {
		return nil, err
	}
	y, err := b.b.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.step(); err != nil {
		return nil, err
	}
	return r.binary(b.op, x, y)
}

func (s sign) eval(r *run) (Value, error) {
	v, err := s.x.eval(r)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case integer:
		if v.big == "" {
			return r.binary("-", integer{}, v)
		}
	case boolean:
		return r.binary("-", integer{}, v)
	case float:
		return float{-v.v, v.client}, nil
	case undef:
		return nil, errors.New(v.what)
	}
	return nil, fmt.Errorf("bad operand type for unary -: '%s'", typeName(v))
}

func (p plus) eval(r *run) (Value, error) {
	v, err := p.x.eval(r)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case integer, float:
		return v, nil
	case boolean:
		n, _ := whole(v)
		return integer{v: n, client: v.client}, nil
	case undef:
		return nil, errors.New(v.what)
	}
	return nil, fmt.Errorf("bad operand type for unary +: '%s'", typeName(v))
}
