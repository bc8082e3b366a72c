package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator returns what judges documents by the rules of JSON Schema, formats included.
func validator(t testing.TB, schema string) func(doc string) error {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("s.json", parsed); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return func(doc string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// rounds is how many random worlds a test sees: a second or two in all.
const rounds = 250

func TestWhatIsAllowedEndsInAValidDocument(t *testing.T) { // G1, G2
	for seed := range uint64(rounds) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 1))}
		s := m.document()
		valid := validator(t, s.schema)
		g := compiled(t, schemaSpec(s.schema), recallVocabulary())
		for range 5 {
			ids := walk(t, g, m.Rand, m.IntN(60), nil)
			if doc := g.textOf(ids); valid(doc) != nil {
				t.Fatalf("seed %d: schema %s\nhas %s\n%v", seed, s.schema, doc, valid(doc))
			}
		}
	}
}

func TestValidDocumentsAreNeverRefused(t *testing.T) { // G3
	for seed := range uint64(rounds) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 2))}
		s := m.document()
		valid := validator(t, s.schema)
		g := compiled(t, schemaSpec(s.schema), recallVocabulary())
		for range 10 {
			doc := s.doc(4)
			if err := valid(doc); err != nil {
				t.Fatalf("seed %d: the test itself wrote %s for %s: %v", seed, doc, s.schema, err)
			}
			if g.lacks(doc) {
				continue
			}
			if why, ok := accepts(g, m.Rand, doc); !ok {
				t.Fatalf("seed %d: schema %s\nrefuses %s\n%s", seed, s.schema, doc, why)
			}
		}
	}
}

func TestMasksAreThoseOfEachTokenAlone(t *testing.T) { // G3
	v := realVocabulary(t)
	want := make([]uint64, v.words)
	for seed := range uint64(12) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 3))}
		s := m.document()
		g := compiled(t, schemaSpec(s.schema), v)
		walk(t, g, m.Rand, 12, func(s2 *State, mask []uint64) {
			if m.IntN(4) > 0 {
				return
			}
			naive(s2, want)
			if !slices.Equal(mask, want) {
				t.Fatalf("seed %d: schema %s: masks differ", seed, s.schema)
			}
		})
	}
}

func TestPushingAgainGivesTheSameState(t *testing.T) { // G4
	for seed := range uint64(40) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 4))}
		s := m.document()
		g := compiled(t, schemaSpec(s.schema), recallVocabulary())
		var masks [][]uint64
		var done []bool
		ids := walk(t, g, m.Rand, 30, func(s *State, mask []uint64) {
			masks, done = append(masks, slices.Clone(mask)), append(done, s.Done())
		})
		other := compiled(t, schemaSpec(s.schema), recallVocabulary())
		for at := range masks {
			st := other.Start()
			for _, id := range ids[:at] {
				if !st.Push(id) {
					t.Fatalf("seed %d: token %d refused", seed, id)
				}
			}
			mask := make([]uint64, other.Words())
			st.Allowed(mask)
			if !slices.Equal(mask, masks[at]) || st.Done() != done[at] {
				t.Fatalf("seed %d: after %d tokens of %s the state differs", seed, at, s.schema)
			}
		}
	}
}

// lacks says whether doc has bytes for which the vocabulary has no token.
func (g *Grammar) lacks(doc string) bool {
	for i := range len(doc) {
		if !g.m.vocabulary.has[doc[i]] {
			return true
		}
	}
	return false
}

func TestWhatSchemasMean(t *testing.T) {
	for _, row := range []struct {
		schema  string
		loose   bool
		yes, no []string
	}{
		{`{"type":"object"}`, false, []string{`{}`, `{"a": [1, null]}`, `{"a":{},"a":2}`}, []string{`[]`, `{"a"}`, `{ "a" :1}`, ` {}`, `{} `}},
		{`{"type":"object","properties":{}}`, false, []string{`{}`, `{ }`}, []string{`{"a":1}`}},
		{`{"type":"object","properties":{}}`, true, []string{`{}`, `{"a":1}`}, nil},
		{`{"properties":{"a":{"type":"null"}}}`, true, []string{`{"a":null,"b":2}`, `{"b":2}`}, []string{`{"a":1}`, `{"b":2,"a":1}`, `{"b":2,"a":null}`, `{"\u0061":1}`}},
		{`{"properties":{"a":{"type":"null"}},"required":["b"]}`, false, []string{`{"a":null,"b":[]}`, `{"b":2}`}, []string{`{"a":null}`, `{"b":1,"c":2}`}},
		{`{"properties":{"a":true},"required":["b"],"additionalProperties":{"type":"integer"}}`, false, []string{`{"b":2,"c":3}`}, []string{`{"b":null}`, `{"b":1,"c":null}`}},
		{`{"properties":{"a":true,"b":false}}`, false, []string{`{"a":1}`, `{}`}, []string{`{"b":1}`}},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, true, []string{`{"a":1}`}, []string{`{"b":1}`}},
		{`{"allOf":[{"properties":{"a":true},"unevaluatedProperties":false},{"properties":{"b":true}}]}`, false, []string{`{"a":1}`, `{}`}, []string{`{"b":1}`, `{"a":1,"b":1}`, `{"c":1}`}},
		{`{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}`, true, []string{`{"b":1}`, `{"a":1}`}, []string{`{"c":1}`}},
		{`{"additionalProperties":{"type":"null"},"unevaluatedProperties":false}`, false, []string{`{"c":null}`}, []string{`{"c":1}`}},
		{`{"type":"object","unevaluatedProperties":false}`, false, []string{`{}`}, []string{`{"c":1}`}},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":5},"b":true},"required":["a"]}]}`, false, []string{`{"a":5}`, `{"a":6,"b":"x"}`}, []string{`{"a":4}`, `{"b":1}`, `{}`}},
		{`{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, false, []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":2}`}, []string{`{}`}},
		{`{"$ref":"#/definitions/x%20y/0","definitions":{"x y":[{"type":"integer"}]},"maximum":3}`, false, []string{`3`, `-7`}, []string{`4`}},
		{`{"oneOf":[{"const":"a"},{"type":"integer","multipleOf":1}]}`, false, []string{`"a"`, `12`}, []string{`"b"`, `1.5`}},
		{`{"type":["string","null"],"maxLength":1}`, false, []string{`null`, `""`, `"\ud83d\ude00"`, `"😀"`}, []string{`"ab"`, `"\ud83d"`, `"\ude00"`, `"\ud83dx"`, "\"\n\"", `1`}},
		{`{"items":[{"type":"integer"},{"type":"null"}],"additionalItems":false}`, false, []string{`[]`, `[1]`, `[1, null]`, "[\n  1,\n  null\n]"}, []string{`[null]`, `[1,null,1]`, `[1 ,null]`, "[\n\n1]"}},
		{`{"prefixItems":[{"type":"integer"}],"items":{"type":"boolean"},"minItems":2,"maxItems":3}`, false, []string{`[1,true]`, `[1,true,false]`}, []string{`[1]`, `[true,true]`, `[1,true,true,true]`}},
		{`{"type":"array","maxItems":0}`, false, []string{`[]`, `[ ]`}, []string{`[1]`}},
		{`{"enum":[1,"a",[1,{"b":null}],2.5],"type":["integer","array"]}`, false, []string{`1`, `[1,{"b":null}]`}, []string{`"a"`, `2.5`, `[1]`}},
		{`{"enum":[1,2.5,0.25,1e1,"a"],"multipleOf":0.1}`, false, []string{`1`, `2.5`, `1e1`, `"a"`}, []string{`0.25`}},
		{`{"enum":[1,2.5,2.0],"multipleOf":1}`, false, []string{`1`, `2.0`}, []string{`2.5`}},
		{`{"type":"integer","minimum":-3,"exclusiveMaximum":12}`, false, []string{`-3`, `-1`, `0`, `9`, `11`}, []string{`-4`, `12`, `-0`, `01`, `1.0`, `+1`}},
		{`{"type":"integer","minimum":95,"maximum":1005}`, false, []string{`95`, `99`, `100`, `999`, `1000`, `1005`}, []string{`94`, `1006`, `9`, `10`}},
		{`{"type":"number","minimum":-0.5,"maximum":2.25}`, false, []string{`-0.5`, `-0.50`, `-0.49`, `0`, `-0`, `1.999`, `2.25`, `2.2`, `2`}, []string{`-0.51`, `2.26`, `2.3`, `3`, `-1`, `1e0`, `1.`, `.5`}},
		{`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, false, []string{`0.1`, `0.0001`, `0.99`}, []string{`0`, `0.0`, `1`, `1.0`, `-0.1`}},
		{`{"type":"number","multipleOf":0.01}`, false, []string{`1.25`, `-3`, `0.1`}, []string{`0.125`, `1e1`}},
		{`{"pattern":"b","type":"string"}`, false, []string{`"b"`, `"abc"`, `"\nb\\\""`}, []string{`"a"`, `"\u0062"`}},
	} {
		spec := schemaSpec(row.schema)
		spec.Loose = row.loose
		g := compiled(t, spec, recallVocabulary())
		r := rand.New(rand.NewPCG(1, 1))
		for _, doc := range row.yes {
			if why, ok := accepts(g, r, doc); !ok {
				t.Errorf("%s refuses %s: %s", row.schema, doc, why)
			}
		}
		for _, doc := range row.no {
			if _, ok := accepts(g, r, doc); ok {
				t.Errorf("%s accepts %s", row.schema, doc)
			}
		}
	}
}
