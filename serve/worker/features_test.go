package worker

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/checkpoint"
	"baton/engine/grammar"
	"baton/engine/sample"
	"baton/serve/leg"
)

// feature is something that a request may ask of its output.
type feature struct {
	name   string
	change func(p *sample.Params)
	n      int
	check  func(t *testing.T, all [][]leg.Line, text []string, end *leg.End) // that it was there; by choice
}

func texts(bad func(text string) bool) func(*testing.T, [][]leg.Line, []string, *leg.End) {
	return func(t *testing.T, _ [][]leg.Line, text []string, _ *leg.End) {
		for i, s := range text {
			if bad(s) {
				t.Errorf("choice %d says %q", i, s)
			}
		}
	}
}

// free draws from the whole vocabulary and goes on to max_tokens, so that there is much to differ in.
func free(p *sample.Params) { p.Temperature, p.Seed, p.IgnoreEOS = 1.5, 77, true }

func features(t testing.TB) []feature {
	p, err := checkpoint.Open("recall")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	id := func(s string) int32 {
		ids := p.Tokenizer.Encode(s, false)
		if len(ids) != 1 {
			t.Fatalf("%q is %d tokens", s, len(ids))
		}
		return ids[0]
	}
	a, e, the := id("a"), id("e"), id(" the")
	used := func(want ...int32) func(*testing.T, [][]leg.Line, []string, *leg.End) {
		return func(t *testing.T, all [][]leg.Line, _ []string, _ *leg.End) {
			for i, lines := range all {
				for _, l := range lines {
					if !slices.Contains(want, l.IDs[0]) {
						t.Errorf("choice %d has the token %d", i, l.IDs[0])
					}
				}
			}
		}
	}
	return []feature{
		{name: "greedy", change: func(p *sample.Params) {}},
		{name: "greedy beyond the end", change: func(p *sample.Params) { p.IgnoreEOS = true }},
		{name: "drawn", change: free},
		{name: "drawn from few", change: func(p *sample.Params) { free(p); p.TopK, p.TopP, p.MinP = 40, 0.9, 0.01 }},
		{name: "repetition penalty", change: func(p *sample.Params) { p.IgnoreEOS, p.RepetitionPenalty = true, 1.7 }},
		{name: "presence and frequency penalty", change: func(p *sample.Params) { free(p); p.PresencePenalty, p.FrequencyPenalty = 1.5, 0.5 }},
		{name: "logit bias", change: func(p *sample.Params) { free(p); p.LogitBias = []sample.Bias{{ID: a, Add: 6}, {ID: e, Add: -100}} },
			check: texts(func(s string) bool { return !strings.Contains(s, "a") })},
		{name: "allowed tokens", change: func(p *sample.Params) {
			free(p)
			p.AllowedIDs = []int32{a, e, the}
			slices.Sort(p.AllowedIDs)
		}, check: used(a, e, the)},
		{name: "bad words", change: func(p *sample.Params) {
			free(p)
			p.AllowedIDs = []int32{a, e}
			slices.Sort(p.AllowedIDs)
			p.Bad = [][]int32{{a, a}, {e, e, e}}
		}, check: texts(func(s string) bool { return strings.Contains(s, "aa") || strings.Contains(s, "eee") })},
		{name: "min tokens", change: func(p *sample.Params) { p.Temperature, p.MinTokens = 0.5, 30 },
			check: func(t *testing.T, _ [][]leg.Line, _ []string, end *leg.End) {
				if end.OutputTokens < 30 {
					t.Errorf("%d tokens", end.OutputTokens)
				}
			}},
		{name: "stop tokens", change: func(p *sample.Params) { free(p); p.StopIDs = []int32{a, id(" code")}; p.MinTokens = 5 },
			check: func(t *testing.T, _ [][]leg.Line, text []string, end *leg.End) {
				if end.Finish != "stop" || end.Matched != " code" || strings.HasSuffix(text[0], " code") {
					t.Errorf("%q %q", end.Finish, end.Matched)
				}
			}},
		{name: "stop strings", change: func(p *sample.Params) {
			free(p)
			p.Stop = []string{"r.. codes", "qqqq", ".. cod", "ber.. cof"}
		}, check: func(t *testing.T, _ [][]leg.Line, text []string, end *leg.End) {
			if end.Finish != "stop" || end.Matched == "" || strings.Contains(text[0], end.Matched) {
				t.Errorf("%q %q", end.Finish, end.Matched)
			}
		}},
		{name: "a stop string that stays", change: func(p *sample.Params) {
			free(p)
			p.Stop, p.IncludeStop = []string{"r.. codes", "qqqq", ".. cod", "ber.. cof"}, true
		}, check: func(t *testing.T, _ [][]leg.Line, text []string, end *leg.End) {
			if end.Finish != "stop" || end.Matched == "" || !strings.HasSuffix(text[0], end.Matched) {
				t.Errorf("%q %q", end.Finish, end.Matched)
			}
		}},
		{name: "special tokens", change: func(p *sample.Params) {
			p.KeepSpecial, p.IgnoreEOS, p.LogitBias = true, true, []sample.Bias{{ID: 4, Add: 3}}
		}, check: texts(func(s string) bool { return !strings.Contains(s, "<|end|>") })},
		{name: "log-probabilities", change: func(p *sample.Params) { free(p); p.Logprobs, p.PresencePenalty = 20, 1 },
			check: func(t *testing.T, all [][]leg.Line, _ []string, _ *leg.End) {
				for _, l := range all[0] {
					if len(l.Logprobs) != 1 || len(l.Logprobs[0].Top) != 20 {
						t.Fatalf("%+v", l)
					}
				}
			}},
		{name: "a JSON object", change: func(p *sample.Params) { free(p); p.Grammar = &grammar.Spec{Kind: grammar.KindObject} }},
		{name: "a JSON schema", change: func(p *sample.Params) {
			p.Temperature, p.Seed, p.MaxTokens = 0.6, 2, 80
			p.Grammar = &grammar.Spec{Kind: grammar.KindSchema, Schema: json.RawMessage(
				`{"type":"object","properties":{"name":{"enum":["Rita","Edgar"]},"n":{"type":"integer","minimum":10,"maximum":99},"ok":{"type":"boolean"}},"required":["name","n","ok"],"additionalProperties":false}`)}
		}, check: func(t *testing.T, _ [][]leg.Line, text []string, end *leg.End) {
			var v struct {
				Name string
				N    int
				OK   *bool
			}
			if err := json.Unmarshal([]byte(text[0]), &v); err != nil || end.Finish != "stop" || v.N < 10 || v.N > 99 || v.OK == nil {
				t.Errorf("%q %s: %v", text[0], end.Finish, err)
			}
		}},
		{name: "a regular expression", change: func(p *sample.Params) {
			free(p)
			p.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: `[A-Z][a-z]{3,6} (is|was) [0-9]{2}\.`}
		}, check: texts(func(s string) bool {
			return !regexp.MustCompile(`^[A-Z][a-z]{3,6} (is|was) [0-9]{2}\.$`).MatchString(s)
		})},
		{name: "a choice", change: func(p *sample.Params) {
			free(p)
			p.Grammar = &grammar.Spec{Kind: grammar.KindChoice, Choice: []string{"acorn timber", "acorn timberland", "jungle ribbon"}}
		}, check: texts(func(s string) bool { return !strings.HasPrefix(s, "acorn timber") && s != "jungle ribbon" })},
		{name: "a sequence", change: func(p *sample.Params) {
			free(p)
			p.Grammar = &grammar.Spec{Kind: grammar.KindSequence, Parts: []grammar.Part{{Text: "<call>"},
				{Schema: json.RawMessage(`{"type":"object","properties":{"city":{"enum":["Oslo","Lima"]}},"required":["city"],"additionalProperties":false}`)}, {Text: "</call>"}}}
		}, check: texts(func(s string) bool { return !strings.HasPrefix(s, "<call>{") || !strings.HasSuffix(s, "}</call>") })},
		{name: "a grammar with penalties, bias and log-probabilities", change: func(p *sample.Params) {
			free(p)
			p.RepetitionPenalty, p.FrequencyPenalty, p.LogitBias, p.Logprobs, p.MinTokens = 1.3, 1, []sample.Bias{{ID: a, Add: 5}}, 3, 12
			p.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: `[a-z ]{5,60}`}
		}, check: texts(func(s string) bool { return len(s) < 12 || !strings.Contains(s, "a") })},
		{name: "three choices of a grammar", n: 3, change: func(p *sample.Params) {
			free(p)
			p.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: `[a-z]{3}( [a-z]+){2,4}\.`}
		}, check: differ},
		{name: "three choices", n: 3, change: func(p *sample.Params) { free(p); p.Logprobs = 1 }, check: differ},
		{name: "eight choices that end by themselves", n: 8, change: func(p *sample.Params) { free(p); p.Stop, p.MinTokens = []string{"a", "w"}, 12 }, check: differ},
		{name: "two choices with all that looks back", n: 2, change: func(p *sample.Params) {
			free(p)
			p.PresencePenalty, p.RepetitionPenalty, p.MinTokens, p.Stop = 1, 1.2, 10, []string{"e"}
			p.LogitBias = []sample.Bias{{ID: a, Add: 2}}
		}, check: differ},
	}
}

func differ(t *testing.T, _ [][]leg.Line, text []string, end *leg.End) {
	if len(end.Choices) != len(text) || end.Finish != "" {
		t.Errorf("the end is %+v", end)
	}
	for i, c := range end.Choices {
		if c.Finish == "" {
			t.Errorf("choice %d has no finish", i)
		}
		if i > 0 && text[i] == text[0] {
			t.Errorf("choices 0 and %d both say %q", i, text[i])
		}
	}
}

// byChoice sorts what a call brought.
func byChoice(c *call, n int) (all [][]leg.Line, text []string) {
	all, text = make([][]leg.Line, n), make([]string, n)
	for _, l := range c.lines {
		all[l.Choice] = append(all[l.Choice], l)
		text[l.Choice] += l.Text
	}
	return all, text
}

// said prints all that a gateway learns of the output, piece by piece, choice by choice.
func said(c *call, n int) string {
	all, _ := byChoice(c, n)
	end := *c.end
	end.Cached = 0
	b, err := json.MarshalIndent([]any{all, end}, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// askFor makes the leg of a feature: a question of a few facts, answered at some length.
func askFor(t testing.TB, tpl *chat.Template, f *feature, out int) leg.Request {
	t.Helper()
	q, _ := conversation(t, tpl, rand.New(rand.NewPCG(101, 102)), 2)
	q.Room = newRoom(rand.New(rand.NewPCG(rand.Uint64(), 1)))
	p := sample.Default()
	p.Temperature, p.MaxTokens = 0, out
	f.change(&p)
	q.Params, q.N = p, f.n
	if param, message := p.Validate(1 << 20); param != "" {
		t.Fatalf("%s: %s", f.name, message)
	}
	return q
}

func recallTemplate(t testing.TB) *chat.Template {
	t.Helper()
	p, err := checkpoint.Open("recall")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Template
}

const featureTokens = 40 // of output

// Every feature through a pair, all of them at once, gives what a worker alone gives that serves them
// one after the other without a cache: tokens, text by pieces, log-probabilities, finish and usage.
// Again, it gives the same with its prompt found in the caches.
func TestEveryFeatureThroughAPairIsThatOfOneWorker(t *testing.T) {
	alone := loadRecall(t, Unified, func(c *Config) { c.NoPrefixCache, c.Sizes.MaxRunning = true, 8 })
	set := func(c *Config) { c.Sizes.ChunkTokens, c.Sizes.MaxRunning, c.Sizes.AheadTokens = 32, 16, 16 }
	p, d := loadRecall(t, Prefill, set), loadRecall(t, Decode, set)
	u := loadRecall(t, Unified, set, func(c *Config) { c.Name, c.Sizes.Threads = bare, 2 }) // of which each picks a part
	tpl := recallTemplate(t)
	all := features(t)
	want := make([]*call, len(all))
	for i := range all {
		f := &all[i]
		want[i] = open(t, alone, Decode, askFor(t, tpl, f, featureTokens)).ended(room.NoCause)
		if f.check != nil {
			t.Run(f.name, func(t *testing.T) {
				lines, text := byChoice(want[i], max(f.n, 1))
				f.check(t, lines, text, want[i].end)
			})
		}
	}
	for _, round := range []string{"first", "again"} {
		var pre, pair, solo []*call
		for i := range all {
			q := askFor(t, tpl, &all[i], featureTokens)
			x, y := both(t, p, d, q, p.Link())
			pre, pair, solo = append(pre, x), append(pair, y), append(solo, open(t, u, Decode, askFor(t, tpl, &all[i], featureTokens)))
		}
		for i := range all {
			n := max(all[i].n, 1)
			pre[i].ended(room.NoCause)
			for where, c := range map[string]*call{"pair": pair[i], "unified": solo[i]} {
				if got, want := said(c.ended(room.NoCause), n), said(want[i], n); got != want {
					t.Errorf("%s, %s, %s: %s\nwant %s", all[i].name, where, round, firstDiff(got, want), firstDiff(want, got))
				}
				if round == "again" && c.end.Cached == 0 {
					t.Errorf("%s, %s: nothing was found of a prompt that was here", all[i].name, where)
				}
			}
		}
	}
	empty(t, p, d, u, alone)
}

// firstDiff returns the part of a where it begins to differ from b.
func firstDiff(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("…%s", a[max(0, i-200):min(len(a), i+200)])
}

// A request that is cut at any token, and goes on at workers that know nothing of it from its prompt
// and the tokens so far, says the rest of what it would have said: text that was held back, stop
// strings, penalties, seeds and usage included.
func TestARequestCutAtAnyTokenGoesOn(t *testing.T) {
	set := func(c *Config) {
		c.NoPrefixCache, c.Deterministic, c.Sizes.MaxRunning, c.Sizes.ChunkTokens = true, true, 16, 64
	}
	whole, fresh := loadRecall(t, Unified, set), loadRecall(t, Unified, set)
	p, d := loadRecall(t, Prefill, set), loadRecall(t, Decode, set)
	tpl := recallTemplate(t)
	for _, f := range features(t) {
		if f.n > 1 {
			continue
		}
		q := askFor(t, tpl, &f, featureTokens)
		want := open(t, whole, Decode, q).ended(room.NoCause)
		type rest struct {
			at        int
			solo, dec *call
		}
		var all []rest
		for at := 1; at < len(want.ids); at++ {
			q := askFor(t, tpl, &f, featureTokens)
			q.Tokens, q.Generated = append(q.Tokens, want.ids[:at]...), at
			r := rest{at: at}
			if at%5 == 1 {
				_, r.dec = both(t, p, d, q, p.Link())
			}
			r.solo = open(t, fresh, Decode, q)
			all = append(all, r)
			if len(all)%16 == 0 {
				within(t, "a few", r.solo.over)
			}
		}
		for _, r := range all {
			for _, c := range []*call{r.solo, r.dec} {
				if c == nil {
					continue
				}
				c.ended(room.NoCause)
				cut := call{lines: want.lines[r.at:], end: want.end}
				if got, want := said(c, 1), said(&cut, 1); got != want {
					t.Fatalf("%s, cut at %d: %s\nwant %s", f.name, r.at, firstDiff(got, want), firstDiff(want, got))
				}
			}
		}
	}
	empty(t, whole, fresh, p, d)
}

// What cannot go on is refused, with what is wrong.
func TestOutputThatCannotGoOnIsRefused(t *testing.T) {
	u := loadRecall(t, Unified, func(c *Config) { c.Sizes.MaxRunning = 2 })
	tpl := recallTemplate(t)
	plain := feature{change: func(*sample.Params) {}}
	for name, row := range map[string]struct {
		spoil func(q *leg.Request)
		want  string
	}{
		"all is said":        {func(q *leg.Request) { q.Tokens, q.Generated, q.Params.MaxTokens = append(q.Tokens, 9, 9), 2, 2 }, "generated: 2 of max_tokens 2"},
		"it had ended":       {func(q *leg.Request) { q.Tokens, q.Generated = append(q.Tokens, 9, 4), 2 }, "with token 2 of 2 the output was finished"},
		"it had stopped":     {func(q *leg.Request) { q.Tokens, q.Generated, q.Params.StopIDs = append(q.Tokens, 9, 7), 2, []int32{9} }, "with token 1 of 2"},
		"more than there is": {func(q *leg.Request) { q.Generated = len(q.Tokens) }, "generated: "},
		"of two choices":     {func(q *leg.Request) { q.Tokens, q.Generated, q.N = append(q.Tokens, 9), 1, 2 }, "only one choice"},
		"too many choices":   {func(q *leg.Request) { q.N = 3 }, "n: 3 choices; this worker makes at most 2"},
		"choices of nothing": {func(q *leg.Request) { q.N = -1 }, "n: -1"},
	} {
		q := askFor(t, tpl, &plain, 20)
		row.spoil(&q)
		c := open(t, u, Decode, q).ended(room.ClientError)
		if c.status != 400 || !strings.Contains(c.end.Message, row.want) {
			t.Errorf("%s: %d %q, want %q", name, c.status, c.end.Message, row.want)
		}
	}
	empty(t, u)
}

// Where no token is allowed a room ends at once as what it is, in any phase; nothing hangs.
func TestADeadEndEndsTheRoom(t *testing.T) {
	p, d, u := loadRecall(t, Prefill), loadRecall(t, Decode), loadRecall(t, Unified)
	tpl := recallTemplate(t)
	for name, f := range map[string]feature{
		"at the first token": {change: func(p *sample.Params) { p.AllowedIDs, p.Bad = []int32{40}, [][]int32{{40}} }},
		"later":              {change: func(p *sample.Params) { p.AllowedIDs, p.Bad = []int32{40}, [][]int32{{40, 40, 40}} }},
		"of three":           {n: 3, change: func(p *sample.Params) { p.AllowedIDs, p.Bad = []int32{40}, [][]int32{{40, 40, 40}} }},
		"of three, first":    {n: 3, change: func(p *sample.Params) { p.AllowedIDs, p.Bad = []int32{40}, [][]int32{{40}} }},
	} {
		q := askFor(t, tpl, &f, 20)
		pre, dec := both(t, p, d, q, p.Link())
		solo := open(t, u, Decode, askFor(t, tpl, &f, 20))
		for _, c := range []*call{dec, solo} {
			if c.ended(room.ClientError); c.end.Message != whyDead || c.end.Param != "allowed_token_ids" {
				t.Errorf("%s: %q of %q", name, c.end.Message, c.end.Param)
			}
		}
		within(t, "prefill's leg", pre.over)
	}
	empty(t, p, d, u)
}
