package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/leg"
)

// say is a piece of one choice.
func (l *fakeLeg) say(choice int, text string) {
	l.line(leg.Line{Choice: choice, Text: text, IDs: idsOf(text)})
}

// doneEach ends the choices of a leg.
func (l *fakeLeg) doneEach(how ...leg.Choice) {
	end := &leg.End{Outcome: room.Success, PromptTokens: len(l.req.Tokens), Cached: min(2, len(l.req.Tokens)), Choices: how}
	for _, c := range how {
		end.OutputTokens += c.OutputTokens
	}
	l.line(leg.Line{End: end})
}

// manyDecode says the number of each choice, the choices in turn, and ends them.
func manyDecode(l *fakeLeg) {
	l.accept()
	if l.req.Link != "" {
		select {
		case <-l.kv():
		case <-l.ctx.Done():
			return
		}
	}
	var how []leg.Choice
	for range 2 {
		for i := range l.req.Choices() {
			l.say(i, fmt.Sprint(i))
		}
	}
	for range l.req.Choices() {
		how = append(how, leg.Choice{Finish: "stop", OutputTokens: 2})
	}
	if how[0].Finish = "length"; len(how) == 1 {
		l.line(leg.Line{End: &leg.End{Outcome: room.Success, Finish: "length", PromptTokens: len(l.req.Tokens), OutputTokens: 2}})
		return
	}
	l.doneEach(how...)
}

// transcript prints a stream, one line for each choice of each event.
func transcript(a answer) (lines []string) {
	for _, e := range a.events {
		var v struct {
			Choices []struct {
				Index  int
				Text   string
				Delta  json.RawMessage
				Finish *string `json:"finish_reason"`
			}
			Usage *struct{ Prompt, Completion int }
			Error *struct{ Code string }
		}
		switch json.Unmarshal([]byte(e), &v); {
		case e == "[DONE]":
			lines = append(lines, "done")
		case v.Error != nil:
			lines = append(lines, "error "+v.Error.Code)
		case len(v.Choices) == 0:
			lines = append(lines, "usage")
		}
		for _, c := range v.Choices {
			line := fmt.Sprintf("%d %s%s", c.Index, c.Text, c.Delta)
			if c.Finish != nil {
				line += " " + *c.Finish
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func expect(t *testing.T, got []string, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if !slices.Equal(got, lines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// The choices of one prompt are of one attempt: one leg at each worker, which names how many, and
// their pieces come interleaved, each with its index.
func TestChoicesStreamInterleavedFromOneAttempt(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(manyDecode)
	a := r.post("/v1/chat/completions", helloBody+`,"n":3,"stream":true,"stream_options":{"include_usage":true}}`)
	expect(t, transcript(a), `
		0 {"role":"assistant","content":""}
		0 {"content":"0"}
		1 {"role":"assistant","content":""}
		1 {"content":"1"}
		2 {"role":"assistant","content":""}
		2 {"content":"2"}
		0 {"content":"0"}
		1 {"content":"1"}
		2 {"content":"2"}
		0 {} length
		1 {} stop
		2 {} stop
		usage
		done`)
	if u := a.events[len(a.events)-2]; !strings.Contains(u, `"prompt_tokens":8,"completion_tokens":6,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2}`) {
		t.Errorf("the prompt counts once: %s", u)
	}
	r.quiet()
	if p, d := r.prefills[0].last, r.decodes[0].last; p.N != 3 || d.N != 3 || r.prefills[0].legs.Load() != 1 || r.decodes[0].legs.Load() != 1 {
		t.Errorf("legs %+v %+v", p, d)
	}
	one := r.post("/v1/chat/completions", helloBody+`,"n":1}`)
	if r.quiet(); one.status != 200 || r.decodes[0].last.N != 0 {
		t.Errorf("%d, one choice is sent as %d", one.status, r.decodes[0].last.N)
	}
}

// Several prompts with several choices: those of one prompt stand together, as OpenAI numbers them.
func TestChoicesOfSeveralPromptsAreNumberedInARow(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(manyDecode)
	a := r.post("/v1/completions", `{"prompt":["ab","c"],"n":2,"echo":true,"return_token_ids":true}`)
	var got struct {
		Choices []struct {
			Index  int
			Text   string
			Finish string  `json:"finish_reason"`
			IDs    []int32 `json:"token_ids"`
			Prompt []int32 `json:"prompt_token_ids"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if want := "[{0 ab00 length [48 48] [97 98]} {1 ab11 stop [49 49] [97 98]} {2 c00 length [48 48] [99]} {3 c11 stop [49 49] [99]}]"; fmt.Sprint(got.Choices) != want {
		t.Errorf("got %v, want %s", got.Choices, want)
	}
	if got.Usage.Prompt != 3 || got.Usage.Completion != 8 {
		t.Errorf("%+v", got.Usage)
	}
	s := r.post("/v1/completions", `{"prompt":[97,98],"n":2,"echo":true,"stream":true}`)
	expect(t, transcript(s), "0 ab0\n1 ab1\n0 0\n1 1\n0  length\n1  stop\ndone")
	r.quiet()
}

// An end that does not name each choice is an early end: another attempt answers, and nothing of
// the first is in the answer.
func TestChoicesWithoutAnEndAreStartedAnew(t *testing.T) {
	for name, how := range map[string][]leg.Choice{
		"too few":              {{Finish: "stop", OutputTokens: 1}, {Finish: "stop", OutputTokens: 1}},
		"one without a reason": {{Finish: "stop"}, {OutputTokens: 1}, {Finish: "stop"}},
		"as if it were one":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, nil)
			var legs atomic.Int32
			for _, d := range r.decodes {
				d.play(func(l *fakeLeg) {
					if legs.Add(1) > 1 {
						manyDecode(l)
						return
					}
					l.accept()
					<-l.kv()
					l.say(0, "W")
					l.say(2, "W")
					if how == nil {
						l.done(2)
					} else {
						l.doneEach(how...)
					}
				})
			}
			a := r.post("/v1/completions", `{"prompt":"ab","n":3}`)
			if a.status != 200 || !strings.Contains(a.body, `"text":"00"`) || !strings.Contains(a.body, `"text":"22"`) || strings.Contains(a.body, "W") {
				t.Errorf("%d %s", a.status, a.body)
			}
			r.quiet()
		})
	}
}

// A worker that speaks of a choice that nobody asked for is not believed.
func TestAChoiceThatNobodyAskedForEndsTheLeg(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Limits.MaxTries = 1 })
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.say(0, "a"); l.say(2, "c"); l.wait() })
	a := r.post("/v1/chat/completions", helloBody+`,"n":2,"stream":true}`)
	if n, code := a.terminal(); n != 1 || code != "worker_lost" {
		t.Errorf("%q", a.events)
	}
	r.quiet()
}

// All choices of a prompt reserve their memory in front, so what they may take together is bounded
// by what the workers have.
func TestChoicesAreBoundedByTheWorkersMemory(t *testing.T) {
	r := newRig(t, 0, nil)
	r.prefills = append(r.prefills, r.joinWith(RolePrefill, goodPrefill, func(w *Worker) { w.KVTokens = 32 }))
	r.decodes = append(r.decodes, r.joinWith(RoleDecode, manyDecode, func(w *Worker) { w.KVTokens, w.Choices = 320, 3 }))
	prompt := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 40) + `"}]`
	for _, row := range []struct {
		more   string
		status int
		param  string
		max    int // tokens that the worker is asked for
	}{
		{`}`, 200, "", 960},
		{`,"n":2}`, 200, "", 9*16 - 8}, // two whole blocks are shared, 18 are left
		{`,"n":3}`, 200, "", 6*16 - 8},
		{`,"n":4}`, 400, "n", 0},
		{`,"n":2,"max_tokens":136}`, 200, "", 136},
		{`,"n":2,"max_tokens":137}`, 400, "max_tokens", 0},
		{`,"n":2,"max_completion_tokens":137}`, 400, "max_completion_tokens", 0},
		{`,"min_tokens":961}`, 400, "min_tokens", 0},
	} {
		a := r.post("/v1/chat/completions", prompt+row.more)
		var e struct{ Error struct{ Param string } }
		json.Unmarshal([]byte(a.body), &e)
		if a.status != row.status || e.Error.Param != row.param {
			t.Errorf("%s: %d %s", row.more, a.status, a.body)
		}
		if r.quiet(); row.status == 200 && r.decodes[0].last.Params.MaxTokens != row.max {
			t.Errorf("%s: %d tokens, want %d", row.more, r.decodes[0].last.Params.MaxTokens, row.max)
		}
	}
	long := r.post("/v1/completions", `{"prompt":"`+strings.Repeat("x", 900)+`","n":2}`)
	if long.status != 400 || !strings.Contains(long.body, `"param":"n"`) {
		t.Errorf("%d %s", long.status, long.body)
	}
}

// Each choice takes a right to run: a request of three waits until three are free, nobody who came
// later goes before it, and one of more than there are is refused with the field's name.
func TestAChoiceIsARightToRun(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Limits = relay.Limits{MaxRunning: 3, MaxQueued: 4} })
	here, leave := make(chan struct{}, 4), make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { here <- struct{}{}; <-leave; manyDecode(l) })
	answers := make(chan answer, 3)
	ask := func(n int) {
		go func() { answers <- r.post("/v1/chat/completions", fmt.Sprint(helloBody, `,"n":`, n, `}`)) }()
	}
	ask(2)
	<-here
	r.until(func(l *loop) bool { return l.core.Running() == 2 })
	ask(3)
	r.until(func(l *loop) bool { return l.core.Queue().Len == 1 })
	ask(1) // a right is free, and it is not its turn
	r.until(func(l *loop) bool { return l.core.Queue().Len == 2 && l.core.Running() == 2 })
	r.counts(1, 2)
	if a := r.post("/v1/chat/completions", helloBody+`,"n":4}`); a.status != 400 || !strings.Contains(a.body, `"param":"n"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(leave)
	for range 3 {
		if a := <-answers; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.quiet()
}

// counts wants every place that says how many requests there are to count requests, and not the rights
// that they take.
func (r *rig) counts(running, queued int) {
	r.Helper()
	var h Health
	if a := r.get("/health"); json.Unmarshal([]byte(a.body), &h) != nil || h.Running != running || h.Queued != queued {
		r.Errorf("health says %s, want %d running and %d queued", a.body, running, queued)
	}
	if n, err := r.g.Live(r.Context()); n != running+queued || err != nil {
		r.Errorf("%d requests are live, %v, want %d", n, err, running+queued)
	}
	for name, want := range map[string]int{"baton_gateway_running": running, "baton_gateway_queued": queued} {
		if line := fmt.Sprintf("\n%s %d\n", name, want); !strings.Contains(r.get("/metrics").body, line) {
			r.Errorf("metrics have no%s", line)
		}
	}
}

// A stream of several prompts is closed once, behind the last of all choices, though the end of one
// is written long before: whoever reads to the first [DONE] has everything.
func TestAStreamOfSeveralPromptsEndsOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	heard := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) {
		if l.req.Tokens[0] == 'd' { // of "def" nothing comes until the client has seen how another prompt ended
			select {
			case <-heard:
			case <-l.ctx.Done():
				return
			}
		}
		manyDecode(l)
	})
	seen := sync.OnceFunc(func() { close(heard) })
	resp := r.begin(r.Context(), "/v1/completions", `{"prompt":["ab","c","def"],"n":2,"stream":true,"stream_options":{"include_usage":true}}`)
	defer resp.Body.Close()
	var a answer
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if e, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			a.events = append(a.events, e)
			if strings.Contains(e, `"finish_reason":"`) {
				seen()
			}
		}
	}
	lines, ends := transcript(a), map[string]int{}
	for _, l := range lines {
		if i := strings.LastIndexByte(l, ' '); i > 0 && (strings.HasSuffix(l, " stop") || strings.HasSuffix(l, " length")) {
			ends[l[:1]]++
		}
	}
	if n := len(lines); slices.Index(lines, "done") != n-1 || slices.Index(lines, "usage") != n-2 || fmt.Sprint(ends) != "map[0:1 1:1 2:1 3:1 4:1 5:1]" {
		t.Errorf("ends %v of\n%s", ends, strings.Join(lines, "\n"))
	}
	r.quiet()
}
