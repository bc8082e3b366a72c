package grammar

func (b *builder) arrayOf(f *facts) int32 {
	places := 0
	for _, a := range f.arrays {
		places = max(places, len(a.first))
	}
	item := func(i int) []*value {
		list := make([]*value, 0, len(f.arrays))
		for _, a := range f.arrays {
			if i < len(a.first) {
				list = append(list, a.first[i])
			} else if a.rest != nil {
				list = append(list, a.rest)
			}
		}
		return list
	}
	var first []int32
	for i := range places {
		if !b.spend(2 + 2*len(f.arrays)) {
			return end
		}
		first = append(first, b.schema(item(i))) // of some schema that has a place i
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
	for i := k - 1; i >= 0 && b.err == nil; i-- {
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
