package grammar

import (
	"fmt"
	"math/big"
	"slices"
)

// Bounds of what a schema may say.
const (
	// branchesMost bounds the alternatives of one place, allOf of anyOfs multiplied out.
	branchesMost = 512
	// countMost bounds minItems, maxItems, minLength, maxLength. Counts take no nodes but with a
	// pattern; no answer has more tokens.
	countMost = 1 << 20
	// boundDigitsMost bounds how a number such as minimum is written, so that arithmetic on it is.
	boundDigitsMost = 320
)

// factsWork is what the facts of one alternative count in the work.
const factsWork = 16

// types is a set of JSON types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeObject
	typeArray
	typeString
	typeInteger
	typeNumber // with integers
	typesAll   = typeNull | typeBool | typeObject | typeArray | typeString | typeInteger | typeNumber
)

var typeNames = map[string]types{
	"null": typeNull, "boolean": typeBool, "object": typeObject, "array": typeArray,
	"string": typeString, "integer": typeInteger, "number": typeInteger | typeNumber,
}

// facts is what schemas that all hold say of one value, apart from alternatives.
type facts struct {
	at       *value
	types    types
	implied  types // types of the keywords that are there: a schema without type means these
	enum     []*value
	hasEnum  bool
	objects  []objectFacts
	required []string
	closed   bool // unevaluatedProperties: false
	arrays   []arrayFacts

	minItems, maxItems   int // max -1: no bound
	minLength, maxLength int
	patterns             []textFact // pattern and format
	low, high            *bound
	places               int // most digits after the point, -1 no bound (multipleOf)
}

// objectFacts is what one schema says of members.
type objectFacts struct {
	said  bool // properties is there, if without any
	names []string
	props []*value
	more  *value // additionalProperties, nil if not said
}

// arrayFacts is what one schema says of items.
type arrayFacts struct {
	first []*value
	rest  *value // nil if not said
}

type textFact struct {
	at      *value
	pattern string
	search  bool // the pattern may match a part
}

type bound struct {
	at     *value
	value  *big.Rat
	strict bool // exclusive
}

// ignored are keywords that say nothing of the value's form.
var ignored = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "example": true, "$schema": true, "$id": true,
	"$comment": true, "$defs": true, "definitions": true, "deprecated": true, "readOnly": true, "writeOnly": true,
	"contentEncoding": true, "contentMediaType": true, "discriminator": true,
}

// expand returns the alternatives of what all of list demand.
func (b *builder) expand(list []*value) ([]*facts, error) {
	if !b.spend(factsWork + len(list)) {
		return nil, b.err
	}
	all := []*facts{{at: list[0], types: typesAll, maxItems: -1, maxLength: -1, places: -1}}
	list = slices.Clip(list)
	var seen []int32
	for i := 0; i < len(list); i++ {
		v := list[i]
		if slices.Contains(seen, v.id) {
			continue
		}
		if seen = append(seen, v.id); len(seen) > heldMost {
			b.tooMany(list[0])
		}
		if !b.spend(4 + len(seen)/16 + len(v.names)) {
			return nil, b.err
		}
		switch v.kind {
		case 't':
			continue
		case 'f':
			return nil, nil
		case 'o':
		default:
			return nil, fmt.Errorf("%s is no schema: a schema is an object, true or false", quote(v.at()))
		}
		for k, name := range v.names {
			more, err := b.branch(&all, v, name, v.items[k])
			if err != nil {
				return nil, err
			}
			if !b.spend(len(more)) {
				return nil, b.err
			}
			list = append(list, more...)
		}
	}
	return all, nil
}

// branch adds one keyword to all alternatives, and returns further schemas that hold too.
func (b *builder) branch(all *[]*facts, in *value, name string, v *value) ([]*value, error) {
	switch name {
	case "$ref":
		if v.kind != 's' {
			return nil, wants(v, "a string")
		}
		to, err := b.root.resolve(b.net, v.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quote(v.at()), err)
		}
		return []*value{to}, nil
	case "allOf":
		if v.kind != 'a' || len(v.items) == 0 {
			return nil, wants(v, "a list of schemas")
		}
		return v.items, nil
	case "anyOf", "oneOf":
		if v.kind != 'a' || len(v.items) == 0 {
			return nil, wants(v, "a list of schemas")
		}
		return nil, b.alternatives(all, v)
	}
	for _, f := range *all {
		b.spend(1)
		if err := f.add(b.net, in, name, v); err != nil {
			return nil, err
		}
		if b.err != nil {
			return nil, b.err
		}
	}
	return nil, nil
}

// alternatives multiplies what is known with the alternatives of v.
func (b *builder) alternatives(all *[]*facts, v *value) error {
	var out []*facts
	for _, item := range v.items {
		b.nested++
		if b.nested > schemaDepthMost {
			return fmt.Errorf("%s: alternatives inside alternatives refer to themselves with nothing in between", quote(v.at()))
		}
		alts, err := b.expand([]*value{item})
		b.nested--
		if err != nil {
			return err
		}
		for _, f := range *all {
			for _, a := range alts {
				if len(out) >= branchesMost {
					return fmt.Errorf("%s: more than %d alternatives, those of allOf, anyOf and oneOf of one place multiplied out; write fewer", quote(v.at()), branchesMost)
				}
				if !b.spend(factsWork + 3*(len(f.objects)+len(a.objects)) + len(f.arrays) + len(a.arrays) + len(f.required) + len(a.required) + 2*(len(f.patterns)+len(a.patterns))) {
					return b.err
				}
				out = append(out, f.with(b.net, a))
			}
		}
	}
	*all = out
	return nil
}

// joined returns a and b in a list of its own, if it is appended to.
func joined[T any](a, b []T) []T {
	if len(b) == 0 {
		return slices.Clip(a)
	}
	return slices.Clip(slices.Concat(a, b))
}

// with returns what holds if f and a hold.
func (f *facts) with(n *net, a *facts) *facts {
	same := *f
	c := &same
	c.types &= a.types
	c.implied |= a.implied
	if a.hasEnum {
		c.limitEnum(n, a.enum)
	}
	c.objects = joined(f.objects, a.objects)
	c.required = joined(f.required, a.required)
	c.closed = c.closed || a.closed
	c.arrays = joined(f.arrays, a.arrays)
	c.minItems, c.maxItems = max(c.minItems, a.minItems), least(c.maxItems, a.maxItems)
	c.minLength, c.maxLength = max(c.minLength, a.minLength), least(c.maxLength, a.maxLength)
	c.patterns = joined(f.patterns, a.patterns)
	c.low, c.high = tighter(c.low, a.low, 1), tighter(c.high, a.high, -1)
	c.places = least(c.places, a.places)
	return c
}

// least returns the smaller of two bounds of which -1 is none.
func least(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// tighter returns the bound that leaves less; sign is 1 for lower bounds, -1 for upper ones.
func tighter(a, b *bound, sign int) *bound {
	if a == nil || b != nil && (b.value.Cmp(a.value)*sign > 0 || b.value.Cmp(a.value) == 0 && b.strict) {
		return b
	}
	return a
}

// limitEnum leaves the values that are in list, too.
func (f *facts) limitEnum(n *net, list []*value) {
	if !f.hasEnum {
		f.enum, f.hasEnum = list, true
		return
	}
	known := map[string]bool{}
	for _, v := range list {
		known[n.canonical(v)] = true
	}
	var both []*value
	for _, v := range f.enum {
		if known[n.canonical(v)] {
			both = append(both, v)
		}
	}
	f.enum = both
}

// canonical is how v is written; "" when there was too much work.
func (n *net) canonical(v *value) string {
	if !n.spend(4) {
		return ""
	}
	text := string(v.canonical(nil))
	n.spend(len(text) / 8)
	return text
}

func wants(v *value, what string) error {
	return fmt.Errorf("%s must be %s", quote(v.at()), what)
}
