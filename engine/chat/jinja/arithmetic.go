package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
				return r.plus(x, y)
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
			if n <= 0 || len(x.items) == 0 {
				return &List{tuple: x.tuple}, nil
			}
			if int64(len(x.items)) > r.left.Bytes/itemBytes/n {
				return nil, ErrCostly
			}
			return r.made(&List{items: slices.Repeat(x.items, int(n)), tuple: x.tuple})
		}
	case integer, boolean:
		if y, ok := b.(Text); ok && op == "*" {
			return r.repeat(y, a)
		}
	}
	return arithmetic(op, a, b)
}

// plus joins two texts; markup makes markup of the other.
func (r *run) plus(x, y Text) (_ Value, err error) {
	if x.markup || y.markup {
		if x, err = r.escaped(x); err != nil {
			return nil, err
		}
		if y, err = r.escaped(y); err != nil {
			return nil, err
		}
	}
	t, err := r.concat(x, y)
	t.markup = x.markup
	return t, errors.Join(err, r.pay(itemBytes))
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
		return power(x, y, client)
	}
	return float{x, client}, nil
}

// power is x ** y where one of them is a float, or y is negative.
func power(x, y float64, client bool) (Value, error) {
	if x == 0 && y < 0 {
		return nil, errors.New("0.0 cannot be raised to a negative power")
	}
	out := math.Pow(x, y)
	if math.IsInf(out, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) || math.IsNaN(out) && !math.IsNaN(x) && !math.IsNaN(y) {
		return nil, fmt.Errorf("%v ** %v is no real number that a float can hold", x, y)
	}
	return float{out, client}, nil
}

// integers computes with whole numbers; what does not fit into 64 bits is an error.
func integers(op string, m, n int64, client bool) (Value, error) {
	var out int64
	over := false
	switch op {
	case "+":
		out = m + n
		over = (m^out)&(n^out) < 0 // both have the other sign
	case "-":
		out = m - n
		over = (m^n)&(m^out) < 0
	case "*":
		out, over = product(m, n)
	case "//", "%":
		if n == 0 {
			return nil, errors.New("integer division or modulo by zero")
		}
		q, rest := m/n, m%n
		if rest != 0 && (rest < 0) != (n < 0) {
			q, rest = q-1, rest+n
		}
		if out = rest; op == "//" {
			out, over = q, m == math.MinInt64 && n == -1
		}
	case "**":
		if n < 0 {
			return power(float64(m), float64(n), client)
		}
		out, over = wholePower(m, n)
	}
	if over {
		return nil, fmt.Errorf("the result of %d %s %d needs more than 64 bits", m, op, n)
	}
	return integer{v: out, client: client}, nil
}

func product(m, n int64) (out int64, over bool) {
	out = m * n
	return out, m != 0 && (out/m != n || m == -1 && n == math.MinInt64)
}

// wholePower is m ** n by squaring, for n from 0 on.
func wholePower(m, n int64) (out int64, over bool) {
	out = 1
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			if out, over = product(out, m); over {
				return 0, true
			}
		}
		if n > 1 {
			if m, over = product(m, m); over {
				return 0, true
			}
		}
	}
	return out, false
}
