package jinja

import (
	"errors"
	"fmt"
)

// test is what stands behind "is".
type test func(r *run, v Value, a arguments) (bool, error)

var tests map[string]test

func init() {
	tests = map[string]test{
		"defined":   func(_ *run, v Value, _ arguments) (bool, error) { _, u := v.(undef); return !u, nil },
		"undefined": kindTest("Undefined"), "none": kindTest("NoneType"), "boolean": kindTest("bool"),
		"integer": kindTest("int"), "float": kindTest("float"), "string": kindTest("str"), "mapping": kindTest("dict"),
		"number": kindTest("int", "float", "bool"), "callable": callable, "sequence": sequence, "iterable": iterable,
		"true":  func(_ *run, v Value, _ arguments) (bool, error) { b, ok := v.(boolean); return ok && b.v, nil },
		"false": func(_ *run, v Value, _ arguments) (bool, error) { b, ok := v.(boolean); return ok && !b.v, nil },
		"odd":   remainder(2, 1), "even": remainder(2, 0), "divisibleby": divisible,
		"lower":   func(r *run, v Value, _ arguments) (bool, error) { return cased(r, v, true) },
		"upper":   func(r *run, v Value, _ arguments) (bool, error) { return cased(r, v, false) },
		"escaped": func(*run, Value, arguments) (bool, error) { return false, nil },
		"filter":  func(_ *run, v Value, _ arguments) (bool, error) { t, _ := v.(Text); return filters[t.s] != nil, nil },
		"test":    func(_ *run, v Value, _ arguments) (bool, error) { t, _ := v.(Text); return tests[t.s] != nil, nil },
		"sameas":  sameas,
	}
	for op, names := range map[string][]string{"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, "<=": {"le"},
		">": {"gt", "greaterthan"}, ">=": {"ge"}, "in": {"in"}} {
		for _, name := range names {
			tests[name] = func(r *run, v Value, a arguments) (bool, error) {
				if len(a.pos) != 1 {
					return false, fmt.Errorf("the test '%s' takes one argument", name)
				}
				return r.compare(op, v, a.pos[0])
			}
		}
	}
}

func kindTest(names ...string) test {
	return func(_ *run, v Value, _ arguments) (bool, error) {
		for _, n := range names {
			if typeName(v) == n {
				return true, nil
			}
		}
		return false, nil
	}
}

func callable(_ *run, v Value, _ arguments) (bool, error) {
	_, ok := v.(*function)
	return ok, nil
}

// sequence is what has a length and items.
func sequence(_ *run, v Value, _ arguments) (bool, error) {
	switch v := v.(type) {
	case Text, *Dict, undef:
		return true, nil
	case *List:
		return !v.gen, nil
	}
	return false, nil
}

func iterable(_ *run, v Value, _ arguments) (bool, error) {
	switch v.(type) {
	case Text, *Dict, *List, undef:
		return true, nil
	}
	return false, nil
}

func remainder(by, want int64) test {
	return func(_ *run, v Value, _ arguments) (bool, error) {
		n, ok := whole(v)
		if !ok {
			return false, fmt.Errorf("not an integer but %s", typeName(v))
		}
		return (n%by+by)%by == want, nil
	}
}

func divisible(_ *run, v Value, a arguments) (bool, error) {
	n, ok := whole(v)
	if ok && len(a.pos) == 1 {
		if by, ok := whole(a.pos[0]); ok && by != 0 {
			return n%by == 0, nil
		}
	}
	return false, errors.New("divisibleby takes two integers, the second not 0")
}

// sameas is Python's "is": of what a template can tell apart.
func sameas(r *run, v Value, a arguments) (bool, error) {
	if len(a.pos) != 1 {
		return false, errors.New("sameas takes one argument")
	}
	switch v.(type) {
	case none, boolean, integer, Text:
		if typeName(v) != typeName(a.pos[0]) {
			return false, nil
		}
		return r.equal(v, a.pos[0])
	case *List, *Dict, *function, *namespace, *round:
		return v == a.pos[0], nil
	}
	return false, nil
}
