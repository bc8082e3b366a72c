package worker

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/checkpoint"
	"baton/engine/grammar"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/serve/leg"
)

// loadRecall serves the embedded model, one engine thread per worker: three share the machine.
func loadRecall(t testing.TB, role string, options ...option) *Worker {
	t.Helper()
	c, s := recallServed(t, role, options...)
	return startServed(t, role, s, func(x *Config) {
		x.Sizes, x.NoPrefixCache = c.Sizes, c.NoPrefixCache
		if c.Name == bare {
			x.Record, x.Canary = "", false
		}
	})
}

// bare is the name of a worker as it is served: without a recorder and without canaries.
const bare = "bare"

func recallServed(t testing.TB, role string, options ...option) (Config, *Served) {
	t.Helper()
	p, err := checkpoint.Open("recall")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Role: role}
	for _, o := range options {
		o(&c)
	}
	c = c.WithDefaults()
	if c.Sizes.Threads == 0 {
		c.Sizes.Threads = 1
	}
	if c.Sizes.KVTokens == 0 {
		c.Sizes.KVTokens = 8192
	}
	s, err := load(c, p)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// conversation makes the legs of one question and says the right answer.
func conversation(t testing.TB, tpl *chat.Template, r *rand.Rand, facts int) (leg.Request, string) {
	t.Helper()
	p := recall.NewPrompt(r, facts)
	turn := p.AskOne(r)
	tokens, err := tpl.Encode(p.Messages(turn.Question))
	if err != nil {
		t.Fatal(err)
	}
	params := sample.Default()
	params.Temperature, params.MaxTokens, params.Logprobs = 0, 40, 2
	return leg.Request{RID: "recall", Room: newRoom(r), Tokens: tokens, Params: params, LeftMS: time.Minute.Milliseconds()}, turn.Answer
}

// The whole way with the real engine: prompts of every length, both KV types, several at once;
// the pair's tokens and log-probabilities are the unified worker's bit for bit, and right.
func TestRecallAnswersRightlyThroughAPair(t *testing.T) {
	for _, kv := range []string{"bf16", "f32", "q8_0"} {
		t.Run(kv, func(t *testing.T) {
			set := func(c *Config) { c.Sizes.KV, c.Sizes.ChunkTokens, c.Sizes.MaxRunning = kv, 64, 4 }
			p, d, u := loadRecall(t, Prefill, set), loadRecall(t, Decode, set), loadRecall(t, Unified, set)
			f := recall.Open()
			tpl, err := chat.FromGGUF(f, u.served.Tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(21, 22))
			type asked struct {
				pre, dec, solo *call
				answer         string
			}
			var all []asked
			for _, facts := range []int{1, 2, 3, 5, 8, 13, 21, 34} {
				q, answer := conversation(t, tpl, r, facts)
				a := asked{answer: answer}
				a.pre, a.dec = both(t, p, d, q, p.Link())
				a.solo = open(t, u, Decode, q)
				all = append(all, a)
			}
			for _, a := range all {
				a.pre.ended(room.NoCause)
				dec, solo := a.dec.ended(room.NoCause), a.solo.ended(room.NoCause)
				if dec.text != a.answer || dec.end.Finish != "stop" {
					t.Errorf("the pair said %q (%s), right is %q", dec.text, dec.end.Finish, a.answer)
				}
				if !slices.Equal(dec.ids, solo.ids) {
					t.Errorf("pair %v, unified %v", dec.ids, solo.ids)
				}
				for i := range dec.logprobs {
					if dec.logprobs[i].Logprob != solo.logprobs[i].Logprob {
						t.Errorf("token %d: log-probability %v by the pair, %v unified", i, dec.logprobs[i].Logprob, solo.logprobs[i].Logprob)
						break
					}
				}
			}
			empty(t, p, d, u)
		})
	}
}

// Workers of which one is deterministic, or whose families of kernels differ, are not paired: their
// bits would differ, and a request that goes on elsewhere would notice.
func TestADeterministicWorkerWantsItsLike(t *testing.T) {
	p := loadRecall(t, Prefill)
	d := loadRecall(t, Decode, func(c *Config) { c.Deterministic = true })
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, 100)
	pre, dec := both(t, p, d, q, p.Link())
	if dec.ended(room.Internal); !strings.Contains(dec.end.Message, "kernels") {
		t.Errorf("the reason is %q", dec.end.Message)
	}
	pre.cancel()
	empty(t, p, d)
}

// A conversation finds what it has said itself: the next turn's prompt is the last one's with its
// answer, and of all that nothing is computed again but the last, incomplete block.
func TestTheNextTurnFindsTheAnswer(t *testing.T) {
	p, d, u := loadRecall(t, Prefill), loadRecall(t, Decode), loadRecall(t, Unified)
	r := rand.New(rand.NewPCG(61, 62))
	for where, turn := range map[string]func(q leg.Request) *call{
		"unified": func(q leg.Request) *call { return open(t, u, Decode, q).ended(room.NoCause) },
		"pair": func(q leg.Request) *call {
			_, dec := both(t, p, d, q, p.Link())
			return dec.ended(room.NoCause)
		},
	} {
		q := ask(r, 40, 57, u.served.Vocab)
		first := turn(q)
		next := q
		next.Room = newRoom(r)
		next.Tokens = append(append(slices.Clone(q.Tokens), first.ids...), 300, 301, 302)
		second := turn(next)
		if where == "unified" && second.end.Cached != 96 { // of 40 + 57 + 3; the last token's KV is not there
			t.Errorf("%s: %d tokens were found, want 96", where, second.end.Cached)
		}
		if where == "pair" {
			if n := counter(t, d, "baton_spared_tokens_total"); n != 96 {
				t.Errorf("the KV of %v tokens need not travel, want 96", n)
			}
		}
		next.Room = newRoom(r)
		fresh := loadRecall(t, Unified, func(c *Config) { c.NoPrefixCache = true })
		if want := open(t, fresh, Decode, next).ended(room.NoCause); !slices.Equal(second.ids, want.ids) {
			t.Errorf("%s: with its answer found it says %v, want %v", where, second.ids, want.ids)
		}
	}
	empty(t, p, d, u)
}

// A grammar that cannot be compiled is the client's mistake and is refused before the stream, at
// either worker.
func TestABadGrammarIsRefused(t *testing.T) {
	p, u := loadRecall(t, Prefill), loadRecall(t, Unified)
	for _, g := range []*grammar.Spec{{Kind: "yaml"}, {Kind: grammar.KindRegex, Regex: "("}, {Kind: grammar.KindSchema, Schema: json.RawMessage(`{"type":"strange"}`)}, {}} {
		for kind, w := range map[string]*Worker{Prefill: p, Decode: u} {
			q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, 100)
			q.Params.Grammar = g
			c := open(t, w, kind, q).ended(room.ClientError)
			if c.status != 400 || !strings.Contains(c.end.Message, "grammar") {
				t.Errorf("%+v: %d %q", g, c.status, c.end.Message)
			}
		}
	}
	if n := counter(t, u, "baton_grammars_total"); n != 4 {
		t.Errorf("%v grammars are counted as refused", n)
	}
	empty(t, p, u)
}

// Workers of different KV types must not be paired: the bytes mean something else.
func TestRecallWithOtherKVIsRefused(t *testing.T) {
	p := loadRecall(t, Prefill, func(c *Config) { c.Sizes.KV = "bf16" })
	d := loadRecall(t, Decode, func(c *Config) { c.Sizes.KV = "f32" })
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, 100)
	pre, dec := both(t, p, d, q, p.Link())
	dec.ended(room.Internal)
	pre.cancel()
	empty(t, p, d)
}
