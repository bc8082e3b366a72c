package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// shape is a random schema, and how documents that fit it are written.
type shape struct {
	schema string
	doc    func(depth int) string
}

// maker makes shapes. Everything it does is decided by its random numbers.
type maker struct {
	*rand.Rand
	defs  []string
	named []func(depth int) string
}

func (m *maker) one(list ...string) string { return list[m.IntN(len(list))] }
func (m *maker) coin() bool                { return m.IntN(2) == 0 }

// white is white space as the convention allows it.
func (m *maker) white() string {
	switch m.IntN(4) {
	case 0:
		return " "
	case 1:
		return "\n" + strings.Repeat(" ", m.IntN(whiteMost+1))
	}
	return ""
}

func (m *maker) colon() string { return ":" + m.one("", " ") }

// chars returns n characters of a JSON string in any of the ways to write them.
func (m *maker) chars(n int) string {
	var b strings.Builder
	for range n {
		switch m.IntN(12) {
		case 0:
			b.WriteString(m.one(`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u00e9`, `\uD7FF`, `\uFfff`))
		case 1:
			b.WriteString(m.one(`\ud83d\ude00`, `\uDBFF\uDFFF`, `\ud800\udc00`))
		case 2:
			b.WriteString(m.one("é", "ß", "漢", "€", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff"))
		case 3:
			b.WriteString(m.one("a", "\x7f", "/", "'", "{", "}"))
		default:
			b.WriteByte("abcdefghijklmnopqrstuvwxyz .,"[m.IntN(29)])
		}
	}
	return b.String()
}

func (m *maker) text(n int) string { return `"` + m.chars(n) + `"` }

// shape returns a random one; depth bounds the schemas inside.
func (m *maker) shape(depth int) shape {
	n := 9
	if depth > 0 {
		n = 14
	}
	switch m.IntN(n) {
	case 0:
		return m.string()
	case 1:
		return m.pattern()
	case 2, 3:
		return m.integer()
	case 4:
		return m.number()
	case 5:
		return m.given()
	case 6:
		return shape{`{"type":["boolean","null"],"title":"x"}`, func(int) string { return m.one("true", "false", "null") }}
	case 7:
		if len(m.defs) > 0 {
			i := m.IntN(len(m.defs))
			return shape{fmt.Sprintf(`{"$ref":"#/$defs/d%d","description":"y"}`, i), func(d int) string { return m.named[i](d) }}
		}
		return shape{`{"type":"boolean"}`, func(int) string { return m.one("true", "false") }}
	case 8:
		return shape{m.one(`true`, `{}`, `{"description":"any"}`), func(d int) string { return m.any(min(d, 3)) }}
	case 9, 10:
		return m.array(depth)
	case 11:
		return m.alternatives(depth)
	}
	return m.object(depth)
}

func (m *maker) any(depth int) string {
	n := 5
	if depth > 0 {
		n = 7
	}
	switch m.IntN(n) {
	case 0:
		return m.text(m.IntN(4))
	case 1:
		return m.one("0", "-0", "12", "-3.25", "1e5", "2E-07", "1.5e+12", "18446744073709551615")
	case 2, 3, 4:
		return m.one("true", "false", "null")
	case 5:
		var items []string
		for range m.IntN(3) {
			items = append(items, m.any(depth-1))
		}
		return m.items(items)
	}
	var members []string
	for range m.IntN(3) {
		members = append(members, m.text(m.IntN(5))+m.colon()+m.any(depth-1))
	}
	return m.members(members)
}

func (m *maker) items(items []string) string   { return m.join("[", items, "]") }
func (m *maker) members(items []string) string { return m.join("{", items, "}") }

func (m *maker) join(open string, items []string, closing string) string {
	var b strings.Builder
	b.WriteString(open)
	for i, it := range items {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(m.white() + it)
	}
	b.WriteString(m.white())
	return b.String() + closing
}

func (m *maker) string() shape {
	least, most := m.IntN(4), -1
	s := `{"type":"string"`
	if least > 0 {
		s += fmt.Sprintf(`,"minLength":%d`, least)
	}
	if m.coin() {
		most = least + m.IntN(40)
		s += fmt.Sprintf(`,"maxLength":%d`, most)
	}
	return shape{s + "}", func(int) string {
		n := least + m.IntN(8)
		if most >= 0 {
			n = least + m.IntN(most-least+1)
		}
		return m.text(n)
	}}
}

func (m *maker) pattern() shape {
	type row struct{ schema, docs string }
	rows := []row{
		{`"pattern":"^[a-z]+-\\d{2,3}$"`, "a-12 abc-999 z-000"},
		{`"pattern":"b+c"`, "bc abbbcd xxbcbc"},
		{`"pattern":"^é*$","maxLength":3`, "é éé ééé"},
		{`"pattern":"[^a-c]","minLength":2,"maxLength":4`, "ad dd aaad ZZ é漢"},
		{`"pattern":"^(foo|bar)?$"`, "foo bar"},
		{`"pattern":"\\\\|\""`, `\\ \" a\"b \\\\`},
		{`"format":"date"`, "2024-02-29 2023-02-28 1999-12-31 2000-02-29"},
		{`"format":"date-time"`, "2024-02-29T23:59:59Z 2023-01-01T00:00:00.123+05:30"},
		{`"format":"time"`, "23:59:59Z 00:00:00.5-11:00"},
		{`"format":"uuid"`, "123e4567-e89b-12d3-a456-426614174000"},
		{`"format":"ipv4"`, "0.0.0.0 255.249.199.9"},
		{`"format":"ipv6"`, "1:2:3:4:5:6:7:8 :: ::1 fe80::1"},
		{`"format":"email"`, "a@b.c john.doe+x@mail.example.com"},
		{`"format":"hostname"`, "a.b example.com x-1.yz"},
		{`"format":"duration"`, "P1D PT3H P1Y2M3DT4H5M6S P3W"},
		{`"format":"uri"`, "https://example.com/a/b?c=d#e http://a.b:80"},
	}
	row1 := rows[m.IntN(len(rows))]
	return shape{`{"type":"string",` + row1.schema + "}", func(int) string { return `"` + m.one(strings.Fields(row1.docs)...) + `"` }}
}

func (m *maker) integer() shape {
	switch m.IntN(4) {
	case 0:
		return shape{`{"type":"integer"}`, func(int) string { return strconv.Itoa(m.IntN(1<<40) - 1<<39) }}
	case 1:
		lo := m.IntN(2000) - 1000
		return shape{fmt.Sprintf(`{"type":"integer","minimum":%d}`, lo), func(int) string { return strconv.Itoa(lo + m.IntN(1<<m.IntN(40))) }}
	case 2:
		hi := m.IntN(2000) - 1000
		return shape{fmt.Sprintf(`{"type":"integer","exclusiveMaximum":%g}`, float64(hi)+0.5), func(int) string { return strconv.Itoa(hi - m.IntN(1<<m.IntN(40))) }}
	}
	lo := m.IntN(1<<m.IntN(20)) - m.IntN(1<<m.IntN(20))
	hi := lo + m.IntN(1<<m.IntN(12))
	return shape{fmt.Sprintf(`{"type":"integer","exclusiveMinimum":%d,"maximum":%d}`, lo-1, hi), func(int) string { return strconv.Itoa(lo + m.IntN(hi-lo+1)) }}
}

func (m *maker) number() shape {
	switch m.IntN(3) {
	case 0:
		return shape{`{"type":"number"}`, func(int) string { return m.one("0", "-1.5", "1e10", "-2.50E-3", "123456789.125") }}
	case 1:
		return shape{`{"type":"number","multipleOf":0.01,"minimum":-5}`, func(int) string { return m.one("0", "-5", "-4.99", "12.3", "7.25", "-0.5", "-5.00") }}
	}
	lo := m.IntN(1<<m.IntN(20)) - m.IntN(1<<m.IntN(20)) // thousandths
	hi := lo + 1 + m.IntN(1<<m.IntN(14))
	as := func(n int) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }
	kind, most := "maximum", hi
	if m.coin() {
		kind, most = "exclusiveMaximum", hi-1
	}
	return shape{fmt.Sprintf(`{"type":"number","minimum":%s,"%s":%s}`, as(lo), kind, as(hi)), func(int) string {
		s := as(lo + m.IntN(most-lo+1))
		if m.coin() && strings.Contains(s, ".") {
			s += "00"
		}
		return s
	}}
}

func (m *maker) given() shape {
	values := []string{`"a"`, `"ab"`, `"é\n\""`, `1`, `-2.5`, `null`, `true`, `{"x":[1,"y"]}`, `[]`}
	if m.coin() {
		v := m.one(values...)
		return shape{`{"const":` + v + `}`, func(int) string { return v }}
	}
	m.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	values = values[:1+m.IntN(5)]
	return shape{`{"enum":[` + strings.Join(values, ",") + `]}`, func(int) string { return m.one(values...) }}
}

func (m *maker) array(depth int) shape {
	var first []shape
	if m.IntN(3) == 0 {
		for range 1 + m.IntN(3) {
			first = append(first, m.shape(depth-1))
		}
	}
	rest := m.shape(depth - 1)
	least, most := m.IntN(3), -1
	s := `{"type":"array","items":` + rest.schema
	if m.coin() {
		s = `{"items":` + rest.schema
	}
	if m.coin() {
		most = least + m.IntN(4)
		s += fmt.Sprintf(`,"maxItems":%d`, most)
	}
	s += fmt.Sprintf(`,"minItems":%d`, least)
	if first != nil {
		var list []string
		for _, f := range first {
			list = append(list, f.schema)
		}
		s += `,"prefixItems":[` + strings.Join(list, ",") + `]`
	}
	return shape{s + "}", func(d int) string {
		n := least + m.IntN(4)
		if most >= 0 {
			n = least + m.IntN(most-least+1)
		}
		if d <= 0 {
			n = least
		}
		var items []string
		for i := range n {
			it := rest
			if i < len(first) {
				it = first[i]
			}
			items = append(items, it.doc(d-1))
		}
		return m.items(items)
	}}
}

func (m *maker) object(depth int) shape {
	names := []string{"a", "ab", "name", "é", "x y", "q\"\\", "id"}
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+m.IntN(4)]
	var props, parts, required []string
	var values []shape
	must := map[string]bool{}
	for _, n := range names {
		v := m.shape(depth - 1)
		q, _ := json.Marshal(n)
		values, props = append(values, v), append(props, string(q)+":"+v.schema)
		if m.coin() {
			required, must[n] = append(required, string(q)), true
		}
	}
	cut := len(props)
	if m.IntN(4) == 0 { // the same by allOf
		cut = m.IntN(len(props) + 1)
		parts = append(parts, fmt.Sprintf(`"allOf":[{"properties":{%s},"type":"object"}]`, strings.Join(props[cut:], ",")))
	}
	inner := fmt.Sprintf(`"type":"object","properties":{%s}`, strings.Join(props[:cut], ","))
	parts = append([]string{inner, `"required":[` + strings.Join(required, ",") + `]`}, parts...)
	var more func(int) string
	switch m.IntN(4) {
	case 0:
		if len(parts) == 2 {
			parts = append(parts, `"additionalProperties":false`)
		}
	case 1:
		if len(parts) == 2 {
			parts, more = append(parts, `"additionalProperties":{"type":"integer"}`), func(int) string { return strconv.Itoa(m.IntN(100)) }
		}
	}
	return shape{"{" + strings.Join(parts, ",") + "}", func(d int) string {
		var members []string
		for i, n := range names {
			if must[n] || d > 0 && m.coin() {
				members = append(members, string(appendString(nil, n))+m.colon()+values[i].doc(d-1))
			}
		}
		if more != nil {
			for range m.IntN(3) {
				members = append(members, m.one(`"other"`, `"a\n"`, `"nam"`, `"names"`, `"ё"`, `""`, `"q\""`)+m.colon()+more(d))
			}
		}
		return m.members(members)
	}}
}

func (m *maker) alternatives(depth int) shape {
	var list []shape
	var texts []string
	for range 1 + m.IntN(4) {
		s := m.shape(depth - 1)
		list, texts = append(list, s), append(texts, s.schema)
	}
	return shape{`{"anyOf":[` + strings.Join(texts, ",") + `]}`, func(d int) string { return list[m.IntN(len(list))].doc(d) }}
}

// document returns a whole schema, some with schemas that refer to themselves.
func (m *maker) document() shape {
	m.defs, m.named = nil, nil
	if m.coin() {
		m.defs = []string{
			`{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/d0"}]}},"required":["v","next"],"additionalProperties":false}`,
			`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/d1"}}},"required":["kids"]}`,
			`{"type":["integer","array"],"items":{"$ref":"#/$defs/d2"}}`,
		}
		m.named = []func(int) string{m.chain, m.tree, m.nest}
	}
	top := m.shape(3)
	for top.schema == "true" || len(m.defs) > 0 && top.schema[0] != '{' {
		top = m.shape(3)
	}
	if len(m.defs) > 0 {
		comma := ","
		if top.schema == "{}" {
			comma = ""
		}
		var defs []string
		for i, d := range m.defs {
			defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, d))
		}
		top.schema = `{"$defs":{` + strings.Join(defs, ",") + `}` + comma + top.schema[1:]
	}
	return top
}

func (m *maker) chain(d int) string {
	next := "null"
	if d > 0 && m.coin() {
		next = m.chain(d - 1)
	}
	return m.members([]string{`"v":` + strconv.Itoa(m.IntN(9)), `"next": ` + next})
}

func (m *maker) tree(d int) string {
	var kids []string
	for range m.IntN(3) {
		if d > 0 {
			kids = append(kids, m.tree(d-1))
		}
	}
	return m.members([]string{`"kids":` + m.items(kids)})
}

func (m *maker) nest(d int) string {
	if d <= 0 || m.coin() {
		return strconv.Itoa(m.IntN(100))
	}
	return m.items([]string{m.nest(d - 1), m.nest(d - 1)})
}
