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
	index   map[string]int // built when there are many
	client  bool
}

// namespace is the one thing that templates change.
type namespace struct{ d Dict }

// argument of a call that has a name.
type keyword struct {
	name  string
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

// hash returns what equal keys have in common; ok is false for what can be no key.
func hash(k Value) (string, bool) {
	number := func(v int64) (string, bool) { return fmt.Sprintf("i%d", v), true }
	switch k := k.(type) {
	case Text:
		return "s" + k.s, true
	case none:
		return "n", true
	case undef:
		return "u", true
	case boolean:
		if k.v {
			return number(1)
		}
		return number(0)
	case integer:
		if k.big != "" {
			return "b" + k.big, true
		}
		return number(k.v)
	case float:
		if v := int64(k.v); float64(v) == k.v {
			return number(v)
		}
		return fmt.Sprintf("f%x", math.Float64bits(k.v)), true
	}
	return "", false
}

func (d *Dict) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(d.entries, func(e entry) bool {
		if t, ok := e.key.(Text); ok {
			return key[0] == 's' && t.s == key[1:]
		}
		h, _ := hash(e.key)
		return h == key
	})
}

// get returns the value of a key.
func (d *Dict) get(key Value) (Value, bool) {
	h, ok := hash(key)
	if !ok {
		return nil, false
	}
	if i := d.find(h); i >= 0 {
		return d.entries[i].value, true
	}
	return nil, false
}

// name returns the value of a string as key.
func (d *Dict) name(key string) (Value, bool) { return d.get(Text{s: key}) }

// put sets the value of a key, which must have a hash.
func (d *Dict) put(key, value Value) {
	h, _ := hash(key)
	if i := d.find(h); i >= 0 {
		d.entries[i].value = value
		return
	}
	d.entries = append(d.entries, entry{key, value})
	switch {
	case d.index != nil:
		d.index[h] = len(d.entries) - 1
	case len(d.entries) > manyKeys:
		d.index = make(map[string]int, 2*manyKeys)
		for i, e := range d.entries {
			h, _ := hash(e.key)
			d.index[h] = i
		}
	}
}

// Set sets the value of a name that is not the client's.
func (d *Dict) Set(key string, value Value) { d.put(Text{s: key}, value) }

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
