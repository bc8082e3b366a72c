package jinja

import (
	"errors"
	"fmt"
	"time"
)

// Budget bounds a rendering (J2).
type Budget struct {
	Steps int64 // expressions, statements and items of loops
	Bytes int64 // of strings and lists made, and of strings looked through
}

// macrosMax is how many macros may be inside each other: each costs stack.
const macrosMax = 64

// depthMax is how deep values may be nested where something recurses over them.
const depthMax = 256

// ErrCostly is returned when a rendering has used up its budget.
var ErrCostly = errors.New("the rendering costs more than its budget")

// Raised is an error that the template itself raised (raise_exception).
type Raised struct{ Message string }

func (e *Raised) Error() string { return e.Message }

// run is one rendering.
type run struct {
	left   Budget
	now    func() time.Time
	vars   *Dict
	scope  *scope
	out    *builder
	line   int
	macros int
	loops  int
}

// scope holds the names that a block sets.
type scope struct {
	outer  *scope
	names  []string
	values []Value
}

func (s *scope) set(name string, v Value) {
	for i, n := range s.names {
		if n == name {
			s.values[i] = v
			return
		}
	}
	s.names, s.values = append(s.names, name), append(s.values, v)
}

// Render runs the template. The error is ErrCostly, a *Raised or an *Error.
func (t *Template) Render(vars *Dict, b Budget, now func() time.Time) (Text, error) {
	var out builder
	r := &run{left: b, now: now, vars: vars, scope: &scope{}, out: &out}
	if _, err := r.body(t.body); err != nil {
		var e *Error
		var raised *Raised
		if errors.As(err, &e) || errors.As(err, &raised) || errors.Is(err, ErrCostly) {
			return Text{}, err
		}
		return Text{}, &Error{Line: r.line, Message: err.Error()}
	}
	return out.text(), nil
}

// step pays for one step.
func (r *run) step() error {
	if r.left.Steps--; r.left.Steps < 0 {
		return ErrCostly
	}
	return nil
}

// pay pays for n bytes.
func (r *run) pay(n int) error {
	if r.left.Bytes -= int64(n); r.left.Bytes < 0 {
		return ErrCostly
	}
	return nil
}

// itemBytes is what an item of a list costs.
const itemBytes = 32

// made pays for a value that came about.
func (r *run) made(v Value) (Value, error) {
	switch v := v.(type) {
	case Text:
		return v, r.pay(v.size() + itemBytes)
	case *List:
		return v, r.pay(itemBytes * (1 + len(v.items)))
	case *Dict:
		return v, r.pay(2 * itemBytes * (1 + len(v.entries)))
	}
	return v, nil
}

func (r *run) push() { r.scope = &scope{outer: r.scope} }
func (r *run) pop()  { r.scope = r.scope.outer }

func (r *run) lookup(name string) Value {
	for s := r.scope; s != nil; s = s.outer {
		for i, n := range s.names {
			if n == name {
				return s.values[i]
			}
		}
	}
	if v, ok := r.vars.name(name); ok {
		return v
	}
	if f, ok := globals[name]; ok {
		return f
	}
	return undef{fmt.Sprintf("'%s' is undefined", name)}
}

func (r *run) body(body []stmt) (signal, error) {
	for _, s := range body {
		if sig, err := s.exec(r); err != nil || sig != goOn {
			return sig, err
		}
	}
	return goOn, nil
}

// inside runs a body in a scope of its own.
func (r *run) inside(body []stmt) (signal, error) {
	r.push()
	defer r.pop()
	return r.body(body)
}

// capture returns what a body prints.
func (r *run) capture(body []stmt) (Text, error) {
	outer := r.out
	var b builder
	r.out = &b
	_, err := r.inside(body)
	r.out = outer
	return b.text(), err
}

func (d data) exec(r *run) (signal, error) {
	if err := r.pay(len(d.text.s)); err != nil {
		return goOn, err
	}
	r.out.add(d.text)
	return goOn, r.step()
}

func (o output) exec(r *run) (signal, error) {
	r.line = o.line
	v, err := o.x.eval(r)
	if err != nil {
		return goOn, err
	}
	t, err := r.str(v)
	if err == nil {
		err = r.pay(t.size())
	}
	if err != nil {
		return goOn, err
	}
	r.out.add(t)
	return goOn, nil
}

func (s ifs) exec(r *run) (signal, error) {
	for _, b := range s.branches {
		if b.test != nil {
			r.line = b.line
			v, err := b.test.eval(r)
			if err != nil {
				return goOn, err
			}
			if !truth(v) {
				continue
			}
		}
		return r.body(b.body)
	}
	return goOn, nil
}

func (j jump) exec(r *run) (signal, error) { return j.s, r.step() }

func (b block) exec(r *run) (signal, error) { return r.inside(b.body) }

func (w with) exec(r *run) (signal, error) {
	r.line = w.line
	var values []Value
	for _, x := range w.values {
		v, err := x.eval(r)
		if err != nil {
			return goOn, err
		}
		values = append(values, v)
	}
	r.push()
	defer r.pop()
	for i, n := range w.names {
		r.scope.set(n, values[i])
	}
	return r.body(w.body)
}

func (r *run) assign(t target, v Value) error {
	if t.attr == "" {
		r.scope.set(t.name, v)
		return nil
	}
	ns, ok := r.lookup(t.name).(*namespace)
	if !ok {
		return fmt.Errorf("cannot assign attribute on non-namespace object")
	}
	if t.attr[0] == '_' {
		return fmt.Errorf("Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'. Please rename the attribute.", t.attr)
	}
	ns.d.Set(t.attr, v)
	return r.pay(itemBytes)
}

func (s set) exec(r *run) (signal, error) {
	r.line = s.line
	v, err := s.value.eval(r)
	if err != nil {
		return goOn, err
	}
	if !s.tuple {
		return goOn, r.assign(s.targets[0], v)
	}
	items, err := r.unpack(v, len(s.targets))
	if err != nil {
		return goOn, err
	}
	for i, t := range s.targets {
		if err := r.assign(t, items[i]); err != nil {
			return goOn, err
		}
	}
	return goOn, nil
}

// unpack returns the n items of v.
func (r *run) unpack(v Value, n int) ([]Value, error) {
	items, err := r.items(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot unpack non-iterable %s object", typeName(v))
	case len(items) > n:
		return nil, fmt.Errorf("too many values to unpack (expected %d)", n)
	case len(items) < n:
		return nil, fmt.Errorf("not enough values to unpack (expected %d, got %d)", n, len(items))
	}
	return items, nil
}

func (s setBlock) exec(r *run) (signal, error) {
	t, err := r.capture(s.body)
	if err != nil {
		return goOn, err
	}
	r.line = s.line
	v, err := r.pipe(t, s.filters)
	if err != nil {
		return goOn, err
	}
	return goOn, r.assign(s.target, v)
}

// pipe applies filters.
func (r *run) pipe(v Value, fs []filtered) (Value, error) {
	for _, f := range fs {
		f.of = constant{v}
		var err error
		if v, err = f.eval(r); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (f filterBlock) exec(r *run) (signal, error) {
	t, err := r.capture(f.body)
	if err != nil {
		return goOn, err
	}
	r.line = f.line
	v, err := r.pipe(t, f.filters)
	if err != nil {
		return goOn, err
	}
	return output{constant{v}, f.line}.exec(r)
}

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
	a.kw = append(a.kw, keyword{"caller", r.closure(c.body)})
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
			if p == k.name {
				at = i
			}
		}
		switch {
		case at >= 0 && given[at] != nil:
			return fmt.Errorf("macro '%s' got multiple values for argument '%s'", m.name, k.name)
		case at >= 0:
			given[at] = k.value
		case k.name == "caller":
			r.scope.set("caller", k.value)
		case m.kwargs:
			extra.Set(k.name, k.value)
		default:
			return fmt.Errorf("macro '%s' takes no keyword argument '%s'", m.name, k.name)
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
