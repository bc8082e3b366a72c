package worker

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/checkpoint"
	"baton/engine/grammar"
	"baton/engine/model"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/serve/leg"
	"baton/serve/observe"
)

// gated is an engine that does nothing before it may.
type gated struct {
	Engine
	open chan struct{} // closed: it may
}

func (g *gated) Step(items []model.Item) error {
	<-g.open
	return g.Engine.Step(items)
}

// pressed serves recall with a pool for two of the requests of crowd at full length; the engine
// begins when open is closed.
func pressed(t *testing.T, role string) (w *Worker, open chan struct{}) {
	t.Helper()
	p, err := checkpoint.Open("recall")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Role: role}.WithDefaults()
	c.Sizes.Threads, c.Sizes.KVTokens, c.Sizes.AheadTokens, c.Sizes.ChunkTokens = 1, crowdTokens*2, 16, 64
	s, err := load(c, p)
	if err != nil {
		t.Fatal(err)
	}
	open = make(chan struct{})
	s.Engine = &gated{s.Engine, open}
	return startServed(t, role, s, func(x *Config) { x.Sizes = c.Sizes }), open
}

// Sizes of the requests of crowd, in tokens.
const (
	crowdTokens = 256 // at most, of prompt and output
	crowdOutput = 120
)

// crowd makes requests with long outputs: greedy ones and drawn ones, with a stop string that has
// to be looked for all the time, and log-probabilities.
func crowd(t *testing.T, w *Worker, r *rand.Rand, n int) (all []leg.Request) {
	t.Helper()
	f := recall.Open()
	tpl, err := chat.FromGGUF(f, w.served.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		q, _ := conversation(t, tpl, r, 1+i%3)
		q.Params.IgnoreEOS, q.Params.MaxTokens, q.Params.Seed = true, crowdOutput, r.Uint64()
		q.Params.Stop = []string{"no word that it knows"}
		if i%2 == 1 {
			q.Params.Temperature = 1
		}
		switch i % 4 { // what looks back at output goes on looking
		case 1:
			q.Params.PresencePenalty, q.Params.FrequencyPenalty, q.Params.RepetitionPenalty = 0.5, 0.1, 1.1
		case 2:
			q.Params.MinTokens, q.Params.LogitBias = crowdOutput, []sample.Bias{{ID: 300, Add: 2}}
		case 3:
			q.Params.MinTokens, q.Params.Grammar = crowdOutput, &grammar.Spec{Kind: grammar.KindRegex, Regex: "([a-zA-Z]+[ .])*"}
		}
		if len(q.Tokens)+crowdOutput > crowdTokens {
			t.Fatalf("a prompt of %d tokens is too long for the test", len(q.Tokens))
		}
		all = append(all, q)
	}
	return all
}

// Many long requests at once on a pool that two of them fill: they are retracted and computed
// again, and nobody can tell from their answers. Every token, piece of text and log-probability is
// that of a worker without pressure, and at the end nothing is held.
func TestAnswersUnderPressureAreThoseWithout(t *testing.T) {
	const requests = 7
	calm := loadRecall(t, Unified, func(c *Config) { c.Sizes.AheadTokens = AheadMax })
	all := crowd(t, calm, rand.New(rand.NewPCG(31, 32)), requests)
	var want []*call
	for _, q := range all {
		want = append(want, open(t, calm, Decode, q).ended(room.NoCause))
	}
	if n := counter(t, calm, "baton_retractions_total"); n != 0 {
		t.Errorf("%v retractions where the whole output is reserved", n)
	}
	check := func(t *testing.T, w *Worker, got []*call) {
		t.Helper()
		for i, c := range got {
			c.ended(room.NoCause)
			if !slices.Equal(c.ids, want[i].ids) || c.text != want[i].text || len(c.ids) != crowdOutput {
				t.Errorf("request %d: %d tokens %q, without pressure %d tokens %q", i, len(c.ids), c.text, len(want[i].ids), want[i].text)
			}
			for k := range c.logprobs {
				if c.logprobs[k].Logprob != want[i].logprobs[k].Logprob {
					t.Errorf("request %d: token %d has log-probability %v, without pressure %v", i, k, c.logprobs[k].Logprob, want[i].logprobs[k].Logprob)
					break
				}
			}
			if u := c.end; u.PromptTokens != want[i].end.PromptTokens || u.OutputTokens != want[i].end.OutputTokens {
				t.Errorf("request %d: usage %+v, without pressure %+v", i, u, want[i].end)
			}
		}
		retractions, again := counter(t, w, "baton_retractions_total"), counter(t, w, "baton_recomputed_tokens_total")
		t.Logf("%v retractions, %v tokens computed again", retractions, again)
		if retractions == 0 || again == 0 {
			t.Errorf("%v retractions, %v tokens computed again: no pressure", retractions, again)
		}
		if n := counter(t, w, "baton_output_tokens_total"); n != requests*crowdOutput {
			t.Errorf("%v tokens of output were made, want %d", n, requests*crowdOutput)
		}
	}
	t.Run("unified", func(t *testing.T) {
		w, begin := pressed(t, Unified)
		var got []*call
		for _, q := range all {
			got = append(got, open(t, w, Decode, q).accepted())
		}
		close(begin)
		check(t, w, got)
		empty(t, w)
	})
	t.Run("pair", func(t *testing.T) {
		p := loadRecall(t, Prefill, func(c *Config) { c.Sizes.ChunkTokens = 64 })
		d, begin := pressed(t, Decode)
		var pre, got []*call
		for _, q := range all {
			x, y := both(t, p, d, q, p.Link())
			pre, got = append(pre, x), append(got, y.accepted())
		}
		// Those that the pool takes have their KV when decode begins; the others' legs go on.
		for _, c := range pre[:2] {
			c.ended(room.NoCause)
		}
		close(begin)
		check(t, d, got)
		empty(t, p, d)
	})
	empty(t, calm)
}

// A retracted room is seen to wait for memory, in its queue and by its name, and its client may
// leave. The older one is never touched.
func TestARetractedRoomIsSeenAndMayBeLeft(t *testing.T) {
	u, f := start(t, Unified, 3, func(c *Config) { c.Sizes.AheadTokens = 1 })
	r := rand.New(rand.NewPCG(5, 6))
	held, release := f.hold()
	older, younger := ask(r, 15, 30, f.vocab), ask(r, 15, 30, f.vocab)
	a := open(t, u, Decode, older).accepted()
	b := open(t, u, Decode, younger).accepted()
	row := func() (found observe.Room) {
		for _, x := range look(t, u).Rooms {
			if x.Room == younger.Room.String() {
				found = x
			}
		}
		return found
	}
	for steps := 0; row().Phase != "retracted"; steps++ { // a step at a time
		if steps > 20 {
			t.Fatalf("after %d steps the younger room is %+v", steps, row())
		}
		within(t, "a step", held)
		next, again := f.hold()
		release()
		held, release = next, again
	}
	x := row()
	if x.Queue != room.Waiting.String() || x.Poll != room.Transferring.String() || x.WaitsFor != "decode: blocks" {
		t.Errorf("the row of a retracted room is %+v", x)
	}
	if n := counter(t, u, "baton_retractions_total"); n != 1 {
		t.Errorf("%v retractions, want 1", n)
	}
	b.after(1)
	until(t, "its gateway hears that it waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.waits > 0
	})
	b.cancel()
	within(t, "the younger leg to end", b.over)
	until(t, "the retracted room has ended", func() bool { return row().Room == "" })
	release()
	a.ended(room.NoCause)
	if want := oracle(older.Tokens, 30, f.vocab); !slices.Equal(a.ids, want) {
		t.Errorf("the older room said %v, want %v", a.ids, want)
	}
	if want := oracle(younger.Tokens, 30, f.vocab); !slices.Equal(b.ids, want[:len(b.ids)]) {
		t.Errorf("the younger room said %v, want the beginning of %v", b.ids, want)
	}
	empty(t, u)
}

// counter reads one counter of a worker's metrics.
func counter(t *testing.T, w *Worker, name string) float64 {
	t.Helper()
	_, body := get(t, w, "/metrics")
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, name+"{"); ok {
			_, value, _ := strings.Cut(rest, "} ")
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("metrics lack %s", name)
	return 0
}
