package jinja

import (
	"fmt"
)

// roundSteps is what a round of a loop costs: a scope and what is in it.
const roundSteps = 8

// round is what "loop" is inside of a loop.
type round struct {
	items   []Value
	at      int
	depth   int
	again   *function // of a recursive loop
	changed []Value
}

func (l loop) exec(r *run) (signal, error) {
	r.line = l.line
	v, err := l.in.eval(r)
	if err != nil {
		return goOn, err
	}
	return goOn, l.over(r, v, 0)
}

// over runs the loop over v.
func (l loop) over(r *run, v Value, depth int) error {
	items, err := r.items(v)
	if err != nil {
		return err
	}
	if l.where != nil {
		if items, err = l.kept(r, items); err != nil {
			return err
		}
	}
	state := &round{items: items, depth: depth}
	if l.recursive {
		home := r.scope
		state.again = &function{"loop", func(r *run, a arguments) (Value, error) { return l.deeper(r, a, home, depth) }}
	}
	for i, item := range items {
		if r.left.Steps -= roundSteps; r.left.Steps < 0 {
			return ErrCostly
		}
		state.at = i
		r.push()
		r.scope.set("loop", state)
		err := l.bind(r, item)
		var sig signal
		if err == nil {
			sig, err = r.body(l.body)
		}
		r.pop()
		if err != nil {
			return err
		}
		if sig == breaks {
			break
		}
	}
	if len(items) == 0 {
		_, err := r.inside(l.otherwise)
		return err
	}
	return nil
}

// deeper runs a recursive loop inside of itself and returns what it prints.
func (l loop) deeper(r *run, a arguments, home *scope, depth int) (Value, error) {
	if len(a.pos) != 1 {
		return nil, fmt.Errorf("loop() takes one iterable")
	}
	if r.macros++; r.macros > macrosMax {
		return nil, ErrCostly
	}
	out, scope := r.out, r.scope
	var b builder
	r.out, r.scope = &b, home
	err := l.over(r, a.pos[0], depth+1)
	r.out, r.scope = out, scope
	r.macros--
	return b.text(), err
}

// bind sets the loop's variables.
func (l loop) bind(r *run, item Value) error {
	if !l.tuple {
		r.scope.set(l.targets[0], item)
		return nil
	}
	items, err := r.unpack(item, len(l.targets))
	if err != nil {
		return err
	}
	for i, n := range l.targets {
		r.scope.set(n, items[i])
	}
	return nil
}

// kept returns the items of which the loop's condition is true.
func (l loop) kept(r *run, items []Value) (out []Value, err error) {
	for _, item := range items {
		if err := r.step(); err != nil {
			return nil, err
		}
		r.push()
		err := l.bind(r, item)
		var v Value
		if err == nil {
			v, err = l.where.eval(r)
		}
		r.pop()
		if err != nil {
			return nil, err
		}
		if truth(v) {
			out = append(out, item)
		}
	}
	return out, r.pay(itemBytes * len(out))
}

// attr returns an attribute of loop.
func (s *round) attr(name string) (Value, bool) {
	n := func(v int) (Value, bool) { return integer{v: int64(v)}, true }
	at := func(i int, what string) (Value, bool) {
		if i < 0 || i >= len(s.items) {
			return undef{"there is no " + what + " item"}, true
		}
		return s.items[i], true
	}
	switch name {
	case "index":
		return n(s.at + 1)
	case "index0":
		return n(s.at)
	case "revindex":
		return n(len(s.items) - s.at)
	case "revindex0":
		return n(len(s.items) - s.at - 1)
	case "first":
		return boolean{v: s.at == 0}, true
	case "last":
		return boolean{v: s.at == len(s.items)-1}, true
	case "length":
		return n(len(s.items))
	case "depth":
		return n(s.depth + 1)
	case "depth0":
		return n(s.depth)
	case "previtem":
		return at(s.at-1, "previous")
	case "nextitem":
		return at(s.at+1, "next")
	case "cycle":
		return &function{"cycle", func(r *run, a arguments) (Value, error) {
			if len(a.pos) == 0 {
				return nil, fmt.Errorf("no items for cycling given")
			}
			return a.pos[s.at%len(a.pos)], nil
		}}, true
	case "changed":
		return &function{"changed", func(r *run, a arguments) (Value, error) {
			same, err := r.equal(&List{items: s.changed}, &List{items: a.pos})
			if err != nil {
				return nil, err
			}
			first := s.changed == nil
			s.changed = append([]Value{}, a.pos...)
			return boolean{v: first || !same}, nil
		}}, true
	}
	return nil, false
}

// items returns what a loop over v goes through.
func (r *run) items(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		if v.gen {
			items := v.items
			v.items = nil // what a filter hands on is there once
			return items, nil
		}
		return v.items, nil
	case *Dict:
		if err := r.pay(itemBytes * len(v.entries)); err != nil {
			return nil, err
		}
		out := make([]Value, len(v.entries))
		for i, e := range v.entries {
			out[i] = e.key
		}
		return out, nil
	case Text:
		if err := r.pay(textBytes * len(v.s)); err != nil {
			return nil, err
		}
		var out []Value
		for at := 0; at < len(v.s); {
			n := runeLen(v.s[at:])
			out = append(out, v.Slice(at, at+n))
			at += n
		}
		return out, nil
	case undef:
		return nil, nil
	}
	return nil, fmt.Errorf("'%s' object is not iterable", typeName(v))
}
