package jinja

import "fmt"

// macrosMax is how many macros may be inside each other: each costs stack.
const macrosMax = 64

func (d define) exec(r *run) (signal, error) {
	r.scope.set(d.name, r.closure(d.macro))
	return goOn, r.step()
}

func (c callBlock) exec(r *run) (signal, error) {
	r.line = c.line
	f, err := c.f.f.eval(r)
	if err != nil {
		return goOn, err
	}
	a, err := c.f.args.eval(r)
	if err != nil {
		return goOn, err
	}
	a.kw = append(a.kw, keyword{Literal("caller"), r.closure(c.body)})
	v, err := r.call(f, a)
	if err != nil {
		return goOn, err
	}
	return output{constant{v}, c.line}.exec(r)
}

// closure makes a macro callable where it is defined.
func (r *run) closure(m *macro) *function {
	home := r.scope
	return &function{m.name, func(r *run, a arguments) (Value, error) {
		if r.macros++; r.macros > macrosMax {
			return nil, ErrCostly
		}
		scope := r.scope
		r.scope = home
		defer func() { r.scope = scope; r.macros-- }()
		r.push()
		if err := m.bind(r, a); err != nil {
			return nil, err
		}
		t, err := r.capture(m.body)
		return t, err
	}}
}

// bind sets the parameters of a macro.
func (m *macro) bind(r *run, a arguments) error {
	var rest []Value
	if n := len(m.params); len(a.pos) > n {
		rest = a.pos[n:]
		if !m.varargs {
			return fmt.Errorf("macro '%s' takes not more than %d argument(s)", m.name, n)
		}
	}
	extra := NewDict()
	given := make([]Value, len(m.params))
	copy(given, a.pos)
	for _, k := range a.kw {
		at := -1
		for i, p := range m.params {
			if p == k.name.s {
				at = i
			}
		}
		switch {
		case at >= 0 && given[at] != nil:
			return fmt.Errorf("macro '%s' got multiple values for argument '%s'", m.name, k.name.s)
		case at >= 0:
			given[at] = k.value
		case k.name.s == "caller":
			r.scope.set("caller", k.value)
		case m.kwargs:
			extra.put(k.name, k.value)
		default:
			return fmt.Errorf("macro '%s' takes no keyword argument '%s'", m.name, k.name.s)
		}
	}
	for i, p := range m.params {
		v := given[i]
		if v == nil {
			v = undef{fmt.Sprintf("parameter '%s' was not provided", p)}
			if d := i - (len(m.params) - len(m.defaults)); d >= 0 {
				var err error
				if v, err = m.defaults[d].eval(r); err != nil {
					return err
				}
			}
		}
		r.scope.set(p, v)
	}
	if m.varargs {
		r.scope.set("varargs", &List{items: rest, tuple: true})
	}
	if m.kwargs {
		r.scope.set("kwargs", extra)
	}
	return nil
}
