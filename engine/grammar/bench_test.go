package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// person is a schema as applications have them.
const person = `{"type":"object","properties":{
	"name":{"type":"string","description":"full name"},
	"age":{"type":"integer","minimum":0,"maximum":150},
	"email":{"type":"string","format":"email"},
	"role":{"enum":["admin","editor","reader"]},
	"tags":{"type":"array","items":{"type":"string","maxLength":40},"maxItems":8},
	"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string","pattern":"^\\d{5}$"}},"required":["street","city"],"additionalProperties":false},
	"scores":{"type":"array","items":{"type":"number","minimum":0,"maximum":10}},
	"note":{"anyOf":[{"type":"string","minLength":1,"maxLength":300},{"type":"null"}]}},
	"required":["name","age","role","address","note"],"additionalProperties":false}`

// large is a vocabulary as large as Qwen's, of the tokens of a real one and pairs of them.
func large(t testing.TB) *vocabulary {
	base := realVocabulary(t)
	texts := slices.Clone(base.texts)
	r := rand.New(rand.NewPCG(1, 1))
	for len(texts) < 151_936 {
		texts = append(texts, base.texts[r.IntN(len(base.texts))]+base.texts[r.IntN(len(base.texts))])
	}
	return vocabularyOf(texts, base.ends)
}

func vocabularies(b *testing.B, each func(b *testing.B, v *vocabulary)) {
	b.Run("49k", func(b *testing.B) { each(b, realVocabulary(b)) })
	b.Run("151k", func(b *testing.B) { each(b, large(b)) })
}

func BenchmarkVocabulary(b *testing.B) {
	vocabularies(b, func(b *testing.B, v *vocabulary) {
		for b.Loop() {
			vocabularyOf(slices.Clone(v.texts), v.ends)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	vocabularies(b, func(b *testing.B, v *vocabulary) {
		for b.Loop() {
			if _, err := compile(schemaSpec(person), v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCold measures masks in grammars that are new: the states of one random document each.
func BenchmarkCold(b *testing.B) {
	for _, spec := range []*Spec{schemaSpec(person), {Kind: KindObject}, {Kind: KindRegex, Regex: `(?s).*`}, {Kind: KindSequence, Parts: []Part{{Until: "</think>"}, {Schema: json.RawMessage(person)}}}} {
		b.Run(string(spec.Kind), func(b *testing.B) {
			vocabularies(b, func(b *testing.B, v *vocabulary) {
				r := rand.New(rand.NewPCG(1, 1))
				mask := make([]uint64, v.words)
				var took []time.Duration
				for b.Loop() {
					g, err := compile(spec, v)
					if err != nil {
						b.Fatal(err)
					}
					s := g.Start()
					for range 100 {
						from := time.Now()
						s.Allowed(mask)
						took = append(took, time.Since(from))
						all := members(mask)
						if id := all[r.IntN(len(all))]; !s.Push(id) || slices.Contains(v.ends, id) {
							break
						}
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "µs/median")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "µs/p99")
				b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "µs/max")
			})
		})
	}
}

// BenchmarkWarm measures a mask and a token in states that were seen before.
func BenchmarkWarm(b *testing.B) {
	vocabularies(b, func(b *testing.B, v *vocabulary) {
		g := compiled(b, schemaSpec(person), v)
		doc := `{"name": "` + strings.Repeat("Ada ", 20) + `", "age": 36, "role": "admin", "address": {"street": "1 Low Road", "city": "London"}, "note": null}`
		var ids []int32
		r := rand.New(rand.NewPCG(1, 1))
		for at := 0; at < len(doc); {
			id, n := g.cut(r, doc[at:])
			ids, at = append(ids, id), at+n
		}
		mask := make([]uint64, g.Words())
		i, s := 0, g.Start()
		b.ReportAllocs()
		for b.Loop() {
			if i == len(ids) {
				i, *s = 0, State{g: g, at: g.begin}
			}
			s.Allowed(mask)
			if !s.Push(ids[i]) {
				b.Fatal(i)
			}
			i++
		}
	})
}

// TestSteadyStateAllocatesNothing holds G5.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	g := compiled(t, schemaSpec(person), recallVocabulary())
	doc := `{"name": "Ada", "age": 36, "role": "admin", "address": {"street": "1 Low Road", "city": "London"}, "note": null}`
	r := rand.New(rand.NewPCG(1, 1))
	var ids []int32
	for at := 0; at < len(doc); {
		id, n := g.cut(r, doc[at:])
		ids, at = append(ids, id), at+n
	}
	mask := make([]uint64, g.Words())
	s := g.Start()
	if n := testing.AllocsPerRun(3, func() {
		*s = State{g: g, at: g.begin}
		for _, id := range ids {
			s.Allowed(mask)
			if !s.Push(id) {
				t.Fatal("refused")
			}
		}
	}); n != 0 {
		t.Fatalf("%v allocations in %d tokens", n, len(ids))
	}
}

// TestForgettingChangesNothing holds G4: a grammar that forgets its states all the time gives the
// masks of one that never does.
func TestForgettingChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 14))}
		spec := schemaSpec(m.document().schema)
		g, other := compiled(t, spec, recallVocabulary()), compiled(t, spec, recallVocabulary())
		s := other.Start()
		mask := make([]uint64, other.Words())
		ids := walk(t, g, m.Rand, 25, nil)
		again := g.Start()
		want := make([]uint64, g.Words())
		for _, id := range ids {
			other.m.forget()
			s.Allowed(mask)
			again.Allowed(want)
			if !slices.Equal(mask, want) || !s.Push(id) || !again.Push(id) {
				t.Fatalf("seed %d: forgetting changed a state of %s", seed, spec.Schema)
			}
		}
	}
}

// TestAStateHoldsNothingThatWasForgotten: a room that waits holds its own state alone, so what is kept
// is bounded however many rooms wait since different times.
func TestAStateHoldsNothingThatWasForgotten(t *testing.T) {
	g := compiled(t, schemaSpec(person), recallVocabulary())
	s, mask := g.Start(), make([]uint64, g.Words())
	for range 3 {
		s.Allowed(mask)
		if !s.Push(members(mask)[0]) {
			t.Fatal("an allowed token is refused")
		}
		s.Allowed(mask)
		met := func(l *live) bool {
			return slices.ContainsFunc(l.next, func(n *live) bool { return n != nil && n != &dead })
		}
		if !met(s.at) {
			t.Fatal("nothing was met from the state: the test shows nothing")
		}
		g.m.forget()
		if met(s.at) || met(g.begin) {
			t.Error("a state holds what was met from it")
		}
	}
}

// BenchmarkMaskHostile measures the longest search for a mask in specs that ask for much: what one
// room may cost the step of all. Of several walks of the same tokens the fastest counts, so that
// what else the machine does is left out.
func BenchmarkMaskHostile(b *testing.B) {
	const walks, tokens = 5, 30
	vocabularies(b, func(b *testing.B, v *vocabulary) {
		for name, spec := range hostile() {
			if spec.Validate() != "" {
				continue
			}
			b.Run(name, func(b *testing.B) {
				mask, took := make([]uint64, v.words), [tokens]time.Duration{}
				for b.Loop() {
					for walk := range walks {
						g, err := compile(spec, v)
						if err != nil {
							b.Fatal(err)
						}
						r, s := rand.New(rand.NewPCG(1, 2)), g.Start()
						for i := range took {
							from := time.Now()
							s.Allowed(mask)
							if d := time.Since(from); walk == 0 || d < took[i] {
								took[i] = d
							}
							all := members(mask)
							if len(all) == 0 || !s.Push(all[r.IntN(len(all))]) || s.ended {
								break
							}
						}
					}
				}
				b.ReportMetric(float64(slices.Max(took[:]).Nanoseconds())/1e6, "ms/max")
			})
		}
	})
}
