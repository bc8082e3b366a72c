package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON reads a value that a client brought: order of keys kept, whole numbers whole, every
// string, number and bracket marked as the client's (J1).
func FromJSON(raw []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON value at byte %d", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > depthMax/2 {
		return nil, fmt.Errorf("the JSON is nested more than %d deep", depthMax/2)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return none{}, nil
	case bool:
		return boolean{t, true}, nil
	case string:
		return Client(t), nil
	case json.Number:
		return readNumber(string(t)), nil
	case json.Delim:
		if t == '[' {
			l := &List{client: true}
			for d.More() {
				v, err := readJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.items = append(l.items, v)
			}
			_, err := d.Token()
			return l, err
		}
		o := &Dict{client: true}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.put(Client(k.(string)), v)
		}
		_, err := d.Token()
		return o, err
	}
	return nil, fmt.Errorf("unexpected %v", t)
}

func readNumber(s string) Value {
	if !strings.ContainsAny(s, ".eE") {
		v, err := strconv.ParseInt(s, 10, 64)
		if err == nil {
			return integer{v: v, client: true}
		}
		return integer{big: s, client: true}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		f = math.Inf(1)
		if s[0] == '-' {
			f = math.Inf(-1)
		}
	}
	return float{f, true}
}

// JSON writes a value as the filter tojson does without arguments.
func JSON(v Value) (Text, error) {
	r := &run{left: Budget{Steps: 1 << 24, Bytes: 1 << 30}}
	var b builder
	s := jsonStyle{comma: ", ", key: ": "}
	if err := s.write(r, &b, v, 0); err != nil {
		return Text{}, err
	}
	return b.text(), nil
}

// jsonStyle is how json.dumps writes.
type jsonStyle struct {
	indent     string
	indented   bool
	comma, key string // separators
	ascii      bool
	sorted     bool
}

// tojson is json.dumps as Hugging Face's filter calls it.
func tojson(r *run, v Value, a arguments) (Value, error) {
	s := jsonStyle{comma: ", ", key: ": "}
	p, err := a.named("tojson", "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	s.ascii = p[0] != nil && truth(p[0])
	s.sorted = p[3] != nil && truth(p[3])
	switch indent := p[1].(type) {
	case nil, none:
	case Text:
		s.indented, s.indent, s.comma = true, indent.s, ","
	default:
		n, ok := whole(indent)
		if !ok || n > 64 {
			return nil, errors.New("tojson: indent is a text or an integer of at most 64")
		}
		s.indented, s.indent, s.comma = true, strings.Repeat(" ", int(max(0, n))), ","
	}
	if l, ok := p[2].(*List); ok && len(l.items) == 2 {
		comma, ok1 := l.items[0].(Text)
		key, ok2 := l.items[1].(Text)
		if !ok1 || !ok2 {
			return nil, errors.New("tojson: separators are two texts")
		}
		s.comma, s.key = comma.s, key.s
	}
	var b builder
	if err := s.write(r, &b, v, 0); err != nil {
		return nil, err
	}
	return b.text(), nil
}

// line begins a line of indented JSON.
func (s *jsonStyle) line(b *builder, depth int, client bool) {
	if s.indented {
		b.put("\n"+strings.Repeat(s.indent, depth), client)
	}
}

func (s *jsonStyle) write(r *run, b *builder, v Value, depth int) error {
	if depth > depthMax {
		return errDeep
	}
	if err := r.step(); err != nil {
		return err
	}
	before := b.Len()
	switch v := v.(type) {
	case none:
		b.lit("null")
	case boolean:
		b.put(strconv.FormatBool(v.v), v.client)
	case integer:
		b.put(v.digits(), v.client)
	case float:
		b.put(pythonFloat(v.v, "Infinity", "NaN"), v.client)
	case Text:
		s.text(b, v)
	case *List:
		if v.gen {
			return fmt.Errorf("Object of type generator is not JSON serializable")
		}
		if len(v.items) == 0 {
			b.put("[]", v.client)
			break
		}
		b.put("[", v.client)
		for i, x := range v.items {
			if i > 0 {
				b.put(s.comma, v.client)
			}
			s.line(b, depth+1, v.client)
			if err := s.write(r, b, x, depth+1); err != nil {
				return err
			}
		}
		s.line(b, depth, v.client)
		b.put("]", v.client)
		return r.pay(itemBytes * len(v.items) * (1 + depth*len(s.indent)/itemBytes))
	case *Dict:
		return s.object(r, b, v, depth)
	default:
		return fmt.Errorf("Object of type %s is not JSON serializable", typeName(v))
	}
	return r.pay(b.Len() - before)
}

func (s *jsonStyle) object(r *run, b *builder, d *Dict, depth int) error {
	if len(d.entries) == 0 {
		b.put("{}", d.client)
		return nil
	}
	if err := r.pay(itemBytes * len(d.entries) * (1 + depth*len(s.indent)/itemBytes)); err != nil {
		return err
	}
	entries := d.entries
	if s.sorted {
		l, err := r.sorted(entries, func(e entry) Value { return e.key }, false)
		if err != nil {
			return err
		}
		entries = l
	}
	b.put("{", d.client)
	for i, e := range entries {
		if i > 0 {
			b.put(s.comma, d.client)
		}
		s.line(b, depth+1, d.client)
		switch k := e.key.(type) {
		case Text:
			s.text(b, k)
		case none, boolean, integer, float:
			b.lit(`"`)
			if err := s.write(r, b, k, depth+1); err != nil {
				return err
			}
			b.lit(`"`)
		default:
			return fmt.Errorf("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		b.put(s.key, d.client)
		if err := s.write(r, b, e.value, depth+1); err != nil {
			return err
		}
	}
	s.line(b, depth, d.client)
	b.put("}", d.client)
	return nil
}

// text writes a string; its quotes are of whom it is.
func (s *jsonStyle) text(b *builder, t Text) {
	b.put(`"`, t.fromClient())
	b.add(t.mapped(func(p string) string { return jsonEscaped(p, s.ascii) }))
	b.put(`"`, t.fromClient())
}

func jsonEscaped(s string, ascii bool) string {
	plain := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] >= 0x7f && ascii {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch at := strings.IndexRune("\"\\\n\r\t\b\f", c); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[at])
		case c < 0x20 || c >= 0x7f && c < 0x10000 && ascii:
			fmt.Fprintf(&b, `\u%04x`, c)
		case c >= 0x10000 && ascii:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
