package grammar

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// add takes one keyword in.
func (f *facts) add(n *net, in *value, name string, v *value) error {
	switch name {
	case "type":
		n.spend(len(v.items))
		return f.addType(v)
	case "enum":
		if v.kind != 'a' || len(v.items) == 0 {
			return wants(v, "a list of values")
		}
		f.limitEnum(n, v.items)
	case "const":
		f.limitEnum(n, []*value{v})
	case "properties", "required", "additionalProperties", "unevaluatedProperties":
		f.implied |= typeObject
		return f.addObject(n, in, name, v)
	case "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems":
		f.implied |= typeArray
		n.spend(2)
		return f.addArray(in, name, v)
	case "minLength", "maxLength", "pattern", "format":
		n.spend(4)
		return f.addString(name, v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		f.implied |= typeInteger | typeNumber
		n.spend(numberWork)
		return f.addNumber(name, v)
	default:
		if !ignored[name] && !strings.HasPrefix(name, "x-") {
			return fmt.Errorf("the keyword %s at %s is not supported", quote(name), quote(v.at()))
		}
	}
	return nil
}

func (f *facts) addType(v *value) error {
	list := []*value{v}
	if v.kind == 'a' {
		list = v.items
	}
	var set types
	for _, t := range list {
		is, ok := typeNames[t.text]
		if t.kind != 's' || !ok {
			return wants(v, "one or a list of object, array, string, number, integer, boolean, null")
		}
		set |= is
	}
	f.types &= set
	return nil
}

func (f *facts) addObject(n *net, in *value, name string, v *value) error {
	switch name {
	case "required":
		if v.kind != 'a' {
			return wants(v, "a list of names")
		}
		for _, r := range v.items {
			if r.kind != 's' {
				return wants(v, "a list of names")
			}
			if !n.spend(1) {
				return n.err
			}
			f.required = append(f.required, r.text)
		}
	case "properties":
		if v.kind != 'o' {
			return wants(v, "an object of schemas")
		}
		n.spend(6)
		f.objects = append(f.objects, objectFacts{said: true, names: v.names, props: v.items, more: in.others()})
	case "additionalProperties":
		if n.spend(6); in.get("properties") == nil {
			f.objects = append(f.objects, objectFacts{more: v})
		}
	case "unevaluatedProperties":
		if v.kind != 'f' {
			return fmt.Errorf("the keyword %s at %s is supported with false only", quote(name), quote(v.at()))
		}
		switch n.spend(6); {
		case in.get("additionalProperties") != nil: // which speaks of all others
		case in.applies():
			f.closed = true
		case in.get("properties") == nil:
			f.objects = append(f.objects, objectFacts{more: v})
		}
	}
	return nil
}

// others is the schema of members that v does not name, nil if it does not say. What v does not
// evaluate is forbidden by v alone: where others hold beside it, their members are forbidden too.
func (v *value) others() *value {
	if more := v.get("additionalProperties"); more != nil || v.applies() {
		return more
	}
	return v.get("unevaluatedProperties")
}

// applies says whether v has schemas inside of it that speak of the same value.
func (v *value) applies() bool {
	return v.get("$ref") != nil || v.get("allOf") != nil || v.get("anyOf") != nil || v.get("oneOf") != nil
}

func (f *facts) addArray(in *value, name string, v *value) (err error) {
	var n int
	switch name {
	case "minItems":
		n, err = v.count()
		f.minItems = max(f.minItems, n)
	case "maxItems":
		n, err = v.count()
		f.maxItems = least(f.maxItems, n)
	case "uniqueItems":
		if v.kind != 'f' {
			return fmt.Errorf("the keyword %s at %s is supported with false only", quote(name), quote(v.at()))
		}
	case "prefixItems":
		if v.kind != 'a' {
			return wants(v, "a list of schemas")
		}
		f.arrays = append(f.arrays, arrayFacts{first: v.items, rest: in.get("items")})
	case "items":
		if v.kind == 'a' { // the form of drafts before 2020-12
			f.arrays = append(f.arrays, arrayFacts{first: v.items, rest: in.get("additionalItems")})
		} else if in.get("prefixItems") == nil {
			f.arrays = append(f.arrays, arrayFacts{rest: v})
		}
	}
	return err
}

func (f *facts) addString(name string, v *value) (err error) {
	var n int
	switch name {
	case "minLength":
		n, err = v.count()
		f.minLength = max(f.minLength, n)
	case "maxLength":
		n, err = v.count()
		f.maxLength = least(f.maxLength, n)
	case "pattern":
		if v.kind != 's' {
			return wants(v, "a string")
		}
		f.patterns = append(f.patterns, textFact{v, v.text, true})
	case "format":
		if v.kind != 's' {
			return wants(v, "a string")
		}
		p, ok := formats[v.text]
		if !ok {
			return fmt.Errorf("the format %s at %s is not supported: supported are %s", quote(v.text), quote(v.at()), formatNames())
		}
		if p == "" { // a format of numbers, or one that says nothing of the form
			return nil
		}
		f.patterns = append(f.patterns, textFact{v, p, false})
	}
	f.implied |= typeString
	return err
}

func (f *facts) addNumber(name string, v *value) error {
	r, err := v.number()
	if err != nil {
		return err
	}
	switch name {
	case "minimum", "exclusiveMinimum":
		f.low = tighter(f.low, &bound{v, r, name == "exclusiveMinimum"}, 1)
	case "maximum", "exclusiveMaximum":
		f.high = tighter(f.high, &bound{v, r, name == "exclusiveMaximum"}, -1)
	case "multipleOf":
		places := 0
		for one := big.NewRat(1, 1); r.Cmp(one) < 0 && places < fractionMost; places++ {
			r.Mul(r, big.NewRat(10, 1))
		}
		if r.Cmp(big.NewRat(1, 1)) != 0 {
			return fmt.Errorf("the keyword \"multipleOf\" at %s is %s, supported are 1, 0.1, 0.01 and so on", quote(v.at()), quote(v.text))
		}
		f.places = least(f.places, places)
	}
	return nil
}

// count returns a count such as minItems.
func (v *value) count() (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(v.text, ".0"))
	if v.kind != '0' || err != nil || n < 0 || n > countMost {
		return 0, wants(v, fmt.Sprintf("a whole number from 0 to %d", countMost))
	}
	return n, nil
}

// numberWork is what reading a number with an exponent counts in the work: it has up to a thousand bits.
const numberWork = 128

// number returns a bound such as minimum.
func (v *value) number() (*big.Rat, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(v.text), "e")
	e, err := strconv.Atoi(exponent)
	if exponent == "" {
		e, err = 0, nil
	}
	if v.kind != '0' || err != nil || len(mantissa) > boundDigitsMost || e > boundDigitsMost || e < -boundDigitsMost {
		return nil, wants(v, fmt.Sprintf("a number of at most %d digits", boundDigitsMost))
	}
	r, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return nil, wants(v, "a number")
	}
	return r, nil
}
