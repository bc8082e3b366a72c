package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what a schema may say.
const (
	// branchesMost bounds the alternatives of one place, allOf of anyOfs multiplied out.
	branchesMost = 512
	// workMost bounds how many schemas are looked into, those of a place that others refer to once
	// for each: alternatives in alternatives can double with every level.
	workMost = 1 << 15
	// countMost bounds minItems, maxItems, minLength, maxLength. Counts take no nodes but with a
	// pattern; no answer has more tokens.
	countMost = 1 << 20
	// boundDigitsMost bounds how a number such as minimum is written, so that arithmetic on it is.
	boundDigitsMost = 320
)

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

func (f *facts) clone() *facts {
	c := *f
	c.objects, c.arrays = slices.Clip(f.objects), slices.Clip(f.arrays)
	c.required, c.patterns = slices.Clip(f.required), slices.Clip(f.patterns)
	return &c
}

// ignored are keywords that say nothing of the value's form.
var ignored = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "example": true, "$schema": true, "$id": true,
	"$comment": true, "$defs": true, "definitions": true, "deprecated": true, "readOnly": true, "writeOnly": true,
	"contentEncoding": true, "contentMediaType": true, "discriminator": true,
}

// expand returns the alternatives of what all of list demand.
func (b *builder) expand(list []*value) ([]*facts, error) {
	if b.work++; b.work > workMost {
		return nil, fmt.Errorf("%w: its alternatives and references multiply to more than %d schemas", errTooLarge, workMost)
	}
	all := []*facts{{at: list[0], types: typesAll, maxItems: -1, maxLength: -1, places: -1}}
	seen := map[int32]bool{}
	for i := 0; i < len(list); i++ {
		v := list[i]
		if seen[v.id] {
			continue
		}
		seen[v.id] = true
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
			list = append(slices.Clip(list), more...)
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
		to, err := b.root.resolve(v.text)
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
		if err := f.add(in, name, v); err != nil {
			return nil, err
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
				out = append(out, f.with(a))
			}
		}
	}
	*all = out
	return nil
}

// with returns what holds if f and a hold.
func (f *facts) with(a *facts) *facts {
	c := f.clone()
	c.types &= a.types
	c.implied |= a.implied
	if a.hasEnum {
		c.limitEnum(a.enum)
	}
	c.objects = append(c.objects, a.objects...)
	c.required = append(c.required, a.required...)
	c.closed = c.closed || a.closed
	c.arrays = append(c.arrays, a.arrays...)
	c.minItems, c.maxItems = max(c.minItems, a.minItems), least(c.maxItems, a.maxItems)
	c.minLength, c.maxLength = max(c.minLength, a.minLength), least(c.maxLength, a.maxLength)
	c.patterns = append(c.patterns, a.patterns...)
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

func (f *facts) limitEnum(list []*value) {
	if !f.hasEnum {
		f.enum, f.hasEnum = list, true
		return
	}
	known := map[string]bool{}
	for _, v := range list {
		known[string(v.canonical(nil))] = true
	}
	var both []*value
	for _, v := range f.enum {
		if known[string(v.canonical(nil))] {
			both = append(both, v)
		}
	}
	f.enum = both
}

func wants(v *value, what string) error {
	return fmt.Errorf("%s must be %s", quote(v.at()), what)
}

// add takes one keyword in.
func (f *facts) add(in *value, name string, v *value) error {
	switch name {
	case "type":
		return f.addType(v)
	case "enum":
		if v.kind != 'a' || len(v.items) == 0 {
			return wants(v, "a list of values")
		}
		f.limitEnum(v.items)
	case "const":
		f.limitEnum([]*value{v})
	case "properties", "required", "additionalProperties", "unevaluatedProperties":
		f.implied |= typeObject
		return f.addObject(in, name, v)
	case "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems":
		f.implied |= typeArray
		return f.addArray(in, name, v)
	case "minLength", "maxLength", "pattern", "format":
		return f.addString(name, v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		f.implied |= typeInteger | typeNumber
		return f.addNumber(name, v)
	default:
		if !ignored[name] && !strings.HasPrefix(name, "x-") {
			return fmt.Errorf("the keyword %s at %s is not supported", quote(name), quote(v.at()))
		}
	}
	return nil
}

func (f *facts) addType(v *value) error {
	list := []*value{v}
	if v.kind == 'a' {
		list = v.items
	}
	var set types
	for _, t := range list {
		is, ok := typeNames[t.text]
		if t.kind != 's' || !ok {
			return wants(v, "one or a list of object, array, string, number, integer, boolean, null")
		}
		set |= is
	}
	f.types &= set
	return nil
}

func (f *facts) addObject(in *value, name string, v *value) error {
	switch name {
	case "required":
		if v.kind != 'a' {
			return wants(v, "a list of names")
		}
		names := slices.Clone(f.required)
		for _, r := range v.items {
			if r.kind != 's' {
				return wants(v, "a list of names")
			}
			names = append(names, r.text)
		}
		f.required = names
	case "properties":
		if v.kind != 'o' {
			return wants(v, "an object of schemas")
		}
		f.objects = append(slices.Clip(f.objects), objectFacts{said: true, names: v.names, props: v.items, more: in.get("additionalProperties")})
	case "additionalProperties":
		if in.get("properties") == nil {
			f.objects = append(slices.Clip(f.objects), objectFacts{more: v})
		}
	case "unevaluatedProperties":
		if v.kind != 'f' {
			return fmt.Errorf("the keyword %s at %s is supported with false only", quote(name), quote(v.at()))
		}
		f.closed = true
	}
	return nil
}

func (f *facts) addArray(in *value, name string, v *value) (err error) {
	var n int
	switch name {
	case "minItems":
		n, err = v.count()
		f.minItems = max(f.minItems, n)
	case "maxItems":
		n, err = v.count()
		f.maxItems = least(f.maxItems, n)
	case "uniqueItems":
		if v.kind != 'f' {
			return fmt.Errorf("the keyword %s at %s is supported with false only", quote(name), quote(v.at()))
		}
	case "prefixItems":
		if v.kind != 'a' {
			return wants(v, "a list of schemas")
		}
		f.arrays = append(slices.Clip(f.arrays), arrayFacts{first: v.items, rest: in.get("items")})
	case "items":
		if v.kind == 'a' { // the form of drafts before 2020-12
			f.arrays = append(slices.Clip(f.arrays), arrayFacts{first: v.items, rest: in.get("additionalItems")})
		} else if in.get("prefixItems") == nil {
			f.arrays = append(slices.Clip(f.arrays), arrayFacts{rest: v})
		}
	}
	return err
}

func (f *facts) addString(name string, v *value) (err error) {
	var n int
	switch name {
	case "minLength":
		n, err = v.count()
		f.minLength = max(f.minLength, n)
	case "maxLength":
		n, err = v.count()
		f.maxLength = least(f.maxLength, n)
	case "pattern":
		if v.kind != 's' {
			return wants(v, "a string")
		}
		f.patterns = append(slices.Clip(f.patterns), textFact{v, v.text, true})
	case "format":
		if v.kind != 's' {
			return wants(v, "a string")
		}
		p, ok := formats[v.text]
		if !ok {
			return fmt.Errorf("the format %s at %s is not supported: supported are %s", quote(v.text), quote(v.at()), formatNames())
		}
		if p == "" { // a format of numbers, or one that says nothing of the form
			return nil
		}
		f.patterns = append(slices.Clip(f.patterns), textFact{v, p, false})
	}
	f.implied |= typeString
	return err
}

func (f *facts) addNumber(name string, v *value) error {
	r, err := v.number()
	if err != nil {
		return err
	}
	switch name {
	case "minimum", "exclusiveMinimum":
		f.low = tighter(f.low, &bound{v, r, name == "exclusiveMinimum"}, 1)
	case "maximum", "exclusiveMaximum":
		f.high = tighter(f.high, &bound{v, r, name == "exclusiveMaximum"}, -1)
	case "multipleOf":
		places := 0
		for one := big.NewRat(1, 1); r.Cmp(one) < 0 && places < fractionMost; places++ {
			r.Mul(r, big.NewRat(10, 1))
		}
		if r.Cmp(big.NewRat(1, 1)) != 0 {
			return fmt.Errorf("the keyword \"multipleOf\" at %s is %s, supported are 1, 0.1, 0.01 and so on", quote(v.at()), quote(v.text))
		}
		f.places = least(f.places, places)
	}
	return nil
}

// count returns a count such as minItems.
func (v *value) count() (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(v.text, ".0"))
	if v.kind != '0' || err != nil || n < 0 || n > countMost {
		return 0, wants(v, fmt.Sprintf("a whole number from 0 to %d", countMost))
	}
	return n, nil
}

// number returns a bound such as minimum.
func (v *value) number() (*big.Rat, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(v.text), "e")
	e, err := strconv.Atoi(exponent)
	if exponent == "" {
		e, err = 0, nil
	}
	if v.kind != '0' || err != nil || len(mantissa) > boundDigitsMost || e > boundDigitsMost || e < -boundDigitsMost {
		return nil, wants(v, fmt.Sprintf("a number of at most %d digits", boundDigitsMost))
	}
	r, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return nil, wants(v, "a number")
	}
	return r, nil
}

// fits says whether a value that is given in full meets what else is known of it; an error if
// that is not supported together.
func (f *facts) fits(v *value) (bool, error) {
	if f.types&v.types() == 0 {
		return false, nil
	}
	switch v.kind {
	case 's':
		if len(f.patterns) > 0 {
			return false, fmt.Errorf("enum or const together with %s is not supported", quote(f.patterns[0].at.at()))
		}
		n := utf8.RuneCountInString(v.text)
		return n >= f.minLength && (f.maxLength < 0 || n <= f.maxLength), nil
	case '0':
		r, err := v.number()
		if err != nil {
			return false, err
		}
		if f.low != nil && (r.Cmp(f.low.value) < 0 || f.low.strict && r.Cmp(f.low.value) == 0) {
			return false, nil
		}
		return f.high == nil || r.Cmp(f.high.value) < 0 || !f.high.strict && r.Cmp(f.high.value) == 0, nil
	case 'o':
		if len(f.objects) > 0 || len(f.required) > 0 || f.closed {
			return false, fmt.Errorf("the object %s together with keywords of objects is not supported", quote(v.at()))
		}
	case 'a':
		if len(f.arrays) > 0 || f.minItems > 0 || f.maxItems >= 0 {
			return false, fmt.Errorf("the array %s together with keywords of arrays is not supported", quote(v.at()))
		}
	}
	return true, nil
}

// types returns the types that v is of.
func (v *value) types() types {
	switch v.kind {
	case 'o':
		return typeObject
	case 'a':
		return typeArray
	case 's':
		return typeString
	case 't', 'f':
		return typeBool
	case 'n':
		return typeNull
	}
	if r, err := v.number(); err == nil && r.IsInt() {
		return typeInteger
	}
	return typeNumber
}
