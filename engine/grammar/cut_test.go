package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// letters is a vocabulary of all texts of up to four of twelve letters.
func letters() *vocabulary {
	texts := []string{"<end>"}
	level := []string{""}
	for range 4 {
		var next []string
		for _, s := range level {
			for c := 'a'; c <= 'l'; c++ {
				next = append(next, s+string(c))
			}
		}
		texts, level = append(texts, next...), next
	}
	return vocabularyOf(texts, []int32{0})
}

// TestAMaskThatTakesTooLongIsCut: where every token leads to a state of its own the search ends within
// its bound, and so does what it keeps; single bytes stay allowed (G1), and the mask is the same in a
// grammar that has met other states (G4).
func TestAMaskThatTakesTooLongIsCut(t *testing.T) {
	v := letters()
	spec := hostile()["many histories"]
	g, other := compiled(t, spec, v), compiled(t, spec, v)
	s, again := g.Start(), other.Start()
	mask, want := make([]uint64, v.words), make([]uint64, v.words)
	r, cut := rand.New(rand.NewPCG(1, 1)), 0
	for range 6 {
		s.Allowed(mask)
		if g.m.work < 0 {
			cut++
		}
		if least := -(workPerStep + 2*visitsMost); g.m.work < least*256 || g.m.kept > keptMost+4<<20 {
			t.Fatalf("%d of the work is left, %d bytes are kept", g.m.work, g.m.kept)
		}
		other.m.forget()
		again.Allowed(want)
		if !slices.Equal(mask, want) {
			t.Fatal("a mask that was cut depends on what was met before")
		}
		for id := int32(1); id <= 12; id++ { // of one letter: any may come, until the end
			if !s.Done() && mask[id>>6]&(1<<(id&63)) == 0 {
				t.Fatalf("%q is not allowed", v.texts[id])
			}
		}
		all := members(mask)
		id := all[r.IntN(len(all))]
		if !s.Push(id) || !again.Push(id) {
			t.Fatal("an allowed token is refused")
		}
		if s.ended || s.Done() {
			break
		}
	}
	if cut == 0 {
		t.Error("no mask was cut: the test shows nothing")
	}
}

// TestUsualMasksAreNotCut: documents of a schema as applications have them take a small part of what a
// search may.
func TestUsualMasksAreNotCut(t *testing.T) {
	v := recallVocabulary()
	for _, spec := range []*Spec{schemaSpec(person), {Kind: KindObject}, {Kind: KindSequence, Parts: []Part{{Until: "</think>"}, {Schema: json.RawMessage(person)}}}} {
		for seed := range uint64(5) {
			g, r := compiled(t, spec, v), rand.New(rand.NewPCG(seed, 3))
			s, mask := g.Start(), make([]uint64, v.words)
			for range 150 {
				s.Allowed(mask)
				if g.m.work < maskWorkMost/2 {
					t.Fatalf("%s: %d of %d of the work is left", spec.Kind, g.m.work, maskWorkMost)
				}
				all := members(mask)
				if !s.Push(all[r.IntN(len(all))]) || s.ended {
					break
				}
			}
		}
	}
}
