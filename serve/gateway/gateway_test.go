package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/serve/leg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnAnswerHasOpenAIsShape(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.post("/v1/chat/completions", helloBody+`}`, "X-Request-Id", "abc")
	var got struct {
		ID, Object, Model string
		Fingerprint       string `json:"system_fingerprint"`
		Choices           []struct {
			Message      struct{ Role, Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Total  int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	c := got.Choices[0]
	if got.ID != "chatcmpl-abc" || got.Fingerprint != "fp_0123" || got.Object != "chat.completion" || c.Message.Role != "assistant" || c.Message.Content != "hello" ||
		c.FinishReason != "stop" || got.Usage.Prompt != 8 || got.Usage.Total != 13 || a.header.Get("X-Request-Id") != "abc" {
		t.Errorf("%s", a.body)
	}
	r.quiet()
	if link := r.decodes[0].last.Link; link != "127.0.0.1:9" {
		t.Errorf("decode was told the link %q", link)
	}
	if p, d := r.prefills[0].last, r.decodes[0].last; p.Room != d.Room || p.Room == 0 || p.RID != "abc" {
		t.Errorf("legs of one attempt: %+v %+v", p, d)
	}
}

func TestAStreamEndsInOneDone(t *testing.T) {
	r := newRig(t, 1, nil)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		body := helloBody + `,"stream":true,"stream_options":{"include_usage":true}}`
		if path == "/v1/completions" {
			body = `{"prompt":"x","stream":true,"stream_options":{"include_usage":true}}`
		}
		a := r.post(path, body)
		n, code := a.terminal()
		last := a.events[len(a.events)-1]
		if a.text() != "hello" || n != 1 || code != "" || last != "[DONE]" || !strings.Contains(a.events[len(a.events)-2], `"choices":[],"usage":{"prompt_tokens"`) {
			t.Errorf("%s: %q", path, a.events)
		}
		if n := strings.Count(strings.Join(a.events, ""), `"system_fingerprint":"fp_0123"`); n != len(a.events)-1 {
			t.Errorf("%s: %d of %d chunks have the fingerprint", path, n, len(a.events)-1)
		}
		if !strings.Contains(strings.Join(a.events, ""), `"finish_reason":"stop"`) {
			t.Errorf("%s: no finish reason: %q", path, a.events)
		}
	}
	r.quiet()
}

// failures is every way in which a leg can fail. When is the moment: before it accepted,
// behind that, or (decode) in the middle of its stream.
func failures(when string) map[string]script {
	begin := func(l *fakeLeg) {
		if when != "before" {
			l.accept()
		}
		if when == "streaming" {
			l.piece("hel")
		}
	}
	all := map[string]script{
		"cut":       func(l *fakeLeg) { begin(l); l.cut() },
		"early end": func(l *fakeLeg) { begin(l) },
		"malformed": func(l *fakeLeg) { begin(l); l.raw("{\"text\":\n") },
		"half line": func(l *fakeLeg) { begin(l); l.raw(`{"te`) },
	}
	if when == "before" {
		all["bare 500"] = func(l *fakeLeg) { l.refuse(500, "oops") }
		all["refused lost"] = func(l *fakeLeg) { l.refuse(503, `{"outcome":"failed","cause":"worker_lost"}`) }
		all["refused 429"] = func(l *fakeLeg) { l.refuse(429, `{"outcome":"failed","cause":"overload"}`) }
		all["refused 400"] = func(l *fakeLeg) { l.refuse(400, `{"outcome":"failed","cause":"client_error","message":"no"}`) }
		return all
	}
	for _, c := range room.Causes()[1:] {
		all["said "+c.String()] = func(l *fakeLeg) { begin(l); l.fail(c) }
	}
	return all
}

// Whatever a leg does in whatever phase: the other leg is closed, nothing is left anywhere,
// and the client gets exactly one terminal event (W3). The peer is silent in all of them, so
// that nothing but the gateway can end it.
func TestAFailureOfALegEndsTheRequestOnce(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, which := range []string{"prefill", "decode"} {
			for _, when := range []string{"before", "accepted", "streaming"} {
				if which == "prefill" && when == "streaming" {
					continue // prefill has nothing to do with the stream any more: its own test
				}
				for name, fail := range failures(when) {
					if which == "prefill" && name == "said cancelled" {
						continue // it only echoes what decode did: the test below
					}
					t.Run(fmt.Sprintf("stream=%v/%s/%s/%s", stream, which, when, name), func(t *testing.T) {
						r := newRig(t, 1, nil)
						silent := func(l *fakeLeg) { l.accept(); l.wait() }
						r.prefills[0].play(silent)
						r.decodes[0].play(silent)
						if which == "prefill" {
							r.prefills[0].play(fail)
						} else {
							r.decodes[0].play(fail)
						}
						a := r.post("/v1/chat/completions", helloBody+fmt.Sprintf(`,"stream":%v}`, stream))
						n, code := a.terminal()
						if n != 1 || code == "" || a.broken != nil {
							t.Errorf("status %d, %d terminal events, code %q, %v: %s %q", a.status, n, code, a.broken, a.body, a.events)
						}
						if stream && when == "streaming" && a.text() != "hel" {
							t.Errorf("what came before the failure is lost: %d %s %q", a.status, a.body, a.events)
						}
						r.quiet()
					})
				}
			}
		}
	}
}

// With a second pair the request is served all the same, by a new room on other workers,
// unless the failure was the request's own fault or its time was over.
func TestAFailureBeforeTheFirstTokenIsTriedElsewhere(t *testing.T) {
	final := map[string]bool{"refused 400": true, "said client_error": true, "said cancelled": true, "said deadline": true}
	for _, which := range []string{"prefill", "decode"} {
		for _, when := range []string{"before", "accepted"} {
			for name, fail := range failures(when) {
				if which == "prefill" && name == "said cancelled" {
					continue
				}
				t.Run(which+"/"+when+"/"+name, func(t *testing.T) {
					r := newRig(t, 2, nil)
					if which == "prefill" {
						r.prefills[0].play(fail)
						r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.wait() })
					} else {
						r.decodes[0].play(fail)
					}
					a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`)
					n, code := a.terminal()
					if final[name] {
						if n != 1 || code == "" || r.decodes[1].legs.Load() != 0 {
							t.Errorf("status %d, %d terminal events, %q: want a refusal without a second try", a.status, n, code)
						}
					} else if a.text() != "hello" || n != 1 || code != "" {
						t.Errorf("status %d %s %q: want the answer of the second pair", a.status, a.body, a.events)
					}
					r.quiet()
				})
			}
		}
	}
}

// A prefill leg that was cancelled, though not by us, tells what decode did; decode says why,
// and the client hears decode's words, not those of an end that the outcome is not of.
func TestTheCauseAndItsMessageAreOfTheSameLeg(t *testing.T) {
	end := func(l *fakeLeg, c room.Cause, message string) {
		l.line(leg.Line{End: &leg.End{Outcome: room.Fail(c).Kind, Cause: c, Message: message}})
	}
	for name, row := range map[string]struct {
		prefill         room.Cause
		prefillSays     string
		decodeSpeaks    bool
		code, must, not string
	}{
		"an echo":               {room.Cancelled, "decode gave it up", true, "transfer_failed", "a wrong sum", "gave it up"},
		"an echo without words": {room.Cancelled, "", true, "transfer_failed", "a wrong sum", ""},
		"prefill's own":         {room.Internal, "a step failed", false, "internal", "a step failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, func(c *Config) { c.Limits.MaxTries = 1 })
			r.prefills[0].play(func(l *fakeLeg) { l.accept(); end(l, row.prefill, row.prefillSays) })
			r.decodes[0].play(func(l *fakeLeg) {
				l.accept()
				if !row.decodeSpeaks {
					l.wait()
					return
				}
				r.until(func(l *loop) bool { return len(l.legs) == 1 }) // prefill's end is heard
				end(l, room.TransferFailed, "chunk 3 came with a wrong sum")
			})
			a := r.post("/v1/chat/completions", helloBody+`}`)
			if n, code := a.terminal(); n != 1 || code != row.code || !strings.Contains(a.body, row.must) || row.not != "" && strings.Contains(a.body, row.not) {
				t.Errorf("%d %s", a.status, a.body)
			}
			r.quiet()
		})
	}
}

func TestAPrefillThatFailsBehindTheFirstTokenChangesNothing(t *testing.T) {
	r := newRig(t, 1, nil)
	ended := make(chan struct{})
	r.prefills[0].play(func(l *fakeLeg) { l.accept(); r.until(streaming); close(ended); l.cut() })
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece("hel"); <-ended; l.piece("lo"); l.done(5) })
	a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`)
	if n, code := a.terminal(); n != 1 || code != "" || a.text() != "hello" {
		t.Errorf("%d %q %q", a.status, code, a.events)
	}
	r.quiet()
}

// A client that leaves ends both legs, in every phase, also while both workers are silent (W2).
func TestAClientThatLeavesClosesBothLegs(t *testing.T) {
	phases := map[string]func(here func()) (prefill, decode script){
		"before accept": func(here func()) (script, script) {
			s := func(l *fakeLeg) { here(); l.wait() }
			return s, s
		},
		"one accepted": func(here func()) (script, script) {
			return func(l *fakeLeg) { l.accept(); here(); l.wait() }, func(l *fakeLeg) { here(); l.wait() }
		},
		"accepted": func(here func()) (script, script) {
			s := func(l *fakeLeg) { l.accept(); here(); l.wait() }
			return s, s
		},
		"streaming": func(here func()) (script, script) {
			return func(l *fakeLeg) { l.accept(); here(); l.wait() }, func(l *fakeLeg) { l.accept(); l.piece("hel"); here(); l.wait() }
		},
		"prefill done": func(here func()) (script, script) {
			return func(l *fakeLeg) { goodPrefill(l); here() }, func(l *fakeLeg) { l.accept(); here(); l.wait() }
		},
	}
	for name, scripts := range phases {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				r := newRig(t, 1, nil)
				here := make(chan struct{}, 2)
				p, d := scripts(func() { here <- struct{}{} })
				r.prefills[0].play(p)
				r.decodes[0].play(d)
				ctx, leave := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(helloBody+fmt.Sprintf(`,"stream":%v}`, stream)))
					if resp, err := r.server.Client().Do(req); err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}()
				<-here
				<-here
				leave()
				<-over
				r.quiet()
				if got := outcomes(t, r); got != "aborted/cancelled:1" {
					t.Errorf("counted %s", got)
				}
			})
		}
	}
}

// outcomes prints the counter of ended requests.
func outcomes(t *testing.T, r *rig) string {
	t.Helper()
	families, err := r.g.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if f.GetName() == "baton_gateway_requests_total" {
			for _, m := range f.GetMetric() {
				all = append(all, fmt.Sprintf("%s/%s:%v", m.GetLabel()[1].GetValue(), m.GetLabel()[0].GetValue(), m.GetCounter().GetValue()))
			}
		}
	}
	return strings.Join(all, " ")
}

func TestSeveralPromptsAreSeveralChoices(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece(byteText{}.Decode(l.req.Tokens) + "!"); l.done(1) })
	a := r.post("/v1/completions", `{"prompt":["a","bb",[99]],"return_token_ids":true}`)
	if a.status != 400 {
		t.Errorf("prompts of two kinds: %d", a.status)
	}
	a = r.post("/v1/completions", `{"prompt":["a","bb"],"return_token_ids":true}`)
	var got struct {
		Choices []struct {
			Index  int
			Text   string
			IDs    []int32 `json:"token_ids"`
			Prompt []int32 `json:"prompt_token_ids"`
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Choices) != 2 || got.Choices[0].Text != "a!" ||
		got.Choices[1].Text != "bb!" || got.Choices[1].Index != 1 || len(got.Choices[1].Prompt) != 2 || len(got.Choices[0].IDs) != 2 || got.Usage.Prompt != 3 {
		t.Errorf("%s", a.body)
	}
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		if len(l.req.Tokens) == 2 {
			l.fail(room.Internal)
		}
		l.wait()
	})
	a = r.post("/v1/completions", `{"prompt":["a","bb"],"stream":true}`)
	if n, code := a.terminal(); n != 1 || code != "internal" {
		t.Errorf("one of two choices fails: %d %q", n, code)
	}
	r.quiet()
}

// What belongs between gateway and workers never passes a client's request (W5, O4).
func TestAClientCannotChooseARoom(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.post("/v1/chat/completions", helloBody+`,"room":"0000000000000005","rid":"evil","link":"evil:1","bootstrap_room":5,"bootstrap_host":"evil","kv_transfer_params":{"x":1}}`)
	d := r.decodes[0].last
	if a.status != 200 || d.Room == 5 || d.RID == "evil" || strings.Contains(d.Link, "evil") {
		t.Errorf("%d %+v", a.status, d)
	}
	r.quiet()
}

func TestBadRequestsAreRefusedBeforeAnyLeg(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.BodyBytes = 1000 })
	rows := []struct {
		path, body, param string
		status            int
		headers           []string
	}{
		{"/v1/chat/completions", helloBody, "", 400, nil},
		{"/v1/chat/completions", helloBody + `,"temperature":3}`, "temperature", 400, nil},
		{"/v1/chat/completions", `{"model":"other","messages":[{"role":"user","content":"x"}]}`, "model", 404, nil},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":1000}`, "max_tokens", 400, nil},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":""}]}`, "messages", 400, nil},
		{"/v1/chat/completions", strings.Repeat(" ", 1001), "", 413, nil},
		{"/v1/chat/completions", helloBody + `}`, "X-Request-Timeout", 400, []string{"X-Request-Timeout", "soon"}},
		{"/v1/chat/completions", helloBody + `}`, "X-Request-Timeout", 400, []string{"X-Request-Timeout", "-1"}},
		{"/v1/chat/completions", helloBody + `}`, "X-Request-Timeout", 400, []string{"X-Request-Timeout", "NaN"}},
		{"/v1/embeddings", `{}`, "", 404, nil},
		{"/tokenize", `{}`, "prompt", 400, nil},
		{"/detokenize", `{"tokens":[256]}`, "tokens", 400, nil},
	}
	for _, row := range rows {
		a := r.post(row.path, row.body, row.headers...)
		var got struct {
			Error struct{ Message, Type, Param, RequestID string }
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != row.status || got.Error.Param != row.param || got.Error.Message == "" {
			t.Errorf("%s %.80s: %d %s", row.path, row.body, a.status, a.body)
		}
		if a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", row.path)
		}
	}
	if n := r.prefills[0].legs.Load() + r.decodes[0].legs.Load(); n != 0 {
		t.Errorf("%d legs were sent", n)
	}
}

func TestARequestIDThatCouldBreakALogLineIsReplaced(t *testing.T) {
	r := newRig(t, 1, nil)
	for _, bad := range []string{"a b", strings.Repeat("x", ridBytesMax+1), "\x7f"} {
		req, _ := http.NewRequest("GET", r.url+"/v1/models", nil)
		req.Header["X-Request-Id"] = []string{bad}
		resp, err := r.server.Client().Do(req)
		if err != nil {
			continue // the client's own library refuses it
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Request-Id"); got == bad || got == "" {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

func TestInspectionShowsRequestsRoomsAndWorkers(t *testing.T) {
	r := newRig(t, 1, nil)
	here, leave := make(chan struct{}), make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); close(here); <-leave; l.piece("x"); l.done(1) })
	live := make(chan answer, 1)
	go func() { live <- r.post("/v1/chat/completions", helloBody+`}`, "X-Request-Id", "where-am-i") }()
	<-here
	a := r.get("/debug/requests")
	var got struct {
		Requests []map[string]any
		Rooms    []map[string]any
		Workers  []map[string]any
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Requests) != 1 || len(got.Rooms) != 2 || len(got.Workers) != 2 {
		t.Fatalf("%s", a.body)
	}
	if q := got.Requests[0]; q["rid"] != "where-am-i" || q["prefill"] != RolePrefill || q["decode"] != RoleDecode || q["room"] == "" || q["phase"] == "" {
		t.Errorf("request %v", q)
	}
	for _, key := range []string{"room", "rid", "role", "queue", "phase", "poll", "age_ms", "waits_for", "worker"} {
		if _, ok := got.Rooms[0][key]; !ok {
			t.Errorf("a room without %s: %v", key, got.Rooms[0])
		}
	}
	for _, key := range []string{"role", "boot", "pid", "queues", "blocks", "draining", "uptime_ms"} {
		if _, ok := got.Workers[0][key]; !ok {
			t.Errorf("a worker without %s: %v", key, got.Workers[0])
		}
	}
	if m := r.get("/metrics"); !strings.Contains(m.body, "baton_gateway_running 1") || !strings.Contains(m.body, `baton_worker_legs{role="decode",worker="decode"} 1`) {
		t.Errorf("metrics do not show the live request:\n%s", m.body)
	}
	close(leave)
	<-live
	r.quiet()
}

// A worker that was lost gets nothing until its health is good again.
func TestALostWorkerComesBackWithItsHealth(t *testing.T) {
	r := newRig(t, 2, nil)
	r.decodes[0].play(func(l *fakeLeg) { l.cut() })
	before := time.Now()
	for range 4 {
		if a := r.post("/v1/chat/completions", helloBody+`}`); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if n := r.decodes[0].legs.Load(); n != 1 {
		t.Errorf("the lost worker was tried %d times", n)
	}
	r.decodes[0].play(goodDecode)
	// It was asked before the worker was lost, and its answer was on its way: that is no news.
	r.g.Health(t.Context(), r.decodes[0].id, before, true)
	r.post("/v1/chat/completions", helloBody+`}`)
	if n := r.decodes[0].legs.Load(); n != 1 {
		t.Errorf("an old answer brought the lost worker back: tried %d times", n)
	}
	if err := r.g.Health(t.Context(), r.decodes[0].id, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		r.post("/v1/chat/completions", helloBody+`}`)
	}
	if n := r.decodes[0].legs.Load(); n != 3 {
		t.Errorf("of four requests %d went to the worker that is back, want 2", n-1)
	}
	r.g.Health(t.Context(), r.decodes[0].id, time.Now(), false)
	r.g.Leave(t.Context(), r.decodes[1].id)
	if r.g.Serving() {
		t.Error("serving with one decode worker down and one gone")
	}
	r.quiet()
}

// A place whose worker is gone is shown as missing, without a process number that may be
// somebody else's by now, until another life fills it.
func TestAWorkerThatIsGoneIsShownAsMissing(t *testing.T) {
	r := newRig(t, 1, nil)
	decode := func() (all []map[string]any) {
		var got struct{ Workers []map[string]any }
		if err := json.Unmarshal([]byte(r.get("/debug/requests").body), &got); err != nil {
			t.Fatal(err)
		}
		for _, w := range got.Workers {
			if w["worker"] == RoleDecode {
				all = append(all, w)
			}
		}
		return all
	}
	if _, err := r.g.Join(t.Context(), Worker{Name: RoleDecode, Role: RoleDecode}); err == nil {
		t.Error("two workers in one place")
	}
	r.g.Leave(t.Context(), r.decodes[0].id)
	for _, key := range []string{"queues", "blocks", "draining", "uptime_ms"} { // not known, and so not 0
		if v, ok := decode()[0][key]; ok {
			t.Errorf("of a worker that is gone: %s %v", key, v)
		}
	}
	if w := decode(); len(w) != 1 || w[0]["up"] != false || w[0]["pid"] != 0.0 || w[0]["error"] == nil {
		t.Errorf("%v", w)
	}
	r.joined = 1 // the second place again
	r.join(RoleDecode, goodDecode)
	if w := decode(); len(w) != 1 || w[0]["up"] != true || w[0]["pid"] != 7.0 {
		t.Errorf("%v", w)
	}
}

func TestTokenizeAndModels(t *testing.T) {
	r := newRig(t, 1, nil)
	if a := r.post("/tokenize", `{"model":"fake","prompt":"ab"}`); a.body != `{"count":2,"max_model_len":1000,"tokens":[97,98],"token_strs":null}`+"\n" {
		t.Errorf("%s", a.body)
	}
	if a := r.post("/tokenize", `{"messages":[{"role":"user","content":"ab"}],"return_token_strs":true}`); !strings.Contains(a.body, `"token_strs":["a","b"]`) {
		t.Errorf("%s", a.body)
	}
	for field, value := range map[string]string{"chat_template": `"x"`, "add_special_tokens": "true"} {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"ab"}],%q:%s}`, field, value)
		words := func(a answer) (e struct {
			Error struct{ Message, Type, Param, Code string }
		}) {
			if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.status != 400 {
				t.Errorf("%s: %d %s", body, a.status, a.body)
			}
			return e
		}
		count, chat := words(r.post("/tokenize", body)), words(r.post("/v1/chat/completions", body))
		if count != chat || count.Error.Param != field || count.Error.Code != "unsupported_value" {
			t.Errorf("%s:\n/tokenize %+v\nchat      %+v", body, count, chat)
		}
	}
	if a := r.post("/detokenize", `{"tokens":[97,98]}`); a.body != `{"prompt":"ab"}`+"\n" {
		t.Errorf("%s", a.body)
	}
	if a := r.get("/v1/models"); !strings.Contains(a.body, `"id":"fake","object":"model"`) || !strings.Contains(a.body, `"max_model_len":1000`) {
		t.Errorf("%s", a.body)
	}
	if a := r.get("/v1/models/fake"); a.status != 200 {
		t.Errorf("%d", a.status)
	}
	if a := r.get("/v1/models/owner/other"); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

func TestAUnifiedWorkerServesAlone(t *testing.T) {
	r := newRig(t, 0, nil)
	r.decodes = append(r.decodes, r.join(RoleUnified, goodDecode))
	a := r.post("/v1/chat/completions", helloBody+`}`)
	if a.status != 200 || r.decodes[0].last.Link != "" {
		t.Errorf("%d %s, link %q", a.status, a.body, r.decodes[0].last.Link)
	}
	r.quiet()
}
