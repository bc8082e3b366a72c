package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

// recallTokenizer is that of the embedded model.
var recallTokenizer = sync.OnceValue(func() *tokenizer.Tokenizer {
	f, err := gguf.Open("../recall/recall.gguf") // recall itself stands on this package
	if err != nil {
		panic(err)
	}
	defer f.Close() // a tokenizer shares no memory with its file
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		panic(err)
	}
	return tok
})

var recallVocabulary = sync.OnceValue(func() *vocabulary {
	return newVocabulary(recallTokenizer(), recallTokenizer().Vocab())
})

// RealModel opens a real model, or skips. Tests of package grammar_test set it: what looks for
// models stands on this package.
var RealModel func(t testing.TB) *gguf.File

var smollm2 struct {
	sync.Mutex
	v *vocabulary
}

// realVocabulary is the vocabulary of a real model with 49,152 tokens.
func realVocabulary(t testing.TB) *vocabulary {
	t.Helper()
	smollm2.Lock()
	defer smollm2.Unlock()
	if smollm2.v == nil {
		tok, err := tokenizer.FromGGUF(RealModel(t))
		if err != nil {
			t.Fatal(err)
		}
		smollm2.v = newVocabulary(tok, tok.Vocab())
	}
	return smollm2.v
}

func schemaSpec(schema string) *Spec { return &Spec{Kind: KindSchema, Schema: json.RawMessage(schema)} }

func compiled(t testing.TB, s *Spec, v *vocabulary) *Grammar {
	t.Helper()
	if msg := s.Validate(); msg != "" {
		t.Fatalf("%s%s%s: %s", s.Schema, s.Regex, s.Choice, msg)
	}
	g, err := compile(s, v)
	if err != nil {
		t.Fatalf("%s%s%s: %v", s.Schema, s.Regex, s.Choice, err)
	}
	if !strings.Contains(t.Name(), "Cut") { // masks of what is no attack are looked for to the end
		t.Cleanup(func() {
			if g.m.cuts > 0 {
				t.Errorf("%s%s%s: %d masks were cut", s.Schema, s.Regex, s.Choice, g.m.cuts)
			}
		})
	}
	return g
}

// accepts pushes text in random tokens and says whether it may end there.
func accepts(g *Grammar, r *rand.Rand, text string) (string, bool) {
	s := g.Start()
	for at := 0; at < len(text); {
		id, n := g.cut(r, text[at:])
		if n == 0 {
			return fmt.Sprintf("no token for %q", text[at:]), false
		}
		if !s.Push(id) {
			return fmt.Sprintf("refused %q after %q", text[at:at+n], text[:at]), false
		}
		at += n
	}
	if !s.at.accept {
		return fmt.Sprintf("%q may not end", text), false
	}
	return "", true
}

// cut returns a random token with which text begins.
func (g *Grammar) cut(r *rand.Rand, text string) (int32, int) {
	var ids []int32
	var lens []int
	for _, t := range []*tree{&g.m.plain, &g.m.other} {
		for i := int32(0); int(i) < len(t.nodes); {
			x := &t.nodes[i]
			if int(x.depth) >= len(text) || text[x.depth] != x.b {
				i = x.skip
				continue
			}
			for _, id := range t.ids[x.first : int(x.first)+int(x.n)] {
				ids, lens = append(ids, id), append(lens, int(x.depth)+1)
			}
			i++
		}
	}
	if len(ids) == 0 {
		return 0, 0
	}
	i := r.IntN(len(ids))
	return ids[i], lens[i]
}

// shortest returns for each node how many bytes the shortest way to the end of its rule has.
func shortest(m *machine) []int {
	const far = 1 << 30
	dist := make([]int, len(m.nodes))
	for i := range dist {
		dist[i] = far
	}
	dist[end] = 0
	for changed := true; changed; {
		changed = false
		for i := range m.nodes {
			x, d := &m.nodes[i], far
			switch x.kind {
			case nodeEnd:
				d = 0
			case nodeBytes:
				for _, e := range m.edgesOf(x) {
					if anyOf(&reachable(m).has, e.lo, e.hi) {
						d = min(d, 1+dist[e.to])
					}
				}
			case nodeSplit:
				for _, to := range m.targets(x) {
					d = min(d, dist[to])
				}
			case nodeCall:
				d = dist[m.startOf(x.rule)] + dist[x.to]
			case nodeRepeat:
				d = int(x.min)*dist[m.startOf(x.rule)] + dist[x.to]
			}
			if d = min(d, far); d < dist[i] {
				dist[i], changed = d, true
			}
		}
	}
	return dist
}

type reach struct{ has [256]bool }

func reachable(m *machine) *reach {
	var r reach
	for b := range r.has {
		r.has[b] = m.class[b] != 0
	}
	return &r
}

// left returns how many bytes the shortest end of a text at l has.
func left(m *machine, dist []int, l *live) int {
	if l.accept {
		return 0
	}
	best := 1 << 40
	for _, p := range l.places {
		n := dist[p.node]
		for f := p.at; f != nil; f = f.parent {
			x := &m.nodes[f.node]
			if x.kind != nodeRepeat {
				n += dist[f.node]
				continue
			}
			n += max(0, int(x.min-f.count))*dist[m.startOf(x.rule)] + dist[x.to]
		}
		best = min(best, n)
	}
	return best
}

// walk takes random allowed tokens, few of them long, then ends by the shortest way. It returns
// the ids.
func walk(t testing.TB, g *Grammar, r *rand.Rand, steps int, each func(s *State, mask []uint64)) []int32 {
	t.Helper()
	dist := shortest(g.m.machine)
	s := g.Start()
	mask := make([]uint64, g.Words())
	var ids []int32
	for {
		s.Allowed(mask)
		if each != nil {
			each(s, mask)
		}
		all := members(mask)
		if len(all) == 0 {
			t.Fatalf("a dead end after %q", g.textOf(ids))
		}
		id := all[r.IntN(len(all))]
		if len(ids) >= steps { // home
			best := left(g.m.machine, dist, g.m.adopt(s.at))
			for _, c := range all {
				if text := g.m.vocabulary.text(c); len(text) == 1 {
					next := g.m.adopt(g.m.step(g.m.adopt(s.at), g.m.class[text[0]]))
					if n := left(g.m.machine, dist, next); n < best {
						best, id = n, c
					}
				} else if slices.Contains(g.m.ends, c) {
					id = c
					break
				}
			}
			if len(ids) > steps+20000 {
				t.Fatalf("no end after %q, %d bytes left", g.textOf(ids), best)
			}
		}
		if !s.Push(id) {
			t.Fatalf("an allowed token (%q) is refused after %q", g.m.vocabulary.text(id), g.textOf(ids))
		}
		if slices.Contains(g.m.ends, id) {
			return ids
		}
		ids = append(ids, id)
	}
}

func members(mask []uint64) (ids []int32) {
	for i, w := range mask {
		for b := range 64 {
			if w>>b&1 != 0 {
				ids = append(ids, int32(i*64+b))
			}
		}
	}
	return ids
}

// naive computes a mask token by token.
func naive(s *State, mask []uint64) {
	clear(mask)
	for id := range int32(len(s.g.m.texts)) {
		if s.Clone().Push(id) {
			bitmap(mask).add(id)
		}
	}
}

func (g *Grammar) textOf(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(g.m.vocabulary.text(id))
	}
	return b.String()
}

// TestControlTokensAreNoText: in a text that may hold any character no control token of a vocabulary
// is allowed, whatever its name; the end is where the text may end.
func TestControlTokensAreNoText(t *testing.T) {
	f, err := gguf.Open("../recall/recall.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for expr, ends := range map[string]bool{"(?s).*": true, "(?s).*x": false} {
		g, err := Compile(&Spec{Kind: KindRegex, Regex: expr}, tok, tok.Vocab())
		if err != nil {
			t.Fatal(err)
		}
		mask, s, special := make([]uint64, g.Words()), g.Start(), 0
		s.Allowed(mask)
		for id := range int32(tok.Vocab()) {
			if !tok.IsSpecial(id) {
				continue
			}
			special++
			want := tok.IsEOS(id) && ends
			if got := mask[id>>6]>>(id&63)&1 == 1; got != want || s.Clone().Push(id) != want {
				t.Errorf("%s: token %d, %q: allowed %v, want %v", expr, id, tok.Text(id), got, want)
			}
		}
		if special < 3 {
			t.Errorf("%d special tokens: the test shows nothing", special)
		}
	}
}

// TestNothingFollowsTheEndOfAText: behind an end token no token is allowed or taken, not even the end,
// also where the text might have gone on.
func TestNothingFollowsTheEndOfAText(t *testing.T) {
	v := vocabularyOf([]string{"", "a", "b"}, []int32{0})
	g := compiled(t, &Spec{Kind: KindRegex, Regex: "a*"}, v)
	s, mask := g.Start(), make([]uint64, g.Words())
	if !s.Push(1) || !s.Push(0) || !s.Done() {
		t.Fatal("the end is not taken where the text may end")
	}
	if s.Allowed(mask); mask[0] != 0 || s.Push(1) || s.Push(0) {
		t.Errorf("behind the end %b is allowed", mask[0])
	}
}
