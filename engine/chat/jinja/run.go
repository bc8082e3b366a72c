package jinja

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// Budget bounds a rendering (J2).
type Budget struct {
	Steps int64 // expressions, statements and items of loops
	Bytes int64 // of strings and lists made, and of strings looked through
}

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

// Broken says that this package failed in a way that no template and no values may make it fail:
// the fault is ours, not the client's or the model's.
type Broken struct {
	Value any    // of the panic
	Stack []byte // where it came about
}

func (b *Broken) Error() string {
	return fmt.Sprintf("the engine of chat templates failed; this is a fault of Baton, not of the request: %v\n%s", b.Value, b.Stack)
}

// unbroken is set by tests, which shall see where a panic comes from.
var unbroken bool

// Render runs the template. The error is ErrCostly, a *Raised or an *Error, or a *Broken (J4).
func (t *Template) Render(vars *Dict, b Budget, now func() time.Time) (_ Text, err error) {
	if !unbroken {
		defer func() {
			if v := recover(); v != nil {
				err = &Broken{Value: v, Stack: debug.Stack()}
			}
		}()
	}
	b.Bytes = min(b.Bytes, math.MaxInt32) // which is as far as marks reach
	var out builder
	r := &run{left: b, now: now, vars: vars, scope: &scope{}, out: &out}
	if _, err := r.body(t.body); err != nil {
		var e *Error
		var raised *Raised
		if errors.As(err, &e) || errors.As(err, &raised) || errors.Is(err, ErrCostly) {
			return Text{}, err
		}
		return Text{}, &Error{Line: r.line, Message: short(err.Error())}
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

func (r *run) pop() { r.scope = r.scope.outer }

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
