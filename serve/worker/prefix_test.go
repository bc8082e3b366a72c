package worker

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"baton/core/blocks"
	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/recall"
	"baton/serve/leg"
)

// cacheOf scrapes how many rooms found a part of their prompt, and how many blocks gave way.
func cacheOf(t testing.TB, w *Worker) (hits, evicted int) {
	t.Helper()
	_, text := get(t, w, "/metrics")
	read := func(name string) int {
		m := regexp.MustCompile(name + `\{[^}]*\} (\S+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in the metrics", name)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	return read("baton_prefix_hits_total"), read("baton_prefix_evictions_total")
}

// again is the same request in another room.
func again(r *rand.Rand, q leg.Request) leg.Request {
	q.Room = newRoom(r)
	return q
}

// TestTheSamePromptAgainComputesItsEnd: the second time a prompt of 1,000 tokens is asked, its 62
// full blocks are there, and 8 tokens are computed. The answer is the same, and says so.
func TestTheSamePromptAgainComputesItsEnd(t *testing.T) {
	p, f := start(t, Prefill, 256)
	d, _ := start(t, Decode, 256)
	r := rand.New(rand.NewPCG(31, 32))
	q := ask(r, 1000, 20, f.vocab)
	want := oracle(q.Tokens, 20, f.vocab)
	for i, cached := range []int{0, 992, 992} {
		before, sent := f.tokens.Load(), p.linkStat().SentBytes
		pre, dec := both(t, p, d, again(r, q), p.Link())
		if got := dec.ended(room.NoCause).ids; !slices.Equal(got, want) {
			t.Errorf("time %d: %v, want %v", i+1, got, want)
		}
		pre.ended(room.NoCause)
		if n := f.tokens.Load() - before; n != int64(1000-cached) {
			t.Errorf("time %d: %d tokens were computed, want %d", i+1, n, 1000-cached)
		}
		// Decode has found them too, and asks for the last block alone.
		if n := p.linkStat().SentBytes - sent; n != int64(63-cached/16)*rowBytes*16 {
			t.Errorf("time %d: %d bytes of KV were sent, want %d blocks", i+1, n, 63-cached/16)
		}
		if pre.end.Cached != cached || dec.end.Cached != cached {
			t.Errorf("time %d: the legs say that %d and %d tokens were cached, want %d", i+1, pre.end.Cached, dec.end.Cached, cached)
		}
	}
	if hits, _ := cacheOf(t, p); hits != 2 {
		t.Errorf("%d hits are counted, want 2", hits)
	}
	empty(t, p, d)
	if b := look(t, p).Worker.Blocks; b.Cached != 62 {
		t.Errorf("%d blocks are cached, want 62", b.Cached)
	}
}

// TestAUnifiedWorkerFindsThePrompt: the same where prompts are computed and answered in one place.
func TestAUnifiedWorkerFindsThePrompt(t *testing.T) {
	u, f := start(t, Unified, 256)
	r := rand.New(rand.NewPCG(37, 38))
	q := ask(r, 1000, 20, f.vocab)
	want := oracle(q.Tokens, 20, f.vocab)
	for i, cached := range []int{0, 992, 992} {
		before := f.tokens.Load()
		c := open(t, u, Decode, again(r, q)).ended(room.NoCause)
		if !slices.Equal(c.ids, want) {
			t.Errorf("time %d: %v, want %v", i+1, c.ids, want)
		}
		// Of 20 tokens the last needs no KV.
		if n := f.tokens.Load() - before; n != int64(1000-cached+19) || c.end.Cached != cached {
			t.Errorf("time %d: %d tokens were computed, %d are said to be cached; want %d and %d", i+1, n, c.end.Cached, 1000-cached+19, cached)
		}
	}
	if hits, _ := cacheOf(t, u); hits != 2 {
		t.Errorf("%d hits are counted, want 2", hits)
	}
	empty(t, u)
}

// TestUnifiedRoomsSharePrefixesUnderPressure: many prompts that begin alike, in a pool that is too
// small for them, with rooms that are retracted and some that are given up. Nobody reads what is
// not the KV of his tokens.
func TestUnifiedRoomsSharePrefixesUnderPressure(t *testing.T) {
	u, f := start(t, Unified, 24, sizes(4, 64, 32), func(c *Config) { c.Sizes.AheadTokens = 1 })
	r := rand.New(rand.NewPCG(39, 40))
	stock := ask(r, 150, 1, f.vocab).Tokens
	turns := make(chan struct{}, 12)
	var all sync.WaitGroup
	for i := range 300 {
		q := ask(r, 1+r.IntN(200), 1+r.IntN(60), f.vocab)
		if r.IntN(2) == 0 {
			copy(q.Tokens, stock[:r.IntN(len(stock))])
		}
		cutAt := -1
		if r.IntN(4) == 0 {
			cutAt = r.IntN(20)
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			c := open(t, u, Decode, q)
			if cutAt >= 0 {
				c.after(cutAt)
				c.cancel()
			}
			within(t, "the leg to end", c.over)
			want := oracle(q.Tokens, q.Params.MaxTokens, f.vocab)
			if len(c.ids) > len(want) || !slices.Equal(c.ids, want[:len(c.ids)]) || cutAt < 0 && len(c.ids) != len(want) {
				t.Errorf("room %d: %v, want %v", i, c.ids, want)
			}
		})
	}
	all.Wait()
	empty(t, u)
	hits, evicted := cacheOf(t, u)
	if hits == 0 || evicted == 0 {
		t.Errorf("%d hits, %d evictions: the test shows nothing", hits, evicted)
	}
	t.Log(hits, evicted)
}

// TestWhoMayNotFindAPrefix: another salt, another beginning, a worker without a cache, and
// whoever comes behind a step that failed.
func TestWhoMayNotFindAPrefix(t *testing.T) {
	p, f := start(t, Prefill, 256)
	d, _ := start(t, Decode, 256)
	off, g := start(t, Prefill, 256, func(c *Config) { c.NoPrefixCache = true })
	r := rand.New(rand.NewPCG(33, 34))
	computes := func(what string, w *Worker, f *fake, q leg.Request, want int) {
		t.Helper()
		before := f.tokens.Load()
		pre, dec := both(t, w, d, again(r, q), w.Link())
		pre.ended(room.NoCause)
		if got := dec.ended(room.NoCause).ids; !slices.Equal(got, oracle(q.Tokens, 5, f.vocab)) {
			t.Errorf("%s: the answer is wrong", what)
		}
		if n := f.tokens.Load() - before; n != int64(want) {
			t.Errorf("%s computes %d tokens, want %d", what, n, want)
		}
	}
	q := ask(r, 100, 5, f.vocab)
	f.failOnce(errors.New("broken"))
	pre, dec := both(t, p, d, again(r, q), p.Link())
	pre.ended(room.Internal)
	dec.ended(room.Internal)
	computes("the first that comes home", p, f, q, 100)
	computes("the second", p, f, q, 4)
	other := q
	other.Salt = "tenant"
	computes("another salt", p, f, other, 100)
	computes("another salt again", p, f, other, 4)
	first := q
	first.Tokens = slices.Clone(q.Tokens)
	first.Tokens[0]++
	computes("another first token", p, f, first, 100)
	longer := q
	longer.Tokens = append(slices.Clone(q.Tokens[:50]), ask(r, 30, 1, f.vocab).Tokens...)
	computes("the same 50 tokens", p, f, longer, 80-48)
	computes("a worker without a cache", off, g, q, 100)
	computes("a worker without a cache again", off, g, q, 100)
}

// TestKeysAreAChain: two prompts have the keys of what they begin with in common and no other,
// and a key belongs to one worker's life and one salt.
func TestKeysAreAChain(t *testing.T) {
	one, two := newPrefixes(&Config{}), newPrefixes(&Config{})
	tokens := make([]int32, 70)
	other := slices.Clone(tokens)
	other[40] = 1 // in the third block
	a, b := keysOf(one, "", tokens), keysOf(one, "", other)
	if len(a) != 4 || !slices.Equal(a[:2], b[:2]) || a[2] == b[2] || a[3] == b[3] {
		t.Errorf("keys %v and %v", a, b)
	}
	if !slices.Equal(a, keysOf(one, "", tokens)) || keysOf(one, "x", tokens)[0] == a[0] || keysOf(two, "", tokens)[0] == a[0] {
		t.Error("a key depends on the salts and the tokens, and on nothing else")
	}
	_, chain := one.keys("", tokens[:20]) // one full block, and a part of the next
	for to := 21; to <= 64; to++ {
		if k := chain.next(tokens, to); (k == blocks.Key{}) != (to%room.BlockTokens != 0) || to == 32 && k != a[1] || to == 48 && k != a[2] {
			t.Errorf("at %d tokens the key of the text that grew is %v, want that of the prompt", to, k)
		}
	}
	if keysOf(one, "", tokens[:15]) != nil || keysOf(newPrefixes(&Config{NoPrefixCache: true}), "", tokens) != nil {
		t.Error("no full block, or no cache, means no key")
	}
}

// TestAFoundPrefixChangesNoBit: with the real engine, questions about the same facts find them,
// and tokens and log-probabilities are those of a worker without a cache.
func TestAFoundPrefixChangesNoBit(t *testing.T) {
	set := func(c *Config) { c.Sizes.ChunkTokens, c.Sizes.MaxRunning = 64, 4 }
	p, d := loadRecall(t, Prefill, set), loadRecall(t, Decode, set)
	off := loadRecall(t, Prefill, set, func(c *Config) { c.NoPrefixCache = true })
	f := recall.Open()
	tpl, err := chat.FromGGUF(f, p.served.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(35, 36))
	q, _ := conversation(t, tpl, r, 30)
	facts := recall.NewPrompt(r, 30)
	found := 0
	for range 6 {
		turn := facts.AskOne(r)
		if q.Tokens, err = tpl.Encode(facts.Messages(turn.Question)); err != nil {
			t.Fatal(err)
		}
		_, dec := both(t, p, d, again(r, q), p.Link())
		_, plain := both(t, off, d, again(r, q), off.Link())
		a, b := dec.ended(room.NoCause), plain.ended(room.NoCause)
		if a.text != turn.Answer || !slices.Equal(a.ids, b.ids) {
			t.Errorf("%q and without a cache %q, right is %q", a.text, b.text, turn.Answer)
		}
		for i := range a.logprobs {
			if a.logprobs[i].Logprob != b.logprobs[i].Logprob {
				t.Fatalf("token %d: log-probability %v, without a cache %v", i, a.logprobs[i].Logprob, b.logprobs[i].Logprob)
			}
		}
		if b.end.Cached != 0 {
			t.Errorf("a worker without a cache found %d tokens", b.end.Cached)
		}
		found += a.end.Cached
	}
	if found == 0 {
		t.Error("no question found the facts of another: the test shows nothing")
	}
}

func keysOf(p *prefixes, salt string, tokens []int32) []blocks.Key {
	keys, _ := p.keys(salt, tokens)
	return keys
}
