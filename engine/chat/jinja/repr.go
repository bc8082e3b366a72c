package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str(), with what Jinja2 prints for what is undefined.
func (r *run) str(v Value) (Text, error) {
	switch v := v.(type) {
	case Text:
		return v, nil
	case undef:
		return Text{}, nil
	}
	return r.repr(v, 0)
}

// repr is Python's repr().
func (r *run) repr(v Value, depth int) (Text, error) {
	if depth > depthMax {
		return Text{}, errDeep
	}
	if err := r.step(); err != nil {
		return Text{}, err
	}
	switch v := v.(type) {
	case none:
		return Literal("None"), nil
	case undef:
		return Literal("Undefined"), nil
	case boolean:
		return from(v.client, map[bool]string{true: "True", false: "False"}[v.v]), nil
	case integer:
		return from(v.client, v.digits()), nil
	case float:
		return from(v.client, pythonFloat(v.v, "inf", "nan")), nil
	case Text:
		if err := r.pay(len(v.s)); err != nil {
			return Text{}, err
		}
		quote := "'"
		if strings.Contains(v.s, "'") && !strings.Contains(v.s, `"`) {
			quote = `"`
		}
		b := r.builder()
		b.put(quote, v.fromClient())
		b.mapped(v, func(s string) string { return escaped(s, quote[0]) })
		b.put(quote, v.fromClient())
		return b.text()
	case *List:
		if v.gen {
			return Literal("<generator object>"), nil
		}
		return r.reprList(v, depth)
	case *Dict:
		return r.reprDict(v, depth)
	case *namespace:
		d, err := r.reprDict(&v.d, depth)
		if err != nil {
			return Text{}, err
		}
		b := r.builder()
		b.lit("<Namespace ")
		b.add(d)
		b.lit(">")
		return b.text()
	case *function:
		return Literal("<function " + v.name + ">"), nil
	}
	return Literal("<" + typeName(v) + ">"), nil
}

func from(client bool, s string) Text {
	if client {
		return Client(s)
	}
	return Literal(s)
}

func (i integer) digits() string {
	if i.big != "" {
		return i.big
	}
	return strconv.FormatInt(i.v, 10)
}

func (r *run) reprList(l *List, depth int) (Text, error) {
	b := r.builder()
	begin, end := "[", "]"
	if l.tuple {
		begin, end = "(", ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	}
	b.put(begin, l.client)
	for i, x := range l.items {
		if i > 0 {
			b.put(", ", l.client)
		}
		t, err := r.repr(x, depth+1)
		if err != nil {
			return Text{}, err
		}
		b.add(t)
	}
	b.put(end, l.client)
	return b.text()
}

func (r *run) reprDict(d *Dict, depth int) (Text, error) {
	b := r.builder()
	b.put("{", d.client)
	for i, e := range d.entries {
		if i > 0 {
			b.put(", ", d.client)
		}
		k, err := r.repr(e.key, depth+1)
		if err != nil {
			return Text{}, err
		}
		v, err := r.repr(e.value, depth+1)
		if err != nil {
			return Text{}, err
		}
		b.add(k)
		b.put(": ", d.client)
		b.add(v)
	}
	b.put("}", d.client)
	return b.text()
}

// escaped is what stands between the quotes of a Python string.
func escaped(s string, quote byte) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == ' ' || unicode.IsPrint(c) && (c != utf8.RuneError || n > 1):
			b.WriteString(s[i : i+n])
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
		i += n
	}
	return b.String()
}

// pythonFloat writes a float as Python does.
func pythonFloat(f float64, inf, nan string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return inf
	case math.IsInf(f, -1):
		return "-" + inf
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
