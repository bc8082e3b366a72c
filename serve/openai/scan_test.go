package openai

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

var scanSeeds = []string{
	`{}`, `[]`, ` [ ] `, `[1]`, `{"a":1}`, `{ "a" : [ 1 , 2.5e3 , -0 ] , "b" : { } }`, `["a\"]", "\\", "\u005d", {"x":"}"}, [[[]]], null, true]`,
	`{"a\u0062":"x","ab":2,"":[]}`, "[\t1,\r\n2 ]", `{"x":{"y":[{"z":[{}]}]}}`, `[[],[],[[]]]`, `"s"`, `12`, `null`,
}

// Whatever JSON it is: walked in place it gives what encoding/json makes of it.
func FuzzWalkingAgreesWithUnmarshalling(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		if !json.Valid(v) {
			return
		}
		switch first(v) {
		case '[':
			var want, got []json.RawMessage
			if err := json.Unmarshal(v, &want); err != nil {
				t.Fatal(err)
			}
			walkArray(v, func(e json.RawMessage) bool { got = append(got, e); return true })
			if len(got) != len(want) {
				t.Fatalf("%q: %d elements, want %d", v, len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%q: element %d is %q, want %q", v, i, got[i], want[i])
				}
			}
		case '{':
			var want map[string]json.RawMessage
			if err := json.Unmarshal(v, &want); err != nil {
				t.Fatal(err)
			}
			got, ok := readFields(v)
			if !ok {
				return
			}
			if len(got) != len(want) {
				t.Fatalf("%q: %q, want %q", v, got, want)
			}
			for name := range want {
				if !bytes.Equal(got[name], want[name]) {
					t.Errorf("%q: %q is %q, want %q", v, name, got[name], want[name])
				}
			}
		}
	})
}

// A body costs memory in proportion to its bytes, whatever it is made of: no list is made of
// what is over its bound, and no field is copied.
func TestReadingTakesMemoryInProportion(t *testing.T) {
	const size = 4 << 20
	fill := func(before, unit, last, after string) []byte {
		return []byte(before + strings.Repeat(unit, (size-len(before)-len(after))/len(unit)) + last + after)
	}
	keys := bytes.Buffer{}
	keys.WriteByte('{')
	for i := 0; keys.Len() < size; i++ {
		keys.WriteString(`"` + strings.Repeat("k", i%7) + string(rune('a'+i%26)) + `":0,`)
	}
	keys.WriteString(`"z":0}`)
	for name, row := range map[string]struct {
		e    Endpoint
		body []byte
		want string // of the error's message
	}{
		"keys":          {Chat, keys.Bytes(), "more than 256 fields"},
		"messages":      {Chat, fill(`{"messages":[`, "[],", "[]", `]}`), "more than 4096 elements"},
		"message keys":  {Chat, fill(`{"messages":[{`, `"a":0,`, `"a":0`, `}]}`), "more than 256 fields"},
		"content parts": {Chat, fill(`{"messages":[{"role":"user","content":[`, "0,", "0", `]}]}`), "more than 1024 elements"},
		"prompt ids":    {Completion, fill(`{"prompt":[`, "0,", "0", `]}`), "more than 1048576 elements"},
		"prompts":       {Completion, fill(`{"prompt":[`, `"",`, `""`, `]}`), "more than 16 elements"},
		"stop":          {Completion, fill(`{"prompt":"x","stop":[`, "0,", "0", `]}`), "more than 16 elements"},
		"stop ids":      {Completion, fill(`{"prompt":"x","stop_token_ids":[`, "0,", "0", `]}`), "more than 64 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(row.e, row.body, lim)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Message, row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 2*size {
				t.Errorf("a body of %d bytes took %d", len(row.body), took)
			}
		})
	}
}

// What a client reads names JSON's kinds, never our types.
func TestABodyThatIsNoObjectIsNamed(t *testing.T) {
	for body, want := range map[string]string{
		"": "the request body is empty; want a JSON object", " \n": "the request body is empty; want a JSON object",
		"[]": "the request body is an array; want a JSON object", "null": "the request body is null; want a JSON object",
		"7": "the request body is a number; want a JSON object", `"x"`: "the request body is a string; want a JSON object",
		"true": "the request body is true or false; want a JSON object",
		"{":    "the request body is not JSON: unexpected end of JSON input",
	} {
		if _, err := Parse(Chat, []byte(body), lim); err == nil || err.Message != want {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
}
