package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// filter is what stands behind "|".
type filter func(r *run, v Value, a arguments) (Value, error)

// filters by name. Those of Jinja2 that make HTML or random things are left out.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": absolute, "attr": attrFilter, "batch": batch, "capitalize": recase(capitalize).filter(), "center": center,
		"count": length, "d": otherwise, "default": otherwise, "dictsort": dictsort, "e": escape, "escape": escape,
		"first": first, "float": toFloat, "forceescape": escape, "groupby": groupby, "indent": indent, "int": toInt,
		"items": itemsFilter, "join": joined, "last": last, "length": length, "list": toList, "lower": recase(lowered).filter(),
		"map": mapped, "max": extreme(false), "min": extreme(true), "reject": selecting(true, false),
		"rejectattr": selecting(true, true), "replace": replace, "reverse": reversed, "round": rounded, "safe": safe,
		"select": selecting(false, false), "selectattr": selecting(false, true), "slice": sliced, "sort": sorted,
		"string": toText, "sum": sum, "title": recase(title).filter(), "tojson": tojson, "trim": trim, "truncate": truncate,
		"unique": unique, "upper": recase(raised).filter(), "wordcount": wordcount, "format": formatFilter,
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
		i := slices.Index(names, k.name.s)
		if i < 0 {
			return nil, fmt.Errorf("%s got an unexpected keyword argument '%s'", f, k.name.s)
		}
		if out[i] != nil {
			return nil, fmt.Errorf("%s got multiple values for argument '%s'", f, k.name.s)
		}
		out[i] = k.value
	}
	return out, nil
}

func safe(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	t.markup = true
	return t, err
}

func toText(r *run, v Value, _ arguments) (Value, error) { return r.str(v) }

func escape(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return r.escaped(t)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escaped is t as markup.
func (r *run) escaped(t Text) (Text, error) {
	if t.markup {
		return t, nil
	}
	t, err := r.mapped(t, htmlEscapes.Replace)
	t.markup = true
	return t, err
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

func first(r *run, v Value, _ arguments) (Value, error) { return r.end(v, "first", 0) }

func last(r *run, v Value, _ arguments) (Value, error) { return r.end(v, "last", -1) }

// end is the item at the begin or the end. Of a text it is cut out, not all of its characters made.
func (r *run) end(v Value, which string, at int64) (Value, error) {
	if t, ok := v.(Text); ok && t.s != "" {
		return r.item(t, integer{v: at})
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return undef{fmt.Sprintf("No %s item, sequence was empty.", which)}, nil
	}
	if at < 0 {
		at += int64(len(items))
	}
	return items[at], nil
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
		l, err := r.pairs(v.entries)
		if err != nil {
			return nil, err
		}
		l.gen = true
		return l, nil
	}
	return nil, errors.New("Can only get item pairs from a mapping.")
}

// pairBytes is what a list of two items costs in a list.
const pairBytes = 4 * itemBytes

// pairs of a dict.
func (r *run) pairs(entries []entry) (*List, error) {
	if err := r.pay(pairBytes * len(entries)); err != nil {
		return nil, err
	}
	out := &List{items: make([]Value, len(entries))}
	for i, e := range entries {
		out.items[i] = &List{items: []Value{e.key, e.value}, tuple: true}
	}
	return out, nil
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
	if err := r.pay(itemBytes * len(items)); err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{items: items, gen: true}, nil
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
	return undef{fmt.Sprintf("'%s' has no attribute '%s'", objectName(v), short(t.s))}, nil
}

// natural returns a count among a filter's arguments, or what is there without.
func natural(v Value, without int) (int, error) {
	if v == nil {
		return without, nil
	}
	n, ok := whole(v)
	if !ok || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("a count of at most %d is needed, not %s", math.MaxInt32, typeName(v))
	}
	return int(n), nil
}
