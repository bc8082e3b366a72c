package jinja

import (
	"fmt"
	"math"
	"slices"
)

// Value is what a template computes with: one of undef, none, boolean, integer, float, Text,
// *List, *Dict, *function, *namespace.
type Value any

type (
	undef   struct{ what string } // the message of the error that using it is
	none    struct{}
	boolean struct{ v, client bool }
	integer struct {
		v      int64
		big    string // the digits, where they do not fit into v
		client bool
	}
	float struct {
		v      float64
		client bool
	}
)

// List is a list or a tuple. Nothing changes it once it is a value.
type List struct {
	items  []Value
	tuple  bool
	gen    bool // a generator: true, without length, and empty after it was gone through
	client bool // its brackets in JSON are the client's, too
}

// entry of a dict.
type entry struct{ key, value Value }

// Dict keeps the order in which its keys came.
type Dict struct {
	entries []entry
	index   map[hash]int // built when there are many
	client  bool
}

// namespace is the one thing that templates change.
type namespace struct{ d Dict }

// argument of a call that has a name. Behind ** the name is a key, which may be a client's (J1).
type keyword struct {
	name  Text
	value Value
}

// arguments of a call.
type arguments struct {
	pos []Value
	kw  []keyword
}

// function is what a template can call.
type function struct {
	name string
	call func(r *run, a arguments) (Value, error)
}

// None, True and False as templates see them.
func None() Value { return none{} }

// Bool returns a truth value that is not the client's.
func Bool(v bool) Value { return boolean{v: v} }

// NewList returns a list of items, which it keeps.
func NewList(items ...Value) *List { return &List{items: items} }

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// manyKeys is from where on a map is faster than looking at all.
const manyKeys = 12

// hash is what equal keys have in common: a kind, and a number or a text.
type hash struct {
	kind byte
	n    int64
	s    string
}

// hashOf is false for what can be no key.
func hashOf(k Value) (hash, bool) {
	switch k := k.(type) {
	case Text:
		return hash{kind: 's', s: k.s}, true
	case none:
		return hash{kind: 'n'}, true
	case undef:
		return hash{kind: 'u'}, true
	case boolean:
		n, _ := whole(k)
		return hash{kind: 'i', n: n}, true
	case integer:
		if k.big != "" {
			return hash{kind: 'b', s: k.big}, true
		}
		return hash{kind: 'i', n: k.v}, true
	case float:
		if math.Abs(k.v) < 1<<63 && k.v == math.Trunc(k.v) {
			return hash{kind: 'i', n: int64(k.v)}, true
		}
		return hash{kind: 'f', n: int64(math.Float64bits(k.v))}, true
	}
	return hash{}, false
}

func (d *Dict) find(key hash) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(d.entries, func(e entry) bool {
		h, _ := hashOf(e.key)
		return h == key
	})
}

// get returns the value of a key.
func (d *Dict) get(key Value) (Value, bool) {
	if h, ok := hashOf(key); ok {
		if i := d.find(h); i >= 0 {
			return d.entries[i].value, true
		}
	}
	return nil, false
}

// get pays for a look at the whole of a key, which has to be one.
func (r *run) get(d *Dict, key Value) (Value, bool, error) {
	h, ok := hashOf(key)
	if !ok {
		return nil, false, fmt.Errorf("unhashable type: '%s'", typeName(key))
	}
	if err := r.pay(len(h.s)); err != nil {
		return nil, false, err
	}
	v, ok := d.get(key)
	return v, ok, r.step()
}

// put pays for a key and sets its value; it has to be one that a dict can have.
func (r *run) put(d *Dict, key, value Value) error {
	h, ok := hashOf(key)
	if !ok {
		return fmt.Errorf("unhashable type: '%s'", typeName(key))
	}
	if err := r.pay(len(h.s) + pairBytes); err != nil {
		return err
	}
	d.put(key, value)
	return nil
}

// name returns the value of a string as key.
func (d *Dict) name(key string) (Value, bool) { return d.get(Text{s: key}) }

// put sets the value of a key, which must have a hash.
func (d *Dict) put(key, value Value) {
	h, _ := hashOf(key)
	if i := d.find(h); i >= 0 {
		d.entries[i].value = value
		return
	}
	d.entries = append(d.entries, entry{key, value})
	switch {
	case d.index != nil:
		d.index[h] = len(d.entries) - 1
	case len(d.entries) > manyKeys:
		d.index = make(map[hash]int, 2*manyKeys)
		for i, e := range d.entries {
			h, _ := hashOf(e.key)
			d.index[h] = i
		}
	}
}

// Set sets the value of a name that is not the client's.
func (d *Dict) Set(key string, value Value) { d.put(Literal(key), value) }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.entries) }

// Keys returns the keys that are strings, in order.
func (d *Dict) Keys() (out []string) {
	for _, e := range d.entries {
		if t, ok := e.key.(Text); ok {
			out = append(out, t.s)
		}
	}
	return out
}

// Each calls f for the entries whose keys are strings, in order.
func (d *Dict) Each(f func(key string, v Value)) {
	for _, e := range d.entries {
		if t, ok := e.key.(Text); ok {
			f(t.s, e.value)
		}
	}
}

// fromClient says whether what a value's text is depends on what a client brought.
func fromClient(v Value) bool {
	switch v := v.(type) {
	case Text:
		return v.fromClient()
	case boolean:
		return v.client
	case integer:
		return v.client
	case float:
		return v.client
	case *List:
		return v.client
	case *Dict:
		return v.client
	}
	return false
}

// truth is Python's bool().
func truth(v Value) bool {
	switch v := v.(type) {
	case undef, none:
		return false
	case boolean:
		return v.v
	case integer:
		return v.v != 0 || v.big != ""
	case float:
		return v.v != 0
	case Text:
		return v.s != ""
	case *List:
		return v.gen || len(v.items) > 0
	case *Dict:
		return len(v.entries) > 0
	}
	return true
}

// typeName is Python's name of a value's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case undef:
		return "Undefined"
	case none:
		return "NoneType"
	case boolean:
		return "bool"
	case integer:
		return "int"
	case float:
		return "float"
	case Text:
		return "str"
	case *List:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "Namespace"
	}
	return "function"
}
