package grammar

import (
	"fmt"
	"slices"
)

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
		b.spend(3 * len(list))
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
	if b.err != nil {
		return 0, b.err
	}
	lookups := make([]map[string]*value, len(f.objects))
	for i, o := range f.objects {
		b.spend(4 + 3*len(o.names))
		lookups[i] = make(map[string]*value, len(o.names))
		for k, name := range o.names {
			lookups[i][name] = o.props[k]
		}
	}
	var members []member
	for i, name := range names {
		if !b.spend(4 + len(f.objects) + len(name)/8) {
			return 0, b.err
		}
		if i >= declared && more < 0 && f.saysMore() {
			return 0, fmt.Errorf("%s requires %s, which its properties lack and additionalProperties forbids", quote(f.at.at()), quote(name))
		}
		members = append(members, member{name, b.property(f, lookups, name), required[name]})
	}
	return b.members(members, names, more), nil
}

// property returns the rule of the value of a name: all schemas that speak of it hold.
func (b *builder) property(f *facts, lookups []map[string]*value, name string) int32 {
	var list []*value
	for i := range f.objects {
		o := &f.objects[i]
		if v := lookups[i][name]; v != nil {
			list = append(list, v)
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
	over := b.spaced(closing) // nothing but the end of the object
	after := over             // after the last member
	following := int32(-1)    // the next name behind its quote, -1 if there is none
	must := false             // one of the members to come is required
	if more >= 0 {
		name := b.ruleOf("a name", b.otherName(exclude, b.colon(b.nest(more, end))))
		after = b.repeat(b.ruleOf("a member", b.byte(',', b.spaced(b.byte('"', b.call(name, end))))), 0, -1, over)
		following = b.call(name, after)
	}
	// It goes from the last member to the first. One comma and one quote lead to all that may follow,
	// so that only inside names a text is at as many places as there are (G3).
	for i := len(members) - 1; i >= 0 && b.err == nil; i-- {
		m := members[i]
		if following >= 0 && i < len(members)-1 {
			after = b.byte(',', b.spaced(b.byte('"', following)))
			if !must {
				after = b.split(over, after)
			}
		}
		it := b.net.text(string(appendString(nil, m.name)[1:]), b.colon(b.nest(m.rule, after)))
		if following < 0 || m.required {
			following = it
		} else {
			following = b.split(it, following)
		}
		must = must || m.required
	}
	if following < 0 {
		return b.byte('{', b.spaced(closing))
	}
	first := b.byte('"', following)
	if !must {
		first = b.split(closing, first)
	}
	return b.byte('{', b.spaced(first))
}
