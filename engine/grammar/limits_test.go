package grammar

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestAsManyOptionalPropertiesAsAreAllowed: at the bound none is lost (G3), and beyond it the schema
// is refused.
func TestAsManyOptionalPropertiesAsAreAllowed(t *testing.T) {
	object := func(n int, more string) *Spec {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"p%d":{"type":"integer"}`, i))
		}
		return schemaSpec(`{"type":"object","properties":{` + strings.Join(names, ",") + `}` + more + `}`)
	}
	r := rand.New(rand.NewPCG(1, 15))
	for _, n := range []int{600, propertiesMost} {
		for _, more := range []string{"", `,"additionalProperties":{"type":"integer"}`} {
			g := compiled(t, object(n, more), recallVocabulary())
			for _, text := range []string{`{}`, `{"p0":1}`, `{"p5": 1, "p400":2}`, fmt.Sprintf(`{"p%d":1}`, n-1), fmt.Sprintf("{\n \"p0\": 7,\n \"p%d\": 8}", n-1)} {
				if why, ok := accepts(g, r, text); !ok {
					t.Errorf("%d properties%s: %s: %s", n, more, text, why)
				}
			}
			if _, ok := accepts(g, r, `{"p5":1,"p4":2}`); ok {
				t.Error("another order is accepted")
			}
		}
	}
	if msg := object(propertiesMost+1, "").Validate(); !strings.Contains(msg, "properties, allowed are 1024") {
		t.Error(msg)
	}
}

// TestWhatIsKeptIsCounted: what a grammar says that it takes is near what it takes.
func TestWhatIsKeptIsCounted(t *testing.T) {
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	v := recallVocabulary()
	specs := hostile()
	for _, name := range []string{"many tools", "long required", "many histories", "properties that recur", "large enum"} {
		spec := specs[name]
		before := heap()
		g, err := compile(spec, v)
		if err != nil {
			t.Fatal(name, err)
		}
		r, mask := rand.New(rand.NewPCG(1, 16)), make([]uint64, g.Words())
		for range 20 {
			s := g.Start()
			for range 10 {
				s.Allowed(mask)
				all := members(mask)
				if !s.Push(all[r.IntN(len(all))]) || s.ended {
					break
				}
			}
		}
		took, says := heap()-before, g.size()
		if took > 1<<20 && (says < took*2/3 || says > took*2) {
			t.Errorf("%s: %d bytes, counted are %d", name, took, says)
		}
		if testing.Verbose() {
			t.Logf("%s: %d bytes, counted are %d", name, took, says)
		}
		runtime.KeepAlive(g)
	}
}

// TestTokensWithoutALogitAreNone: a way that only a token without a logit could go is none (G1).
func TestTokensWithoutALogitAreNone(t *testing.T) {
	v := recallVocabulary()
	tok := recallTokenizer()
	if len(v.ends) == 0 || int(slices.Max(v.ends)) >= tok.Vocab() {
		t.Fatal(v.ends)
	}
	for _, n := range []int{0, int(slices.Min(v.ends)), tok.Vocab() - 1, tok.Vocab(), tok.Vocab() + 99} {
		less := newVocabulary(tok, n)
		if want := min(n, tok.Vocab()); len(less.texts) != want || less.words != (want+63)/64 {
			t.Errorf("%d logits: %d tokens, %d words", n, len(less.texts), less.words)
		}
		for _, id := range less.ends {
			if int(id) >= n {
				t.Errorf("%d logits: the end is %d", n, id)
			}
		}
	}
	if _, err := Compile(&Spec{Kind: KindObject}, tok, int(slices.Min(v.ends))); err == nil && len(v.ends) == 1 {
		t.Error("a model that cannot end is taken")
	}
}
