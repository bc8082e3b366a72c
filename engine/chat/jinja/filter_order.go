package jinja

import (
	"errors"
	"fmt"
	"slices"
)

// sorted sorts by keys, keeping the order of equal ones; it counts what it compares.
func (r *run) sorted(entries []entry, key func(entry) Value, reverse bool) ([]entry, error) {
	err := r.pay(itemBytes * len(entries))
	if err != nil {
		return nil, err
	}
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b entry) int {
		if err != nil {
			return 0
		}
		if reverse {
			a, b = b, a
		}
		ok, e := r.less(key(a), key(b), 0)
		if e == nil && ok {
			return -1
		}
		if e == nil {
			ok, e = r.less(key(b), key(a), 0)
		}
		if err = e; ok {
			return 1
		}
		return 0
	})
	return out, err
}

// folded is a key without case, unless asked for.
func (r *run) folded(v, sensitive Value) (Value, error) {
	if t, ok := v.(Text); ok && (sensitive == nil || !truth(sensitive)) {
		return recase(lowered).of(r, t)
	}
	return v, nil
}

// keyed pairs items with what they are compared by, which is missing where they have no attribute.
func (r *run) keyed(v, attr, missing, sensitive Value) ([]entry, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if err := r.pay(itemBytes * len(items)); err != nil {
		return nil, err
	}
	out := make([]entry, len(items))
	for i, x := range items {
		k := x
		if attr != nil {
			if _, none := attr.(none); !none {
				if k, err = r.path(x, attr); err != nil {
					return nil, err
				}
			}
		}
		if _, none := k.(undef); none && missing != nil {
			k = missing
		}
		if k, err = r.folded(k, sensitive); err != nil {
			return nil, err
		}
		out[i] = entry{k, x}
	}
	return out, nil
}

func entryKey(e entry) Value { return e.key }

func values(entries []entry) []Value {
	out := make([]Value, len(entries))
	for i, e := range entries {
		out[i] = e.value
	}
	return out
}

func sorted(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("sort", "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	all, err := r.keyed(v, p[2], nil, p[1])
	if err != nil {
		return nil, err
	}
	all, err = r.sorted(all, entryKey, p[0] != nil && truth(p[0]))
	return &List{items: values(all)}, err
}

func dictsort(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("dictsort", "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("'%s' has no attribute 'items'", objectName(v))
	}
	byValue := false
	if t, ok := p[1].(Text); ok {
		byValue = t.s == "value"
	}
	pairs, err := r.pairs(d.entries)
	if err != nil {
		return nil, err
	}
	all := make([]entry, len(d.entries))
	for i, e := range d.entries {
		k := e.key
		if byValue {
			k = e.value
		}
		if k, err = r.folded(k, p[0]); err != nil {
			return nil, err
		}
		all[i] = entry{k, pairs.items[i]}
	}
	all, err = r.sorted(all, entryKey, p[2] != nil && truth(p[2]))
	return &List{items: values(all)}, err
}

func unique(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("unique", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	all, err := r.keyed(v, p[1], nil, p[0])
	if err != nil {
		return nil, err
	}
	seen := NewDict()
	out := &List{gen: true}
	for _, e := range all {
		_, known, err := r.get(seen, e.key)
		if err != nil {
			return nil, err
		}
		if !known {
			seen.put(e.key, none{})
			out.items = append(out.items, e.value)
		}
	}
	return out, nil
}

func groupby(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("groupby", "attribute", "default", "case_sensitive")
	if err != nil || p[0] == nil {
		return nil, errors.Join(err, errors.New("groupby needs an attribute"))
	}
	all, err := r.keyed(v, p[0], p[1], p[2])
	if err != nil {
		return nil, err
	}
	if all, err = r.sorted(all, entryKey, false); err != nil {
		return nil, err
	}
	if err := r.pay(2 * pairBytes * len(all)); err != nil {
		return nil, err
	}
	out := &List{}
	var group *List
	for i, e := range all {
		same := false
		if i > 0 {
			if same, err = r.equal(all[i-1].key, e.key); err != nil {
				return nil, err
			}
		}
		if !same { // it is called as its first item says, not folded
			first, err := r.path(e.value, p[0])
			if err != nil {
				return nil, err
			}
			if _, none := first.(undef); none && p[1] != nil {
				first = p[1]
			}
			group = &List{}
			out.items = append(out.items, &List{items: []Value{first, group}, tuple: true})
		}
		group.items = append(group.items, e.value)
	}
	return out, nil
}

// extreme is min, or max.
func extreme(least bool) filter {
	return func(r *run, v Value, a arguments) (Value, error) {
		p, err := a.named("min or max", "case_sensitive", "attribute")
		if err != nil {
			return nil, err
		}
		all, err := r.keyed(v, p[1], nil, p[0])
		if err != nil || len(all) == 0 {
			return undef{"No aggregated item, sequence was empty."}, err
		}
		best := all[0]
		for _, e := range all[1:] {
			x, y := best.key, e.key
			if least {
				x, y = y, x
			}
			better, err := r.less(x, y, 0)
			if err != nil {
				return nil, err
			}
			if better {
				best = e
			}
		}
		return best.value, nil
	}
}
