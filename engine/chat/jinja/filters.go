package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// filter is what stands behind "|".
type filter func(r *run, v Value, a arguments) (Value, error)

// filters by name. Those of Jinja2 that make HTML or random things are left out.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": absolute, "attr": attrFilter, "batch": batch, "capitalize": onText(capitalize), "center": center,
		"count": length, "d": otherwise, "default": otherwise, "dictsort": dictsort, "e": escape, "escape": escape,
		"first": first, "float": toFloat, "forceescape": escape, "groupby": groupby, "indent": indent, "int": toInt,
		"items": itemsFilter, "join": joined, "last": last, "length": length, "list": toList, "lower": onText(strings.ToLower),
		"map": mapped, "max": extreme(false), "min": extreme(true), "reject": selecting(true, false),
		"rejectattr": selecting(true, true), "replace": replace, "reverse": reversed, "round": round_, "safe": safe,
		"select": selecting(false, false), "selectattr": selecting(false, true), "slice": sliced, "sort": sorted,
		"string": toText, "sum": sum, "title": onText(title), "tojson": tojson, "trim": trim, "truncate": truncate,
		"unique": unique, "upper": onText(strings.ToUpper), "wordcount": wordcount, "format": formatFilter,
	}
}

// named returns the arguments in the order of names, nil where there is none.
func (a arguments) named(f string, names ...string) ([]Value, error) {
	out := make([]Value, len(names))
	if len(a.pos) > len(names) {
		return nil, fmt.Errorf("%s takes at most %d arguments (%d given)", f, len(names), len(a.pos))
	}
	copy(out, a.pos)
	for _, k := range a.kw {
		i := slices.Index(names, k.name)
		if i < 0 {
			return nil, fmt.Errorf("%s got an unexpected keyword argument '%s'", f, k.name)
		}
		if out[i] != nil {
			return nil, fmt.Errorf("%s got multiple values for argument '%s'", f, k.name)
		}
		out[i] = k.value
	}
	return out, nil
}

// onText applies f to the stretches of a text.
func onText(f func(string) string) filter {
	return func(r *run, v Value, _ arguments) (Value, error) {
		t, err := r.str(v)
		return t.mapped(f), err
	}
}

func safe(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	t.markup = true
	return t, err
}

func toText(r *run, v Value, _ arguments) (Value, error) { return r.str(v) }

func capitalize(s string) string {
	for i, c := range s {
		return string(unicode.ToTitle(c)) + strings.ToLower(s[i+len(string(c)):])
	}
	return s
}

// title is Jinja2's: words part at white space and -([{<.
func title(s string) string {
	start := true
	return strings.Map(func(c rune) rune {
		was := start
		start = IsSpace(c) || strings.ContainsRune("-([{<", c)
		if was {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func escape(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	return t.escaped(), err
}

// escaped is t as markup.
func (t Text) escaped() Text {
	if t.markup {
		return t
	}
	t = t.mapped(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace)
	t.markup = true
	return t
}

func trim(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("trim", "chars")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return stripped(t, p[0], true, true)
}

func length(_ *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case Text:
		n := 0
		for i := 0; i < len(v.s); i += runeLen(v.s[i:]) {
			n++
		}
		return integer{v: int64(n), client: v.fromClient()}, nil
	case *List:
		if !v.gen {
			return integer{v: int64(len(v.items)), client: v.client}, nil
		}
		return nil, errors.New("object of type 'generator' has no len()")
	case *Dict:
		return integer{v: int64(len(v.entries)), client: v.client}, nil
	case undef:
		return integer{}, nil
	}
	return nil, fmt.Errorf("object of type '%s' has no len()", typeName(v))
}

func otherwise(_ *run, v Value, a arguments) (Value, error) {
	p, err := a.named("default", "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	_, undefined := v.(undef)
	if undefined || p[1] != nil && truth(p[1]) && !truth(v) {
		if p[0] == nil {
			return Text{}, nil
		}
		return p[0], nil
	}
	return v, nil
}

func first(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil || len(items) > 0 {
		if err != nil {
			return nil, err
		}
		return items[0], nil
	}
	return undef{"No first item, sequence was empty."}, nil
}

func last(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil || len(items) > 0 {
		if err != nil {
			return nil, err
		}
		return items[len(items)-1], nil
	}
	return undef{"No last item, sequence was empty."}, nil
}

func toList(r *run, v Value, _ arguments) (Value, error) {
	items, err := r.items(v)
	return &List{items: items}, err
}

func itemsFilter(r *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case undef:
		return &List{gen: true}, nil
	case *Dict:
		l := pairs(v)
		l.gen = true
		return l, nil
	}
	return nil, errors.New("Can only get item pairs from a mapping.")
}

// pairs of a dict.
func pairs(d *Dict) *List {
	out := &List{}
	for _, e := range d.entries {
		out.items = append(out.items, &List{items: []Value{e.key, e.value}, tuple: true})
	}
	return out
}

func reversed(r *run, v Value, _ arguments) (Value, error) {
	if t, ok := v.(Text); ok {
		back := int64(-1)
		return r.slice(t, [3]*int64{nil, nil, &back})
	}
	items, err := r.items(v)
	if err != nil {
		return nil, errors.New("argument must be iterable")
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{items: items, gen: true}, nil
}

// path returns the attribute that a filter looks at: "a.b.0".
func (r *run) path(v, attr Value) (Value, error) {
	t, ok := attr.(Text)
	if !ok {
		return r.item(v, attr)
	}
	for part := range strings.SplitSeq(t.s, ".") {
		var key Value = Text{s: part}
		if n, rest := 0, strings.TrimLeft(part, "0123456789"); part != "" && rest == "" && len(part) < 9 {
			fmt.Sscan(part, &n)
			key = integer{v: int64(n)}
		}
		var err error
		if v, err = r.item(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func attrFilter(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("attr", "name")
	if err != nil {
		return nil, err
	}
	t, ok := p[0].(Text)
	if !ok {
		return nil, errors.New("attr needs the name of an attribute")
	}
	if x, ok := method(v, t.s); ok {
		return x, nil
	}
	return undef{fmt.Sprintf("'%s' has no attribute '%s'", objectName(v), t.s)}, nil
}

// mapped is map(attribute=…, default=…) or map("filter", …).
func mapped(r *run, v Value, a arguments) (Value, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var attr, missing Value
	for _, k := range a.kw {
		switch k.name {
		case "attribute":
			attr = k.value
		case "default":
			missing = k.value
		}
	}
	one := func(x Value) (Value, error) {
		y, err := r.path(x, attr)
		if _, none := y.(undef); none && missing != nil {
			return missing, err
		}
		return y, err
	}
	if len(a.pos) > 0 {
		t, _ := a.pos[0].(Text)
		f, ok := filters[t.s]
		if !ok {
			return nil, fmt.Errorf("No filter named '%s'.", t.s)
		}
		one = func(x Value) (Value, error) { return r.filter(f, t.s, x, arguments{a.pos[1:], a.kw}) }
	} else if attr == nil {
		return nil, errors.New("map requires a filter argument")
	}
	out := &List{gen: true}
	for _, x := range items {
		y, err := one(x)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, y)
	}
	return out, nil
}

// selecting is select, reject, selectattr and rejectattr.
func selecting(rejects, byAttr bool) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		var attr Value
		if byAttr {
			if len(a.pos) == 0 {
				return nil, errors.New("Missing parameter for attribute name")
			}
			attr, a.pos = a.pos[0], a.pos[1:]
		}
		is := func(_ *run, x Value, _ arguments) (bool, error) { return truth(x), nil }
		if len(a.pos) > 0 {
			t, _ := a.pos[0].(Text)
			f, ok := tests[t.s]
			if !ok {
				return nil, fmt.Errorf("No test named '%s'.", t.s)
			}
			is, a.pos = f, a.pos[1:]
		}
		out := &List{gen: true}
		for _, x := range items {
			if err := r.step(); err != nil {
				return nil, err
			}
			y := x
			if byAttr {
				if y, err = r.path(x, attr); err != nil {
					return nil, err
				}
			}
			ok, err := is(r, y, a)
			if err != nil {
				return nil, err
			}
			if ok != rejects {
				out.items = append(out.items, x)
			}
		}
		return out, nil
	}
}

func joined(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("join", "d", "attribute")
	if err != nil {
		return nil, err
	}
	var between Text
	if p[0] != nil {
		if between, err = r.str(p[0]); err != nil {
			return nil, err
		}
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var b builder
	for i, x := range items {
		if p[1] != nil {
			if x, err = r.path(x, p[1]); err != nil {
				return nil, err
			}
		}
		t, err := r.str(x)
		if err == nil {
			err = r.pay(t.size() + between.size())
		}
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.add(between)
		}
		b.add(t)
	}
	return b.text(), nil
}

func sum(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("sum", "attribute", "start")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var out Value = integer{}
	if p[1] != nil {
		out = p[1]
	}
	for _, x := range items {
		if p[0] != nil {
			if _, none := p[0].(none); !none {
				if x, err = r.path(x, p[0]); err != nil {
					return nil, err
				}
			}
		}
		if out, err = r.binary("+", out, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func absolute(_ *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case integer:
		if v.v < 0 && v.v != math.MinInt64 {
			v.v = -v.v
		}
		v.big = strings.TrimPrefix(v.big, "-")
		return v, nil
	case float:
		return float{math.Abs(v.v), v.client}, nil
	}
	if n, ok := whole(v); ok {
		return integer{v: n}, nil
	}
	return nil, fmt.Errorf("bad operand type for abs(): '%s'", typeName(v))
}
