package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

const (
	// heldMost bounds the schemas of which all hold for one value: an allOf of so many, with all that
	// they refer to.
	heldMost = 256
	// rulesMost bounds how many schemas (each with all that it is merged with) are built.
	rulesMost = 1 << 14
	// propertiesMost bounds the properties of one object: each may be the next one to come, so a state
	// has as many places (see placesMost).
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
	nested int

	white, text, char, any int32            // rules that all share; -1 not built yet
	classes                map[string]int32 // rules of characters, by the set
	patterns               map[string]int32 // rules of strings with a pattern or format
}

type pending struct {
	rule int32
	list []*value
}

func newBuilder(n *net) *builder {
	return &builder{net: n, rules: map[string]int32{}, white: -1, text: -1, char: -1, any: -1, classes: map[string]int32{}, patterns: map[string]int32{}}
}

// document returns the rule of a schema. at names it in messages.
func (b *builder) document(raw []byte, loose bool) (int32, error) {
	root, err := parseSchema(raw, b.net)
	if err != nil {
		return 0, err
	}
	b.root, b.loose = root, loose
	b.rules = map[string]int32{} // ids count from 0 in each document
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
	if !b.spend(4 + 2*len(list)) {
		return 0
	}
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
	if len(list) > heldMost {
		b.tooMany(list[0])
		return 0
	}
	b.spend(4)
	r := b.newRule("")
	b.net.rules[r].of = list[0]
	b.rules[string(key)] = r
	b.todo = append(b.todo, pending{r, list})
	return r
}

func (b *builder) tooMany(v *value) {
	b.fail("%w: at %s more than %d schemas hold together; write fewer", errTooLarge, quote(v.at()), heldMost)
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
	b.spend(1 + len(list[0].names)/8)
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
		to, err := b.root.resolve(b.net, v.text)
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
	if b.err != nil {
		return nil, b.err
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
