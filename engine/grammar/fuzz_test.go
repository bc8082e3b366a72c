package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzSchema: whatever a schema says, it is refused, or what is allowed ends in a document that
// a validator accepts, if that takes the schema at all (G1, G2).
func FuzzSchema(f *testing.F) {
	for seed := range uint64(40) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 10))}
		f.Add([]byte(m.document().schema), seed)
	}
	for _, s := range hostile() {
		if len(s.Schema) > 0 && len(s.Schema) < 1<<14 {
			f.Add([]byte(s.Schema), uint64(1))
		}
	}
	f.Add([]byte(person), uint64(1))
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		s := schemaSpec(string(schema))
		if s.Validate() != "" {
			return
		}
		g, err := compile(s, recallVocabulary())
		if err != nil {
			return // the vocabulary lacks a byte
		}
		r := rand.New(rand.NewPCG(seed, 11))
		text, ended := stroll(t, g, r, 60)
		if !ended || strings.Contains(string(schema), "oneOf") || strings.Contains(string(schema), "$id") {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s has %q", schema, text)
		}
		if parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema))); err == nil {
			c := jsonschema.NewCompiler()
			if c.AddResource("s.json", parsed) != nil {
				return
			}
			v, err := c.Compile("s.json")
			if err != nil {
				return
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err == nil {
				err = v.Validate(doc)
			}
			if err != nil {
				t.Fatalf("%s has %s: %v", schema, text, err)
			}
		}
	})
}

// FuzzRegex: what is allowed ends in a text that Go's regexp matches (G1, G2).
func FuzzRegex(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(expression(rand.New(rand.NewPCG(seed, 12)), 3), seed)
	}
	for _, p := range formats {
		f.Add(p, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s := &Spec{Kind: KindRegex, Regex: text}
		if s.Validate() != "" {
			return
		}
		g, err := compile(s, recallVocabulary())
		if err != nil {
			return
		}
		oracle, err := regexp.Compile(`\A(?:` + text + `)\z`)
		if err != nil {
			return
		}
		got, ended := stroll(t, g, rand.New(rand.NewPCG(seed, 13)), 60)
		if ended && (!utf8.ValidString(got) || !oracle.MatchString(got)) {
			t.Fatalf("%q has %q", text, got)
		}
	})
}

// stroll takes random tokens, ends where it may half of the time, and says whether it ended.
func stroll(t *testing.T, g *Grammar, r *rand.Rand, steps int) (string, bool) {
	s, mask := g.Start(), make([]uint64, g.Words())
	var ids []int32
	for range steps {
		s.Allowed(mask)
		if s.at.accept && r.IntN(2) == 0 {
			if !s.Push(g.m.ends[0]) || !s.Done() {
				t.Fatalf("%q may not end", g.textOf(ids))
			}
			return g.textOf(ids), true
		}
		all := members(mask)
		if len(all) == 0 {
			t.Fatalf("a dead end after %q", g.textOf(ids))
		}
		id := all[r.IntN(len(all))]
		if !s.Push(id) {
			t.Fatalf("an allowed token is refused after %q", g.textOf(ids))
		}
		if s.ended {
			return g.textOf(ids), true
		}
		ids = append(ids, id)
	}
	return "", false
}
