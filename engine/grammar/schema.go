package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a schema's text.
const (
	// schemaBytesMost bounds a schema. OpenAI allows 120,000 characters of names and enum values.
	schemaBytesMost = 256 << 10
	// schemaDepthMost bounds its nesting, so that recursion over it is bounded; OpenAI allows 10
	// levels of objects, which are 20 or 30 of JSON.
	schemaDepthMost = 128
)

// value is a JSON value that keeps the order of its members.
type value struct {
	kind  byte   // 'o' object, 'a' array, 's' string, '0' number, 't' true, 'f' false, 'n' null
	text  string // of a string: unescaped; of a number: as written
	names []string
	items []*value // of an object: the values of names
	id    int32    // place in the document, from 0
	in    *value   // what it is part of, nil for the whole
	key   string   // its name or index there
	index map[string]*value
}

func parseSchema(raw []byte, n *net) (*value, error) {
	if len(raw) > schemaBytesMost {
		return nil, fmt.Errorf("it has %d bytes, allowed are %d", len(raw), schemaBytesMost)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not valid UTF-8")
	}
	p := parser{net: n, dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value(nil, "", 0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return nil, errors.New("there is text after its end")
	}
	return v, nil
}

type parser struct {
	*net
	dec   *json.Decoder
	count int32
}

func (p *parser) value(in *value, key string, depth int) (*value, error) {
	if depth > schemaDepthMost {
		return nil, fmt.Errorf("it nests deeper than %d levels", schemaDepthMost)
	}
	t, err := p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if !p.spend(10) { // the value, its place in a list, its key, the token
		return nil, p.err
	}
	v := &value{id: p.count, in: in, key: key}
	p.count++
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return v, p.object(v, depth)
		}
		return v, p.array(v, depth)
	case string:
		v.kind, v.text = 's', t
		p.spend(len(t) / 16)
	case json.Number:
		v.kind, v.text = '0', t.String()
	case bool:
		if v.kind = 'f'; t {
			v.kind = 't'
		}
	default:
		v.kind = 'n'
	}
	return v, nil
}

func (p *parser) object(v *value, depth int) error {
	v.kind = 'o'
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return fmt.Errorf("it is no JSON: %w", err)
		}
		name := t.(string) // a Decoder returns no other token here
		p.spend(4 + len(name)/16)
		if seen[name] {
			return fmt.Errorf("%s has the name %s twice", quote(v.at()), quote(name))
		}
		seen[name] = true
		item, err := p.value(v, name, depth+1)
		if err != nil {
			return err
		}
		v.names, v.items = append(v.names, name), append(v.items, item)
	}
	return p.close()
}

func (p *parser) array(v *value, depth int) error {
	v.kind = 'a'
	for p.dec.More() {
		item, err := p.value(v, strconv.Itoa(len(v.items)), depth+1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	return p.close()
}

func (p *parser) close() error {
	if _, err := p.dec.Token(); err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	return nil
}

// at returns the JSON pointer of v, as "#/properties/a".
func (v *value) at() string {
	var keys []string
	for ; v.in != nil; v = v.in {
		keys = append(keys, toPointer.Replace(v.key))
	}
	slices.Reverse(keys)
	return strings.Join(append([]string{"#"}, keys...), "/")
}

var (
	toPointer   = strings.NewReplacer("~", "~0", "/", "~1")
	fromPointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// indexFrom is how many members an object has whose names are looked up in a map.
const indexFrom = 16

// get returns the member of this name, nil if there is none.
func (v *value) get(name string) *value {
	if len(v.names) >= indexFrom {
		if v.index == nil {
			v.index = make(map[string]*value, len(v.names))
			for i, n := range v.names {
				v.index[n] = v.items[i]
			}
		}
		return v.index[name]
	}
	for i, n := range v.names {
		if n == name {
			return v.items[i]
		}
	}
	return nil
}

// resolve returns what a $ref such as "#/$defs/a" points to in the document v.
func (v *value) resolve(n *net, ref string) (*value, error) {
	if ref == "#" {
		return v, nil
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("%s is no reference inside the schema: supported are \"#\" and \"#/…\"", quote(ref))
	}
	at := v
	for part := range strings.SplitSeq(rest, "/") {
		part = fromPointer.Replace(unescapePercent(part))
		if !n.spend(4 + len(part)/8) {
			return nil, n.err
		}
		var next *value
		if at.kind == 'a' {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.items) {
				next = at.items[i]
			}
		} else {
			next = at.get(part)
		}
		if next == nil {
			return nil, fmt.Errorf("%s points to nothing: there is no %s in %s", quote(ref), quote(part), quote(at.at()))
		}
		at = next
	}
	return at, nil
}

// unescapePercent undoes the escapes of a URI fragment; what is no escape stays.
func unescapePercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// canonical appends the one way in which this package writes a value that is given: no white
// space, names in their order, strings with the shortest escapes.
func (v *value) canonical(b []byte) []byte {
	switch v.kind {
	case 'o':
		b = append(b, '{')
		for i, name := range v.names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = v.items[i].canonical(b)
		}
		return append(b, '}')
	case 'a':
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.canonical(b)
		}
		return append(b, ']')
	case 's':
		return appendString(b, v.text)
	case '0':
		return append(b, v.text...)
	case 't':
		return append(b, "true"...)
	case 'f':
		return append(b, "false"...)
	}
	return append(b, "null"...)
}

// appendString appends s as a JSON string in canonical form.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		b = appendRune(b, r)
	}
	return append(b, '"')
}

// appendRune appends the canonical form of a character inside a JSON string: itself, or its
// short escape, or \u00XX for a control character without one.
func appendRune(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	if r < ' ' {
		const hex = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
	}
	return utf8.AppendRune(b, r)
}
