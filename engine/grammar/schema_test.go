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

func TestWhatIsAllowedEndsInAValidDocument(t *testing.T) {
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

func TestValidDocumentsAreNeverRefused(t *testing.T) {
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

func TestMasksAreThoseOfEachTokenAlone(t *testing.T) {
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

func TestPushingAgainGivesTheSameState(t *testing.T) {
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
