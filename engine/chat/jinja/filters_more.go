package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

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

func toInt(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("int", "default", "base")
	if err != nil {
		return nil, err
	}
	var missing Value = integer{}
	if p[0] != nil {
		missing = p[0]
	}
	base, err := natural(p[1], 10)
	if err != nil || base > 36 {
		return missing, err
	}
	switch v := v.(type) {
	case integer:
		return v, nil
	case float:
		if math.Abs(v.v) < 1<<63 {
			return integer{v: int64(v.v), client: v.client}, nil
		}
	case Text:
		s := strings.ReplaceAll(trimLeft(trimRight(v.s)), "_", "")
		if n, err := strconv.ParseInt(s, base, 64); err == nil {
			return integer{v: n, client: v.fromClient()}, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 && base == 10 {
			return integer{v: int64(f), client: v.fromClient()}, nil
		}
	case boolean:
		n, _ := whole(v)
		return integer{v: n, client: v.client}, nil
	}
	return missing, nil
}

func toFloat(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("float", "default")
	if err != nil {
		return nil, err
	}
	if f, ok := asNumber(v); ok {
		return float{f, fromClient(v)}, nil
	}
	if t, ok := v.(Text); ok {
		if f, err := strconv.ParseFloat(trimLeft(trimRight(t.s)), 64); err == nil {
			return float{f, t.fromClient()}, nil
		}
	}
	if p[0] != nil {
		return p[0], nil
	}
	return float{}, nil
}

func round_(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("round", "precision", "method")
	if err != nil {
		return nil, err
	}
	x, ok := asNumber(v)
	if !ok {
		return nil, fmt.Errorf("type %s doesn't define __round__ method", typeName(v))
	}
	digits, err := natural(p[0], 0)
	if err != nil || digits > 300 {
		return nil, errors.New("round takes a precision of 0 to 300")
	}
	by := math.Pow(10, float64(digits))
	how := "common"
	if t, ok := p[1].(Text); ok {
		how = t.s
	}
	client := fromClient(v)
	switch how {
	case "common":
		if _, ok := whole(v); ok {
			return v, nil
		}
		f, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64) // half to even, as Python
		return float{f, client}, err
	case "ceil":
		return float{math.Ceil(x*by) / by, client}, nil
	case "floor":
		return float{math.Floor(x*by) / by, client}, nil
	}
	return nil, errors.New("method must be common, ceil or floor")
}

func replace(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("replace", "old", "new", "count")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil || p[0] == nil || p[1] == nil {
		return nil, errors.Join(err, errors.New("replace takes an old and a new text"))
	}
	old, err := r.str(p[0])
	if err != nil {
		return nil, err
	}
	new, err := r.str(p[1])
	if err != nil {
		return nil, err
	}
	return r.replaced(t, old.s, new, p[2])
}

// replaced puts new in the place of old, count times at most.
func (r *run) replaced(t Text, old string, new Text, count Value) (Value, error) {
	n := int64(-1)
	if count != nil {
		if _, none := count.(none); !none {
			var ok bool
			if n, ok = whole(count); !ok {
				return nil, fmt.Errorf("'%s' object cannot be interpreted as an integer", typeName(count))
			}
		}
	}
	var b builder
	at := 0
	for from := 0; n != 0; n-- {
		i := strings.Index(t.s[from:], old)
		if i < 0 {
			break
		}
		if err := r.pay(i + new.size() + 8); err != nil {
			return nil, err
		}
		b.add(t.Slice(at, from+i))
		b.add(new)
		at = from + i + len(old)
		from = at
		if old == "" {
			if at == len(t.s) {
				break
			}
			from += runeLen(t.s[at:])
		}
	}
	b.add(t.Slice(at, len(t.s)))
	return b.text(), nil
}

func indent(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("indent", "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	by, ok := p[0].(Text)
	if !ok {
		n, err := natural(p[0], 4)
		if err != nil || n > 1000 {
			return nil, errors.New("indent takes a text or a width of at most 1000")
		}
		by = Text{s: strings.Repeat(" ", n)}
	}
	t = concat(t, Text{s: "\n"})
	var b builder
	for i, line := range lines(t, false) {
		if i > 0 {
			b.lit("\n")
		}
		if i == 0 && p[1] != nil && truth(p[1]) || i > 0 && (line.s != "" || p[2] != nil && truth(p[2])) {
			b.add(by)
		}
		if err := r.pay(line.size() + by.size() + 1); err != nil {
			return nil, err
		}
		b.add(line)
	}
	return b.text(), nil
}

func center(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("center", "width")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 80)
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return r.padded(t, n, Text{s: " "}, func(n, width int) int { return n/2 + n&width&1 })
}

// padded fills t up to n characters; left says how many of the missing go in front.
func (r *run) padded(t Text, n int, fill Text, left func(missing, width int) int) (Value, error) {
	have := 0
	for i := 0; i < len(t.s); i += runeLen(t.s[i:]) {
		have++
	}
	if have >= n {
		return t, nil
	}
	l := left(n-have, n)
	front, err := r.repeat(fill, integer{v: int64(l)})
	if err != nil {
		return nil, err
	}
	back, err := r.repeat(fill, integer{v: int64(n - have - l)})
	if err != nil {
		return nil, err
	}
	return concat(concat(front.(Text), t), back.(Text)), nil
}

func truncate(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("truncate", "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 255)
	if err != nil {
		return nil, err
	}
	leeway, err := natural(p[3], 5)
	if err != nil {
		return nil, err
	}
	end := Text{s: "..."}
	if e, ok := p[2].(Text); ok {
		end = e
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	size, _ := length(r, t, arguments{})
	endSize, _ := length(r, end, arguments{})
	if size.(integer).v <= int64(n+leeway) {
		return t, nil
	}
	to := int64(n) - endSize.(integer).v
	if to < 0 {
		return nil, fmt.Errorf("expected length >= %d, got %d", endSize.(integer).v, n)
	}
	cut, err := r.slice(t, [3]*int64{nil, &to, nil})
	if err != nil {
		return nil, err
	}
	out := cut.(Text)
	if p[1] == nil || !truth(p[1]) {
		if i := strings.LastIndexByte(out.s, ' '); i >= 0 {
			out = out.Slice(0, i)
		}
	}
	return concat(out, end), nil
}

func wordcount(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	n := len(strings.FieldsFunc(t.s, func(c rune) bool { return !isWord(c) }))
	return integer{v: int64(n), client: t.fromClient()}, err
}

// sorted sorts by keys, keeping the order of equal ones; it counts what it compares.
func (r *run) sorted(entries []entry, key func(entry) Value, reverse bool) ([]entry, error) {
	var err error
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
	return out, errors.Join(err, r.pay(2*itemBytes*len(out)))
}

// folded is a key without case, unless asked for.
func folded(v, sensitive Value) Value {
	if t, ok := v.(Text); ok && (sensitive == nil || !truth(sensitive)) {
		return t.mapped(strings.ToLower)
	}
	return v
}

// keyed pairs items with what they are compared by.
func (r *run) keyed(v, attr, sensitive Value) ([]entry, error) {
	items, err := r.items(v)
	if err != nil {
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
		out[i] = entry{folded(k, sensitive), x}
	}
	return out, nil
}

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
	all, err := r.keyed(v, p[2], p[1])
	if err != nil {
		return nil, err
	}
	all, err = r.sorted(all, func(e entry) Value { return e.key }, p[0] != nil && truth(p[0]))
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
	by := func(e entry) Value { return folded(e.key, p[0]) }
	if t, ok := p[1].(Text); ok && t.s == "value" {
		by = func(e entry) Value { return folded(e.value, p[0]) }
	}
	all, err := r.sorted(d.entries, by, p[2] != nil && truth(p[2]))
	return pairs(&Dict{entries: all}), err
}

func unique(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("unique", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	all, err := r.keyed(v, p[1], p[0])
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	out := &List{gen: true}
	for _, e := range all {
		h, ok := hash(e.key)
		if !ok {
			return nil, fmt.Errorf("unhashable type: '%s'", typeName(e.key))
		}
		if !seen[h] {
			seen[h] = true
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
	all, err := r.keyed(v, p[0], boolean{v: true})
	if err != nil {
		return nil, err
	}
	if all, err = r.sorted(all, func(e entry) Value { return e.key }, false); err != nil {
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
		if !same {
			group = &List{}
			out.items = append(out.items, &List{items: []Value{e.key, group}, tuple: true})
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
		all, err := r.keyed(v, p[1], p[0])
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

// batch parts items into lists of n.
func batch(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("batch", "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 0)
	items, err2 := r.items(v)
	if err = errors.Join(err, err2); err != nil || n == 0 {
		return nil, errors.Join(err, errors.New("batch needs a count"))
	}
	out := &List{gen: true}
	for chunk := range slices.Chunk(items, n) {
		l := slices.Clone(chunk)
		if err := r.pay(itemBytes * n); err != nil {
			return nil, err
		}
		for p[1] != nil && len(l) < n {
			l = append(l, p[1])
		}
		out.items = append(out.items, &List{items: l})
	}
	return out, nil
}

// sliced parts items into n lists.
func sliced(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("slice", "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 0)
	items, err2 := r.items(v)
	if err = errors.Join(err, err2); err != nil || n == 0 {
		return nil, errors.Join(err, errors.New("slice needs a count"))
	}
	if err := r.pay(itemBytes * n); err != nil {
		return nil, err
	}
	out := &List{gen: true}
	size, more := len(items)/n, len(items)%n
	for i := range n {
		k := size
		if i < more {
			k++
		}
		l := slices.Clone(items[:k])
		items = items[k:]
		if p[1] != nil && more > 0 && i >= more {
			l = append(l, p[1])
		}
		out.items = append(out.items, &List{items: l})
	}
	return out, nil
}
