package jinja

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// asNumber returns a number as float.
func asNumber(v Value) (float64, bool) {
	switch v := v.(type) {
	case integer:
		return float64(v.v), v.big == ""
	case boolean:
		n, _ := whole(v)
		return float64(n), true
	case float:
		return v.v, true
	}
	return 0, false
}

// whole returns an integer's value.
func whole(v Value) (int64, bool) {
	switch v := v.(type) {
	case integer:
		return v.v, v.big == ""
	case boolean:
		if v.v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

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
		return strings.Contains(v.s, s.s), r.pay(len(v.s))
	case *Dict:
		if _, ok := hash(x); !ok {
			return false, fmt.Errorf("unhashable type: '%s'", typeName(x))
		}
		_, ok := v.get(x)
		return ok, r.step()
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

func (r *run) binary(op string, a, b Value) (Value, error) {
	for _, v := range []Value{a, b} {
		if u, ok := v.(undef); ok {
			return nil, errors.New(u.what)
		}
	}
	switch x := a.(type) {
	case Text:
		switch y := b.(type) {
		case Text:
			if op == "+" {
				if err := r.pay(x.size() + y.size() + itemBytes); err != nil {
					return nil, err
				}
				if x.markup || y.markup {
					if err := r.pay(6 * (x.size() + y.size())); err != nil {
						return nil, err
					}
					x, y = x.escaped(), y.escaped()
				}
				t := concat(x, y)
				t.markup = x.markup
				return t, nil
			}
		case integer, boolean:
			if op == "*" {
				return r.repeat(x, y)
			}
		}
		switch op {
		case "+":
			return nil, fmt.Errorf("can only concatenate str (not \"%s\") to str", typeName(b))
		case "%":
			return r.percent(x, b)
		}
	case *List:
		if y, ok := b.(*List); ok && op == "+" && x.tuple == y.tuple && !x.gen && !y.gen {
			if err := r.pay(itemBytes * (1 + len(x.items) + len(y.items))); err != nil {
				return nil, err
			}
			items := append(append(make([]Value, 0, len(x.items)+len(y.items)), x.items...), y.items...)
			return &List{items: items, tuple: x.tuple}, nil
		}
		if n, ok := whole(b); ok && op == "*" && !x.gen {
			out := &List{tuple: x.tuple}
			if n > 0 && int64(len(x.items)) > r.left.Bytes/itemBytes/n {
				return nil, ErrCostly
			}
			for ; n > 0 && len(x.items) > 0; n-- {
				out.items = append(out.items, x.items...)
			}
			return r.made(out)
		}
	case integer, boolean:
		if y, ok := b.(Text); ok && op == "*" {
			return r.repeat(y, a)
		}
	}
	return arithmetic(op, a, b)
}

// repeat is text * n.
func (r *run) repeat(t Text, v Value) (Value, error) {
	n, ok := whole(v)
	if !ok {
		return nil, errors.New("cannot fit 'int' into an index-sized integer")
	}
	if n <= 0 || t.s == "" {
		return Text{}, nil
	}
	if int64(t.size()) > r.left.Bytes/n {
		return nil, ErrCostly
	}
	if err := r.pay(t.size() * int(n)); err != nil {
		return nil, err
	}
	var b builder
	for range n {
		b.add(t)
	}
	return b.text(), nil
}

func unsupported(op string, a, b Value) error {
	return fmt.Errorf("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// arithmetic computes with numbers.
func arithmetic(op string, a, b Value) (Value, error) {
	client := fromClient(a) || fromClient(b)
	m, okA := whole(a)
	n, okB := whole(b)
	if okA && okB && op != "/" {
		return integers(op, m, n, client)
	}
	x, okA := asNumber(a)
	y, okB := asNumber(b)
	if !okA || !okB {
		return nil, unsupported(op, a, b)
	}
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		return nil, errors.New("division by zero")
	}
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/":
		x /= y
	case "//":
		x = math.Floor(x / y)
	case "%":
		if x = math.Mod(x, y); x != 0 && (x < 0) != (y < 0) {
			x += y
		}
	case "**":
		x = math.Pow(x, y)
	}
	return float{x, client}, nil
}

// integers computes with whole numbers; what does not fit into 64 bits is an error.
func integers(op string, m, n int64, client bool) (Value, error) {
	var out int64
	over := false
	switch op {
	case "+":
		out = m + n
		over = (m > 0) == (n > 0) && m != 0 && n != 0 && (out > 0) != (m > 0)
	case "-":
		out = m - n
		over = (m >= 0) != (n >= 0) && (out >= 0) != (m >= 0)
	case "*":
		out = m * n
		over = m != 0 && (out/m != n || m == -1 && n == math.MinInt64)
	case "//", "%":
		if n == 0 {
			return nil, errors.New("integer division or modulo by zero")
		}
		q, rest := m/n, m%n
		if rest != 0 && (rest < 0) != (n < 0) {
			q, rest = q-1, rest+n
		}
		over = m == math.MinInt64 && n == -1
		if out = q; op == "%" {
			out = rest
		}
	case "**":
		if n < 0 {
			return float{math.Pow(float64(m), float64(n)), client}, nil
		}
		f := math.Pow(float64(m), float64(n))
		if over = math.Abs(f) >= 1<<62; !over {
			out = 1
			for ; n > 0 && out != 0 && m != 1; n-- {
				if m == -1 {
					out, n = 1-2*(n%2), 1
					continue
				}
				out *= m
			}
		}
	}
	if over {
		return nil, fmt.Errorf("the result of %d %s %d needs more than 64 bits", m, op, n)
	}
	return integer{v: out, client: client}, nil
}

// item is of[key]: what is in it first, then its attribute.
func (r *run) item(of, key Value) (Value, error) {
	if err := r.step(); err != nil {
		return nil, err
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
			one := n + 1
			end := &one
			if n == -1 {
				end = nil
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
	k, err := r.repr(key, 0)
	if err != nil {
		return nil, err
	}
	if t, ok := key.(Text); ok {
		return undef{fmt.Sprintf("'%s' has no attribute '%s'", objectName(of), t.s)}, nil
	}
	return undef{fmt.Sprintf("%s has no element %s", objectName(of), k.s)}, nil
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

// slice is of[from:to:step].
func (r *run) slice(of Value, at [3]*int64) (Value, error) {
	step := int64(1)
	if at[2] != nil {
		if step = *at[2]; step == 0 {
			return nil, errors.New("slice step cannot be zero")
		}
	}
	switch v := of.(type) {
	case *List:
		if v.gen {
			break
		}
		out := &List{tuple: v.tuple, client: v.client}
		from, to := bounds(int64(len(v.items)), at[0], at[1], step)
		if err := r.pay(itemBytes * int(span(from, to, step))); err != nil {
			return nil, err
		}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			out.items = append(out.items, v.items[i])
		}
		return out, nil
	case Text:
		return r.sliceText(v, at, step)
	case undef:
		return nil, errors.New(v.what)
	}
	return undef{fmt.Sprintf("'%s' object is not subscriptable", typeName(of))}, nil
}

func span(from, to, step int64) int64 {
	if step > 0 {
		return max(0, (to-from+step-1)/step)
	}
	return max(0, (from-to-step-1)/-step)
}

// bounds are Python's of a slice over n items.
func bounds(n int64, a, b *int64, step int64) (from, to int64) {
	clip := func(p *int64, otherwise, low, high int64) int64 {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return max(low, min(i, high))
	}
	if step > 0 {
		return clip(a, 0, 0, n), clip(b, n, 0, n)
	}
	return clip(a, n-1, -1, n-1), clip(b, -1, -1, n-1)
}

// sliceText slices by characters.
func (r *run) sliceText(t Text, at [3]*int64, step int64) (Value, error) {
	if err := r.pay(t.size() + itemBytes); err != nil {
		return nil, err
	}
	offsets, n := []int(nil), int64(len(t.s))
	if !ascii(t.s) {
		if err := r.pay(8 * len(t.s)); err != nil {
			return nil, err
		}
		for i := 0; i < len(t.s); i += runeLen(t.s[i:]) {
			offsets = append(offsets, i)
		}
		n = int64(len(offsets))
		offsets = append(offsets, len(t.s))
	}
	offset := func(i int64) int {
		if offsets == nil {
			return int(i)
		}
		return offsets[i]
	}
	from, to := bounds(n, at[0], at[1], step)
	if step == 1 {
		if from >= to {
			return Text{}, nil
		}
		return t.Slice(offset(from), offset(to)), nil
	}
	var b builder
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		b.add(t.Slice(offset(i), offset(i+1)))
	}
	return b.text(), r.pay(4 * len(b.marks))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// runeLen is the length of the first character of s, 1 for a byte that is none.
func runeLen(s string) int {
	for _, c := range s {
		if c == 0xfffd && (len(s) < 3 || s[:3] != "\uFFFD") {
			return 1
		}
		return len(string(c))
	}
	return 0
}
