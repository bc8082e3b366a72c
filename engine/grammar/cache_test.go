package grammar

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
)

func TestCacheCompilesOnceAndForgetsTheOldest(t *testing.T) {
	c := newCache(recallVocabulary())
	spec := func(i int) *Spec { return &Spec{Kind: KindRegex, Regex: "x" + strconv.Itoa(i)} }
	var got [8]*Grammar
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = c.Get(spec(0)) })
	}
	wg.Wait()
	for _, g := range got {
		if g == nil || g != got[0] {
			t.Fatal("one Spec was compiled twice")
		}
	}
	for i := 1; i <= cacheMost; i++ {
		if _, err := c.Get(spec(i)); err != nil {
			t.Fatal(err)
		}
	}
	n, bytes, hits, misses := c.Stats()
	if n != cacheMost || bytes <= 0 || hits != 7 || misses != cacheMost+1 {
		t.Fatalf("%d grammars of %d bytes, %d hits, %d misses", n, bytes, hits, misses)
	}
	if g, _ := c.Get(spec(0)); g == got[0] {
		t.Fatal("the oldest was kept beyond the bound")
	}
}

// What is known is there while something else is being compiled, and counts as used; what is not known,
// or is just being compiled, is no reason to wait.
func TestWhatIsKnownIsThereAtOnce(t *testing.T) {
	c := newCache(recallVocabulary())
	a, b := &Spec{Kind: KindRegex, Regex: "a"}, &Spec{Kind: KindRegex, Regex: "b"}
	if _, ok := c.Known(a); ok {
		t.Error("a grammar that nobody asked for is known")
	}
	want, err := c.Get(a)
	if err != nil {
		t.Fatal(err)
	}
	under, hold := make(chan struct{}), make(chan struct{})
	text, _ := json.Marshal(b)
	e := c.entry(sha256.Sum256(text))
	go e.once.Do(func() { close(under); <-hold }) // b is being compiled
	<-under
	if g, ok := c.Known(a); !ok || g != want {
		t.Error("a grammar that is there is not known")
	}
	if _, ok := c.Known(b); ok {
		t.Error("a grammar that is being compiled is known")
	}
	close(hold)
	if _, _, hits, misses := c.Stats(); hits != 1 || misses != 2 {
		t.Errorf("%d hits, %d misses; want 1 and 2", hits, misses)
	}
}

func TestCacheKeepsNothingThatIsRefused(t *testing.T) {
	c := newCache(recallVocabulary())
	for range 2 {
		if _, err := c.Get(&Spec{Kind: KindRegex, Regex: "("}); err == nil {
			t.Fatal("compiled")
		}
	}
	if n, _, hits, misses := c.Stats(); n != 0 || hits != 0 || misses != 2 {
		t.Fatal(n, hits, misses)
	}
}

func TestStatesOfOneGrammarRunBesideEachOther(t *testing.T) {
	g := compiled(t, schemaSpec(person), recallVocabulary())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := g.Start()
			mask := make([]uint64, g.Words())
			for range 50 {
				s.Allowed(mask)
				all := members(mask)
				if !s.Push(all[len(all)/2]) {
					t.Error("an allowed token is refused")
					return
				}
			}
		})
	}
	wg.Wait()
}

// A Spec at which compiling panicked is an error for whoever asks next, never a grammar that is none:
// an answer without its form would look like any other.
func TestWhatBrokeDownIsNoGrammar(t *testing.T) {
	c := newCache(nil) // without a vocabulary nothing can be compiled
	s := &Spec{Kind: KindRegex, Regex: "a"}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("compiling did not panic: the test shows nothing")
			}
		}()
		c.Get(s)
	}()
	if g, err := c.Get(s); g != nil || err == nil {
		t.Errorf("%v, %v, want an error", g, err)
	}
	if n, _, _, _ := c.Stats(); n != 0 {
		t.Errorf("%d grammars are kept, want none", n)
	}
}
