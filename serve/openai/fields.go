package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// object is one JSON object whose fields are read one by one, so that a wrong type is
// reported with the name of its field. The first error wins and stays.
type object struct {
	fields map[string]json.RawMessage
	at     string // "" of the body; before the names of fields of an object inside it: "tools[0]."
	err    *Error
}

// readObject opens a request body. The caller has bounded its length.
func readObject(body []byte) (*object, *Error) {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, invalid("", CodeJSON, "the request body is empty; want a JSON object")
	case !utf8.Valid(body):
		return nil, invalid("", CodeJSON, "the request body is not valid UTF-8")
	case !json.Valid(body):
		if name, literal := noNumber(body); literal != "" {
			return nil, invalid(name, CodeJSON, "%s: %s is no number of JSON; want a finite one", name, literal)
		}
		var nothing json.RawMessage
		return nil, invalid("", CodeJSON, "the request body is not JSON: %v", json.Unmarshal(body, &nothing))
	case first(body) != '{':
		return nil, invalid("", CodeJSON, "the request body is %s; want a JSON object", kindOf(body))
	}
	fields, ok := readFields(body)
	if !ok {
		return nil, invalid("", CodeValue, "the request body has more than %d fields", FieldsMax)
	}
	return &object{fields: fields}, nil
}

// noNumber finds what some clients write for a number that is none, where that alone keeps a body
// from being JSON, and the field of the body that it stands in.
func noNumber(body []byte) (field, literal string) {
	fixed := bytes.Clone(body)
	at := -1
	for i := 0; i < len(fixed); {
		if fixed[i] == '"' {
			i = skipString(fixed, i)
			continue
		}
		for _, word := range [...]string{"-Infinity", "Infinity", "NaN"} {
			if bytes.HasPrefix(fixed[i:], []byte(word)) {
				if at < 0 {
					at, literal = i, word
				}
				for k := range len(word) {
					fixed[i+k] = ' '
				}
				fixed[i] = '0'
			}
		}
		i++
	}
	if at < 0 || !json.Valid(fixed) || first(fixed) != '{' {
		return "", ""
	}
	for i := skipSpace(fixed, skipSpace(fixed, 0)+1); i < at; { // as walkObject does
		end := skipString(fixed, i)
		json.Unmarshal(fixed[i:end], &field) // a string, as the whole is JSON now
		i = skipValue(fixed, skipSpace(fixed, skipSpace(fixed, end)+1))
		i = skipSpace(fixed, skipSpace(fixed, i)+1)
	}
	return field, literal
}

func (o *object) fail(e *Error) {
	if o.err == nil {
		o.err = e
	}
}

// inside reads the fields of the object v, which stands at that place. What is wrong in it becomes
// an error of o when the returned object is given to took.
func (o *object) inside(at string, v []byte) (*object, bool) {
	at = o.at + at
	if first(v) != '{' {
		o.fail(invalid(at, CodeType, "%s: want an object, got %s", at, shown(v)))
		return nil, false
	}
	fields, ok := readFields(v)
	if !ok {
		o.fail(invalid(at, CodeValue, "%s: more than %d fields", at, FieldsMax))
		return nil, false
	}
	return &object{fields: fields, at: at + "."}, true
}

// took takes the error of an object inside over.
func (o *object) took(inner *object) {
	if inner.err != nil {
		o.fail(inner.err)
	}
}

// raw returns a field's text; a missing field and null are the same.
func (o *object) raw(name string) (json.RawMessage, bool) {
	v, ok := o.fields[name]
	if !ok || isNull(v) {
		return nil, false
	}
	return v, true
}

func isNull(v []byte) bool { return bytes.Equal(bytes.TrimSpace(v), []byte("null")) }

func (o *object) wrongType(name, want string, v []byte) {
	name = o.at + name
	o.fail(invalid(name, CodeType, "%s: want %s, got %s", name, want, shown(v)))
}

// bad refuses a field's value, or that it is missing.
func (o *object) bad(name, code, format string, args ...any) {
	name = o.at + name
	o.fail(invalid(name, code, "%s: %s", name, fmt.Sprintf(format, args...)))
}

// shown prints a value for a message, cut to what a reader can use.
func shown(v []byte) string {
	const shownMax = 60 // bytes; a terminal line with room for the sentence around it
	v = bytes.TrimSpace(v)
	if len(v) > shownMax {
		return string(bytes.ToValidUTF8(v[:shownMax], nil)) + "…"
	}
	return string(v)
}

func (o *object) bool(name string, def bool) bool {
	v, ok := o.raw(name)
	if !ok {
		return def
	}
	var b bool
	if json.Unmarshal(v, &b) != nil {
		o.wrongType(name, "true or false", v)
	}
	return b
}

func (o *object) string(name string) (s string, ok bool) {
	v, ok := o.raw(name)
	if !ok {
		return "", false
	}
	if json.Unmarshal(v, &s) != nil {
		o.wrongType(name, "a string", v)
	}
	return s, true
}

// integer reads a whole number between lo and hi (O3).
func (o *object) integer(name string, lo, hi int64) (n int64, ok bool) {
	v, ok := o.raw(name)
	if !ok {
		return 0, false
	}
	n, isInt := parseInt(v)
	if !isInt {
		o.wrongType(name, "an integer", v)
		return 0, true
	}
	if n < lo || n > hi {
		o.bad(name, CodeValue, "%d is not between %d and %d", n, lo, hi)
	}
	return n, true
}

// parseInt reads 16 and also 16.0, which some clients print, but nothing that was rounded.
func parseInt(v []byte) (int64, bool) {
	v = bytes.TrimSpace(v)
	if isNull(v) {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	var f float64
	if json.Unmarshal(v, &f) != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// number reads a number between lo and hi; above says that lo itself is refused.
func (o *object) number(name string, lo, hi float64, above bool, def float64) float64 {
	v, ok := o.raw(name)
	if !ok {
		return def
	}
	var f float64
	if json.Unmarshal(v, &f) != nil {
		o.wrongType(name, "a number", v)
		return def
	}
	if f < lo || f > hi || above && f == lo {
		bracket := "["
		if above {
			bracket = "("
		}
		o.bad(name, CodeValue, "%v is not in %s%v, %v]", f, bracket, lo, hi)
	}
	return f
}

// elements splits an array of at most max elements without reading them.
func (o *object) elements(name string, v []byte, max int) []json.RawMessage {
	if first(v) != '[' {
		o.wrongType(name, "an array", v)
		return nil
	}
	var list []json.RawMessage
	fits := true
	walkArray(v, func(e json.RawMessage) bool {
		if fits = len(list) < max; fits {
			list = append(list, e)
		}
		return fits
	})
	if !fits {
		o.tooMany(name, max)
		return nil
	}
	return list
}

func (o *object) tooMany(name string, max int) {
	o.bad(name, CodeValue, "more than %d elements, which is all that are allowed", max)
}

// tokenIDs reads an array of at most max token ids below vocab.
func (o *object) tokenIDs(name string, v []byte, max, vocab int) []int32 {
	if first(v) != '[' {
		o.wrongType(name, "an array", v)
		return nil
	}
	ids, before := make([]int32, 0, min(max, len(v)/2)), o.err // an id and its comma are two bytes
	walkArray(v, func(e json.RawMessage) bool {
		n, ok := parseInt(e)
		switch {
		case len(ids) == max:
			o.tooMany(name, max)
		case !ok:
			o.wrongType(name, "token ids", e)
		case n < 0 || n >= int64(vocab):
			o.bad(name, CodeValue, "token id %d is not between 0 and %d", n, vocab-1)
		default:
			ids = append(ids, int32(n))
			return true
		}
		ids = nil
		return false
	})
	if o.err != before {
		return nil
	}
	return ids
}

// strings reads an array of at most max strings of 1 to bytes bytes each.
func (o *object) strings(name string, v []byte, max, bytes int) []string {
	list := o.elements(name, v, max)
	out := make([]string, 0, len(list))
	for _, e := range list {
		var s string
		if first(e) != '"' || json.Unmarshal(e, &s) != nil {
			o.wrongType(name, "strings", e)
			return nil
		}
		if s == "" || len(s) > bytes {
			o.bad(name, CodeValue, "a string of %d bytes, want 1 to %d", len(s), bytes)
			return nil
		}
		out = append(out, s)
	}
	return out
}

func first(v []byte) byte {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return 0
	}
	return v[0]
}
