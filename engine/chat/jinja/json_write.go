package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON writes a value as the filter tojson does without arguments.
func JSON(v Value) (Text, error) {
	r := &run{left: Budget{Steps: 1 << 24, Bytes: 1 << 30}}
	w := jsonWriter{jsonStyle: plainJSON, r: r, b: r.builder()}
	if err := w.write(v, 0); err != nil {
		return Text{}, err
	}
	return w.b.text()
}

// jsonStyle is how json.dumps writes.
type jsonStyle struct {
	indent     Text
	indented   bool
	comma, key Text // separators
	ascii      bool
	sorted     bool
}

var plainJSON = jsonStyle{comma: Literal(", "), key: Literal(": ")}

// jsonWriter writes a value in a style. What is paid for is the builder's.
type jsonWriter struct {
	jsonStyle
	r *run
	b *paid
}

// tojson is json.dumps as Hugging Face's filter calls it.
func tojson(r *run, v Value, a arguments) (Value, error) {
	s := plainJSON
	p, err := a.named("tojson", "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	s.ascii = p[0] != nil && truth(p[0])
	s.sorted = p[3] != nil && truth(p[3])
	switch indent := p[1].(type) {
	case nil, none:
	case Text:
		s.indented, s.indent, s.comma = true, indent, Literal(",")
	default:
		n, ok := whole(indent)
		if !ok || n > 64 {
			return nil, errors.New("tojson: indent is a text or an integer of at most 64")
		}
		s.indented, s.indent, s.comma = true, Literal(strings.Repeat(" ", int(max(0, n)))), Literal(",")
	}
	switch l := p[2].(type) {
	case nil, none:
	case *List:
		ok := len(l.items) == 2
		if ok {
			s.comma, ok = l.items[0].(Text)
		}
		if ok {
			s.key, ok = l.items[1].(Text)
		}
		if !ok {
			return nil, errors.New("tojson: separators are two texts")
		}
	default:
		return nil, errors.New("tojson: separators are two texts")
	}
	w := jsonWriter{jsonStyle: s, r: r, b: r.builder()}
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return w.b.value()
}

// sign writes what is the client's where what it belongs to is.
func (w *jsonWriter) sign(t Text, client bool) {
	if client {
		t = Client(t.s)
	}
	w.b.add(t)
}

// line begins a line of indented JSON.
func (w *jsonWriter) line(depth int, client bool) {
	if !w.indented {
		return
	}
	w.b.put("\n", client)
	for ; depth > 0 && w.indent.s != ""; depth-- {
		w.sign(w.indent, client)
	}
}

func (w *jsonWriter) write(v Value, depth int) error {
	if depth > depthMax {
		return errDeep
	}
	if err := w.r.step(); err != nil {
		return err
	}
	switch v := v.(type) {
	case none:
		w.b.lit("null")
	case boolean:
		w.b.put(strconv.FormatBool(v.v), v.client)
	case integer:
		w.b.put(v.digits(), v.client)
	case float:
		w.b.put(pythonFloat(v.v, "Infinity", "NaN"), v.client)
	case Text:
		w.text(v)
	case *List:
		return w.list(v, depth)
	case *Dict:
		return w.object(v, depth)
	default:
		return fmt.Errorf("Object of type %s is not JSON serializable", typeName(v))
	}
	return w.b.err
}

func (w *jsonWriter) list(l *List, depth int) error {
	if l.gen {
		return fmt.Errorf("Object of type generator is not JSON serializable")
	}
	if len(l.items) == 0 {
		w.b.put("[]", l.client)
		return w.b.err
	}
	w.b.put("[", l.client)
	for i, x := range l.items {
		if i > 0 {
			w.sign(w.comma, l.client)
		}
		w.line(depth+1, l.client)
		if err := w.write(x, depth+1); err != nil {
			return err
		}
	}
	w.line(depth, l.client)
	w.b.put("]", l.client)
	return w.b.err
}

func (w *jsonWriter) object(d *Dict, depth int) error {
	if len(d.entries) == 0 {
		w.b.put("{}", d.client)
		return w.b.err
	}
	entries := d.entries
	if w.sorted {
		l, err := w.r.sorted(entries, entryKey, false)
		if err != nil {
			return err
		}
		entries = l
	}
	w.b.put("{", d.client)
	for i, e := range entries {
		if i > 0 {
			w.sign(w.comma, d.client)
		}
		w.line(depth+1, d.client)
		switch k := e.key.(type) {
		case Text:
			w.text(k)
		case none, boolean, integer, float:
			w.b.put(`"`, fromClient(k))
			if err := w.write(k, depth+1); err != nil {
				return err
			}
			w.b.put(`"`, fromClient(k))
		default:
			return fmt.Errorf("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		w.sign(w.key, d.client)
		if err := w.write(e.value, depth+1); err != nil {
			return err
		}
	}
	w.line(depth, d.client)
	w.b.put("}", d.client)
	return w.b.err
}

// text writes a string; its quotes are of whom it is.
func (w *jsonWriter) text(t Text) {
	w.b.put(`"`, t.fromClient())
	w.b.mapped(t, func(p string) string { return jsonEscaped(p, w.ascii) })
	w.b.put(`"`, t.fromClient())
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
