package worker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/checkpoint"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/engine/weights/gguf"
	"baton/serve/leg"
)

// loadRecall serves the embedded model, one engine thread per worker: three share the machine.
func loadRecall(t testing.TB, role string, options ...option) *Worker {
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
	c.Sizes.Threads = 1
	if c.Sizes.KVTokens == 0 {
		c.Sizes.KVTokens = 8192
	}
	s, err := load(c, p)
	if err != nil {
		t.Fatal(err)
	}
	return startServed(t, role, s, func(x *Config) { x.Sizes, x.NoPrefixCache = c.Sizes, c.NoPrefixCache })
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
	for _, kv := range []string{"bf16", "f32"} {
		t.Run(kv, func(t *testing.T) {
			set := func(c *Config) { c.Sizes.KV, c.Sizes.ChunkTokens, c.Sizes.MaxRunning = kv, 64, 4 }
			p, d, u := loadRecall(t, Prefill, set), loadRecall(t, Decode, set), loadRecall(t, Unified, set)
			f, err := gguf.Parse(recall.GGUF())
			if err != nil {
				t.Fatal(err)
			}
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
