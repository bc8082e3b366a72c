package openai

import (
	"encoding/json"
)

// A body is checked as JSON once, as a whole, and then walked in place: nothing is copied, and
// no list is made, before its bounds were looked at. What follows therefore reads JSON that is
// known to be valid.

// skipSpace returns where the next token of v begins, at or behind i.
func skipSpace(v []byte, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the value that begins at i.
func skipValue(v []byte, i int) int {
	for depth := 0; i < len(v); {
		switch v[i] {
		case '"':
			i = skipString(v, i)
		case '[', '{':
			depth++
			i++
			continue
		case ']', '}':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		default:
			i = skipPlain(v, i)
		}
		if depth == 0 {
			return i
		}
	}
	return len(v)
}

// skipString returns the end of the string that begins at i.
func skipString(v []byte, i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

// skipPlain returns the end of the number, true, false or null that begins at i.
func skipPlain(v []byte, i int) int {
	for i < len(v) {
		switch v[i] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return i
		}
		i++
	}
	return i
}

// walkArray calls f with each element of the array v, until f says false. The elements are
// parts of v.
func walkArray(v []byte, f func(e json.RawMessage) bool) {
	for i := skipSpace(v, skipSpace(v, 0)+1); i < len(v) && v[i] != ']'; {
		end := skipValue(v, i)
		if !f(v[i:end:end]) {
			return
		}
		if i = skipSpace(v, end); i < len(v) && v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

// walkObject calls f with each field of the object v in turn, until f says false. The values are
// parts of v.
func walkObject(v []byte, f func(name string, e json.RawMessage) bool) {
	for i := skipSpace(v, skipSpace(v, 0)+1); i < len(v) && v[i] != '}'; {
		end := skipString(v, i)
		var name string
		json.Unmarshal(v[i:end], &name) // a string, as the whole is JSON
		i = skipSpace(v, skipSpace(v, end)+1)
		end = skipValue(v, i)
		if !f(name, v[i:end:end]) {
			return
		}
		if i = skipSpace(v, end); i < len(v) && v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

// readFields returns the fields of the object v, as parts of it; of two with one name the last
// counts. False says that there are more than FieldsMax.
func readFields(v []byte) (map[string]json.RawMessage, bool) {
	fields := map[string]json.RawMessage{}
	n := 0
	walkObject(v, func(name string, e json.RawMessage) bool {
		n++
		fields[name] = e
		return n <= FieldsMax
	})
	return fields, n <= FieldsMax
}

// kindOf names what v is, for messages.
func kindOf(v []byte) string {
	switch first(v) {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
