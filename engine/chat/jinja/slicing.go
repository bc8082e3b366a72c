package jinja

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// slice is of[from:to:step].
func (r *run) slice(of Value, at [3]*int64) (Value, error) {
	step := int64(1)
	if at[2] != nil {
		if step = *at[2]; step == 0 {
			return nil, errors.New("slice step cannot be zero")
		}
	}
	switch v := of.(type) {
	case *List:
		if v.gen {
			break
		}
		out := &List{tuple: v.tuple, client: v.client}
		from, to, step := bounds(int64(len(v.items)), at[0], at[1], step)
		if err := r.pay(itemBytes * int(span(from, to, step))); err != nil {
			return nil, err
		}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			out.items = append(out.items, v.items[i])
		}
		return out, nil
	case Text:
		return r.sliceText(v, at, step)
	case undef:
		return nil, errors.New(v.what)
	}
	return undef{fmt.Sprintf("'%s' object is not subscriptable", typeName(of))}, nil
}

// span is how many items bounds go through.
func span(from, to, step int64) int64 {
	if step > 0 {
		return max(0, (to-from+step-1)/step)
	}
	return max(0, (from-to-step-1)/-step)
}

// bounds are Python's of a slice over n items. The step is cut to what leads out of them, so that
// nothing that is computed with all three can overflow (J4).
func bounds(n int64, a, b *int64, by int64) (from, to, step int64) {
	clip := func(p *int64, otherwise, low, high int64) int64 {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return max(low, min(i, high))
	}
	step = max(-n-1, min(by, n+1))
	if step > 0 {
		return clip(a, 0, 0, n), clip(b, n, 0, n), step
	}
	return clip(a, n-1, -1, n-1), clip(b, -1, -1, n-1), step
}

// sliceText slices by characters.
func (r *run) sliceText(t Text, at [3]*int64, step int64) (Value, error) {
	if err := r.pay(t.size() + itemBytes); err != nil {
		return nil, err
	}
	offsets, n := []int(nil), int64(len(t.s))
	if !ascii(t.s) {
		if err := r.pay(8 * len(t.s)); err != nil {
			return nil, err
		}
		for i := 0; i < len(t.s); i += runeLen(t.s[i:]) {
			offsets = append(offsets, i)
		}
		n = int64(len(offsets))
		offsets = append(offsets, len(t.s))
	}
	offset := func(i int64) int {
		if offsets == nil {
			return int(i)
		}
		return offsets[i]
	}
	from, to, step := bounds(n, at[0], at[1], step)
	if step == 1 {
		if from >= to {
			return Text{}, nil
		}
		return t.Slice(offset(from), offset(to)), nil
	}
	b := r.builder()
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		b.add(t.Slice(offset(i), offset(i+1)))
	}
	return b.value()
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// runeLen is the length of the first character of s, 1 for a byte that is none.
func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
