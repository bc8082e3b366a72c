package grammar

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	// rulesMost bounds how many schemas (each with all that it is merged with) are built.
	rulesMost = 1 << 14
	// propertiesMost bounds the properties of one object: each may be the next one to come.
	propertiesMost = 1024
	// whiteMost bounds the spaces after a line break: documents indented by 2 nest 10 levels with it.
	// (llama.cpp allows as many.)
	whiteMost = 20
)

// builder makes rules of schemas.
type builder struct {
	*net
	root   *value
	loose  bool
	rules  map[string]int32 // by the ids of the schemas that hold together
	todo   []pending
	work   int
	nested int

	white, text, char, any int32 // rules that all share; -1 not built yet
	classes                map[string]int32
}

type pending struct {
	rule int32
	list []*value
}

func newBuilder(n *net) *builder {
	return &builder{net: n, rules: map[string]int32{}, white: -1, text: -1, char: -1, any: -1, classes: map[string]int32{}}
}

// document returns the rule of a schema. at names it in messages.
func (b *builder) document(raw []byte, loose bool) (int32, error) {
	root, err := parseSchema(raw)
	if err != nil {
		return 0, err
	}
	b.root, b.loose = root, loose
	clear(b.rules) // ids count from 0 in each document
	top := b.schema([]*value{root})
	for len(b.todo) > 0 {
		p := b.todo[0]
		b.todo = b.todo[1:]
		if err := b.define(p); err != nil {
			return 0, err
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	return top, nil
}

// schema returns the rule of values that fit all of list.
func (b *builder) schema(list []*value) int32 {
	slices.SortFunc(list, func(x, y *value) int { return int(x.id - y.id) })
	list = slices.CompactFunc(list, func(x, y *value) bool { return x.id == y.id })
	if len(list) > 1 { // what is always true adds nothing
		some := slices.DeleteFunc(slices.Clone(list), func(v *value) bool { return v.kind == 't' })
		if list = list[:1]; len(some) > 0 {
			list = some
		}
	}
	if len(list) == 1 && list[0].kind == 't' {
		return b.anyValue()
	}
	var key []byte
	for _, v := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(v.id))
	}
	if r, ok := b.rules[string(key)]; ok {
		return r
	}
	if len(b.rules) >= rulesMost {
		b.fail("%w: it has more than %d schemas, those that hold together counted as one more", errTooLarge, rulesMost)
		return 0
	}
	r := b.newRule(list[0].at())
	b.rules[string(key)] = r
	b.todo = append(b.todo, pending{r, list})
	return r
}

// define builds a rule that schema promised.
func (b *builder) define(p pending) error {
	var starts []int32
	if direct, err := b.direct(p.list); err != nil {
		return err
	} else if direct != nil {
		for _, v := range direct {
			starts = append(starts, b.call(b.schema([]*value{v}), end))
		}
	} else {
		all, err := b.expand(p.list)
		if err != nil {
			return err
		}
		for _, f := range all {
			s, err := b.facts(f)
			if err != nil {
				return err
			}
			starts = append(starts, s...)
		}
	}
	b.net.rules[p.rule].start = b.split(starts...)
	return nil
}

// direct returns the schemas of which one holds, if list says nothing else; nil if it does.
func (b *builder) direct(list []*value) ([]*value, error) {
	if len(list) != 1 || list[0].kind != 'o' {
		return nil, nil
	}
	var only string
	for _, name := range list[0].names {
		if ignored[name] || strings.HasPrefix(name, "x-") {
			continue
		}
		if only != "" {
			return nil, nil
		}
		only = name
	}
	v := list[0].get(only)
	switch {
	case only == "$ref" && v.kind == 's':
		to, err := b.root.resolve(v.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quote(v.at()), err)
		}
		return []*value{to}, nil
	case (only == "anyOf" || only == "oneOf") && v.kind == 'a' && len(v.items) > 0:
		if len(v.items) > branchesMost {
			return nil, fmt.Errorf("%s has %d alternatives, allowed are %d", quote(v.at()), len(v.items), branchesMost)
		}
		return v.items, nil
	}
	return nil, nil
}

// facts returns the nodes at which the values of one alternative begin, one per type.
func (b *builder) facts(f *facts) (starts []int32, err error) {
	if f.hasEnum {
		return b.given(f)
	}
	if f.types == typesAll && f.implied == 0 {
		return []int32{b.call(b.anyValue(), end)}, nil
	}
	if f.types == typesAll {
		f.types = f.implied
	}
	if f.types&typeNull != 0 {
		starts = append(starts, b.net.text("null", end))
	}
	if f.types&typeBool != 0 {
		starts = append(starts, b.texts([]string{"true", "false"}, end))
	}
	if f.types&typeString != 0 {
		s, err := b.stringOf(f)
		if err != nil {
			return nil, err
		}
		starts = append(starts, s)
	}
	if f.types&(typeInteger|typeNumber) != 0 {
		s, err := b.numberOf(f)
		if err != nil {
			return nil, err
		}
		starts = append(starts, s)
	}
	if f.types&typeArray != 0 {
		starts = append(starts, b.arrayOf(f))
	}
	if f.types&typeObject != 0 {
		s, err := b.objectOf(f)
		if err != nil {
			return nil, err
		}
		starts = append(starts, s)
	}
	return starts, nil
}

// given returns the start of values given in full.
func (b *builder) given(f *facts) ([]int32, error) {
	var list []string
	for _, v := range f.enum {
		ok, err := f.fits(v)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, string(v.canonical(nil)))
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return []int32{b.texts(list, end)}, nil
}

// spaced returns the node at which white space before to may begin: nothing, one space, or a
// line break and up to whiteMost spaces. It is bounded, so that a model cannot write it for ever.
func (b *builder) spaced(to int32) int32 {
	if b.white < 0 {
		line := end
		for range whiteMost {
			line = b.split(end, b.byte(' ', line))
		}
		b.white = b.ruleOf("white space", b.split(end, b.bytes(edge{'\n', '\n', line}, edge{' ', ' ', end})))
	}
	return b.call(b.white, to)
}

// colon returns the node of what stands between a name and its value.
func (b *builder) colon(to int32) int32 {
	return b.byte(':', b.split(to, b.byte(' ', to)))
}

// anyValue returns the rule of any JSON value.
func (b *builder) anyValue() int32 {
	if b.any >= 0 {
		return b.any
	}
	b.any = b.newRule("any JSON value")
	f := &facts{maxItems: -1, maxLength: -1, places: -1}
	object := b.members(nil, nil, b.any)
	array := b.list(nil, b.any, f)
	str := b.call(b.textRule(), end)
	num := b.plainNumber(-1, false)
	b.net.rules[b.any].start = b.split(object, array, str, num, b.texts([]string{"true", "false", "null"}, end))
	return b.any
}

// charRule returns the rule of one character inside a string.
func (b *builder) charRule() int32 {
	if b.char < 0 {
		b.chars = b.charNode()
		b.char = b.ruleOf("a character", b.chars)
	}
	return b.char
}

// textRule returns the rule of any string.
func (b *builder) textRule() int32 {
	if b.text < 0 {
		b.text = b.ruleOf("a string", b.byte('"', b.repeat(b.charRule(), 0, -1, b.byte('"', end))))
	}
	return b.text
}

func (b *builder) stringOf(f *facts) (int32, error) {
	if len(f.patterns) > 1 {
		return 0, fmt.Errorf("%s and %s hold together: one pattern or format is supported", quote(f.patterns[0].at.at()), quote(f.patterns[1].at.at()))
	}
	if len(f.patterns) == 0 {
		if f.minLength == 0 && f.maxLength < 0 {
			return b.call(b.textRule(), end), nil
		}
		if f.maxLength >= 0 && f.minLength > f.maxLength {
			return b.bytes(), nil
		}
		return b.byte('"', b.repeat(b.charRule(), f.minLength, f.maxLength, b.byte('"', end))), nil
	}
	p := f.patterns[0]
	start, err := b.regex(p.pattern, regexForm{json: true, search: p.search, min: f.minLength, max: f.maxLength}, b.byte('"', end))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", quote(p.at.at()), err)
	}
	return b.byte('"', start), nil
}

func (b *builder) arrayOf(f *facts) int32 {
	places := 0
	for _, a := range f.arrays {
		places = max(places, len(a.first))
	}
	item := func(i int) []*value {
		var list []*value
		for _, a := range f.arrays {
			if i < len(a.first) {
				list = append(list, a.first[i])
			} else if a.rest != nil {
				list = append(list, a.rest)
			}
		}
		return list
	}
	first := make([]int32, places)
	for i := range first {
		first[i] = b.schema(item(i)) // of some schema that has a place i
	}
	rest := b.anyOrSchema(item(places))
	return b.list(first, rest, f)
}

func (b *builder) anyOrSchema(list []*value) int32 {
	if len(list) == 0 {
		return b.anyValue()
	}
	return b.schema(list)
}

// list returns the start of an array: first, then any number of rest, as many as f allows.
func (b *builder) list(first []int32, rest int32, f *facts) int32 {
	if f.maxItems >= 0 && f.minItems > f.maxItems {
		return b.bytes()
	}
	closing := b.byte(']', end)
	spaced := b.spaced(closing)
	k := len(first)
	if f.maxItems >= 0 {
		k = min(k, f.maxItems)
	}
	// after is where an item may end the list or be followed.
	after := spaced
	if f.maxItems < 0 || f.maxItems > k {
		begun := max(k, 1) // the first of rest has no comma if there is no first
		more := b.ruleOf("an item", b.byte(',', b.spaced(b.nest(rest, end))))
		most := -1
		if f.maxItems >= 0 {
			most = f.maxItems - begun
		}
		after = b.repeat(more, max(0, f.minItems-begun), most, spaced)
		if k == 0 {
			after = b.nest(rest, after)
		}
	}
	for i := k - 1; i >= 0; i-- {
		item := b.nest(first[i], after)
		if after = item; i > 0 {
			if after = b.byte(',', b.spaced(item)); i >= f.minItems {
				after = b.split(spaced, after)
			}
		}
	}
	switch {
	case f.maxItems == 0:
		after = closing
	case f.minItems == 0:
		after = b.split(closing, after)
	}
	return b.byte('[', b.spaced(after))
}

// member is a property that is declared.
type member struct {
	name     string
	rule     int32
	required bool
}

func (b *builder) objectOf(f *facts) (int32, error) {
	var names []string
	known := map[string]bool{}
	note := func(list []string) {
		for _, name := range list {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	for _, o := range f.objects {
		note(o.names)
	}
	declared := len(names)
	note(f.required)
	if len(names) > propertiesMost {
		return 0, fmt.Errorf("%s has %d properties, allowed are %d", quote(f.at.at()), len(names), propertiesMost)
	}
	required := map[string]bool{}
	for _, name := range f.required {
		required[name] = true
	}
	more := b.extra(f)
	var members []member
	for i, name := range names {
		if i >= declared && more < 0 && f.saysMore() {
			return 0, fmt.Errorf("%s requires %s, which its properties lack and additionalProperties forbids", quote(f.at.at()), quote(name))
		}
		members = append(members, member{name, b.property(f, name), required[name]})
	}
	exclude := names
	return b.members(members, exclude, more), nil
}

// property returns the rule of the value of a name: all schemas that speak of it hold.
func (b *builder) property(f *facts, name string) int32 {
	var list []*value
	for i := range f.objects {
		o := &f.objects[i]
		if k := slices.Index(o.names, name); k >= 0 {
			list = append(list, o.props[k])
		} else if o.more != nil {
			list = append(list, o.more)
		}
	}
	return b.anyOrSchema(list)
}

func (f *facts) saysMore() bool {
	return f.closed || slices.ContainsFunc(f.objects, func(o objectFacts) bool { return o.more != nil })
}

// extra returns the rule of members that are not declared, -1 if there may be none. If nothing
// says so, there may be if no property is declared either, or the Spec is loose.
func (b *builder) extra(f *facts) int32 {
	var list []*value
	declares := false
	for _, o := range f.objects {
		declares = declares || o.said
		if o.more != nil {
			list = append(list, o.more)
		}
	}
	switch {
	case f.closed || slices.ContainsFunc(list, func(v *value) bool { return v.kind == 'f' }):
		return -1
	case len(list) > 0:
		return b.schema(list)
	case declares && !b.loose:
		return -1
	}
	return b.anyValue()
}

// members returns the start of an object: members in their order, those not required may be left
// out, then others with names that are not in exclude and values of the rule more (-1: none).
func (b *builder) members(members []member, exclude []string, more int32) int32 {
	closing := b.byte('}', end)
	begun, fresh := b.spaced(closing), closing // after a member; before any
	if more >= 0 {
		name := b.ruleOf("a name", b.otherName(exclude, b.colon(b.nest(more, end))))
		begun = b.repeat(b.ruleOf("a member", b.byte(',', b.spaced(b.call(name, end)))), 0, -1, begun)
		fresh = b.split(closing, b.call(name, begun))
	}
	for i := len(members) - 1; i >= 0; i-- {
		m := members[i]
		it := b.net.text(string(appendString(nil, m.name)), b.colon(b.nest(m.rule, begun)))
		next := b.byte(',', b.spaced(it))
		if m.required {
			begun, fresh = next, it
		} else {
			begun, fresh = b.split(next, begun), b.split(it, fresh)
		}
	}
	return b.byte('{', b.spaced(fresh))
}

func (b *builder) numberOf(f *facts) (int32, error) {
	whole := f.types&typeNumber == 0 || f.places == 0
	places := f.places
	if whole {
		places = 0
	}
	if f.low == nil && f.high == nil {
		return b.plainNumber(places, whole), nil
	}
	low, high := f.low, f.high
	if low == nil {
		low = &bound{value: new(big.Rat).Neg(numberMost), strict: true}
	}
	if high == nil {
		high = &bound{value: numberMost, strict: true}
	}
	for _, x := range []*bound{low, high} {
		if x == low && x.value.Cmp(numberMost) >= 0 || x == high && x.value.Cmp(new(big.Rat).Neg(numberMost)) <= 0 {
			return 0, fmt.Errorf("%s is beyond the numbers that are written: they have at most %d digits before the point", quote(x.at.at()), wholeMost)
		}
		if !whole && !fewPlaces(x.value) {
			return 0, fmt.Errorf("%s has more than %d digits after the point", quote(x.at.at()), fractionMost)
		}
	}
	if whole {
		return b.integers(low, high), nil
	}
	return b.decimals(low, high, places), nil
}
