package grammar

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// given returns the start of values given in full.
func (b *builder) given(f *facts) ([]int32, error) {
	var list []string
	for _, v := range f.enum {
		units := 4
		if v.kind == '0' {
			units += 8
			if f.places >= 0 {
				units += 16
			}
			if len(v.text) > wholeMost || strings.ContainsAny(v.text, "eE") {
				units += 2 * numberWork // it is read twice
			}
		}
		if !b.spend(units + len(v.text)/16) {
			return nil, b.err
		}
		ok, err := f.fits(v)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, b.canonical(v))
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return []int32{b.texts(list, end)}, nil
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
		if f.places >= 0 && !new(big.Rat).Mul(r, power(f.places)).IsInt() {
			return false, nil
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
