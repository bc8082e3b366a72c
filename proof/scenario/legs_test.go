package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/gateway"
)

// once lets a request have one attempt.
func once(c *gateway.Config) { c.Limits.MaxTries = 1 }

// Given a pair, when one leg answers 400, 500, breaks off or is refused, before or behind the
// other's acceptance, then the client has the first failure's status, and the other leg, which
// says nothing, is closed.
// SGLang: issue #9726, PR #29017; AIBrix: issue #2289, PR #2746.
func TestF33AFailingLegEndsTheOther(t *testing.T) {
	fails := map[string]struct {
		do     script
		status int
	}{
		"400":       {func(l *fakeLeg) { l.refuse(room.ClientError) }, 400},
		"500":       {func(l *fakeLeg) { l.w.WriteHeader(500) }, 502}, // no worker of ours speaks so
		"cut":       {func(l *fakeLeg) { l.cut() }, 502},
		"late cut":  {func(l *fakeLeg) { l.accept(); l.cut() }, 502},
		"says fail": {func(l *fakeLeg) { l.accept(); l.fail(room.Internal) }, 500},
		"says 400":  {func(l *fakeLeg) { l.accept(); l.fail(room.ClientError) }, 400},
	}
	for name, row := range fails {
		for _, mirror := range []bool{false, true} {
			r := newFront(t, 1, once)
			bad, other := r.prefills[0], r.decodes[0]
			if mirror {
				bad, other = other, bad
			}
			other.play(silent)
			bad.play(func(l *fakeLeg) {
				other.await(func() bool { return other.open > 0 })
				row.do(l)
			})
			if a := r.chat(""); a.status != row.status {
				t.Errorf("%s, mirror %v: %d %s, want %d", name, mirror, a.status, a.body, row.status)
			}
			r.quiet()
		}
	}
	r := newFront(t, 1, once) // prefill only repeats that decode gave up; why, decode says itself
	r.prefills[0].play(func(l *fakeLeg) { l.accept(); l.fail(room.Cancelled); close(l.kv()) })
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); <-l.kv(); l.fail(room.TransferFailed) })
	if a := r.chat(""); a.status != http.StatusBadGateway || !strings.Contains(a.body, "transfer_failed") {
		t.Errorf("an echo is taken for the cause: %d %s", a.status, a.body)
	}
	r.quiet()
	r = newFront(t, 1, once)
	r.decodes[0].play(silent)
	r.prefills[0].server.Close() // refuses the connection
	if a := r.chat(""); a.status != http.StatusBadGateway {
		t.Errorf("refused: %d %s", a.status, a.body)
	}
	r.prefills = nil
	r.quiet()
}

// Given workers that refuse requests for what is in them, when one client sends fifty of those,
// then nobody is blamed, and the others are served.
// SGLang gateway: issue #25811, PR #26713; sglang-omni PR #1014.
func TestF90BadRequestsBlameNobody(t *testing.T) {
	r := newFront(t, 1, nil)
	r.prefills[0].play(func(l *fakeLeg) {
		if strings.Contains(byteText{}.Decode(l.req.Tokens), "poison") {
			l.refuse(room.ClientError)
			return
		}
		goodPrefill(l)
	})
	r.decodes[0].play(func(l *fakeLeg) {
		if strings.Contains(byteText{}.Decode(l.req.Tokens), "poison") {
			silent(l) // its KV never comes
			return
		}
		goodDecode(l)
	})
	for i := range 50 {
		if a := r.post("/v1/completions", `{"prompt":"poison"}`); a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if i%10 == 0 {
			if a := r.chat(""); a.text() != "hello" {
				t.Errorf("somebody else gets %d %s", a.status, a.body)
			}
		}
	}
	if m := r.get("/metrics"); strings.Contains(m, "baton_gateway_blames_total{") || !strings.Contains(m, "baton_gateway_serving 1") {
		t.Error("workers were blamed for their clients")
	}
	r.quiet()
}

// Given two decode workers, one of them dead, when ten requests come, then the first refused
// connection takes it out, that request is served by the other, and no client notices.
// Dynamo: PR #1424, issue #732.
func TestF93NoTrafficToTheDead(t *testing.T) {
	r := newFront(t, 2, nil)
	r.decodes[0].server.Close()
	for range 10 {
		if a := r.chat(`,"stream":true`); a.text() != "hello" {
			t.Errorf("%d %s %q", a.status, a.body, a.events)
		}
	}
	if m := r.get("/metrics"); !strings.Contains(m, `baton_gateway_blames_total{cause="worker_lost",worker="decode2"} 1`) || !strings.Contains(m, "baton_gateway_attempts_total 11\n") {
		t.Error("the dead worker was not tried exactly once")
	}
	r.decodes = r.decodes[1:]
	r.quiet()
}

// Given a gateway whose prefill workers are not healthy, when requests come, then decode hears
// of none of them and each gets a 503 that says when to come again; the first good health opens
// the door.
// SGLang gateway: issue #31206, PR #31933.
func TestF89NoHalfADispatch(t *testing.T) {
	r := newFront(t, 1, nil)
	r.says(r.prefills[0], false)
	for range 5 {
		if a := r.chat(""); a.status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := len(r.decodes[0].legs()); n > 0 {
		t.Errorf("%d legs at decode without a prefill worker", n)
	}
	r.says(r.prefills[0], true)
	if a := r.chat(""); a.text() != "hello" {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.quiet()
}

// Given two pairs whose prefill workers are all away, one gone and one not healthy, when a
// request comes, then no decode worker does the work in silence: it is refused, and the refusal
// and health name the role that is missing.
// llm-d: llm-d-router issue #2427, PR #2521.
func TestF94DecodeDoesNotPrefillInSilence(t *testing.T) {
	r := newFront(t, 2, nil)
	r.g.Leave(context.Background(), r.prefills[0].id)
	r.says(r.prefills[1], false)
	const missing = "no prefill worker is ready to take requests"
	if a := r.chat(""); a.status != 503 || !strings.Contains(a.body, missing) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if h := r.health(); h.OK || h.Workers != 2 || h.Reason != missing {
		t.Errorf("health says %+v", h)
	}
	for _, d := range r.decodes {
		if n := len(d.legs()); n > 0 {
			t.Errorf("decode was sent %d legs", n)
		}
	}
	r.quiet()
}

// Given fifty clients that wait while only prefill has come up, when decode joins, then all are
// served, and none was refused or sent anywhere before.
// SemiAnalysisAI/InferenceX PR #2255; SGLang: PR #25125.
func TestF88ReadyMeansThatAPairIsThere(t *testing.T) {
	r := newFront(t, 0, func(c *gateway.Config) { c.Budgets.Place = time.Minute })
	if a := r.chat(""); a.status != 503 {
		t.Errorf("without any worker: %d", a.status)
	}
	r.prefills = append(r.prefills, r.join(gateway.RolePrefill, goodPrefill))
	answers := make(chan answer)
	for range 50 {
		go func() { answers <- r.chat("") }()
	}
	until(t, "all wait", func() bool { return r.health().Running == 50 })
	if h := r.health(); h.OK || len(r.prefills[0].legs()) > 0 {
		t.Errorf("half a pair says %+v, %d legs", h, len(r.prefills[0].legs()))
	}
	r.decodes = append(r.decodes, r.join(gateway.RoleDecode, goodDecode))
	for range 50 {
		if a := <-answers; a.text() != "hello" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.quiet()
}

// Given a stream, when a worker's connection breaks before its head, behind it, behind three
// tokens or inside a line, then the client gets an error status or an error event, never an
// empty 200 and never the mark of a normal end; and the gateway lives.
// llm-d: llm-d-router PR #2816, PR #2094.
func TestF102ABrokenUpstreamIsNotAnEmptySuccess(t *testing.T) {
	breaks := map[string]script{
		"before the head": func(l *fakeLeg) { l.cut() },
		"behind the head": func(l *fakeLeg) { l.accept(); l.cut() },
		"three tokens":    func(l *fakeLeg) { l.accept(); l.piece("a"); l.piece("b"); l.piece("c"); l.cut() },
		"inside a line":   func(l *fakeLeg) { l.accept(); l.piece("a"); l.raw(`{"text":"b`); l.cut() },
		"a clean close":   func(l *fakeLeg) { l.accept(); l.piece("a") },
	}
	for name, s := range breaks {
		for _, stream := range []bool{false, true} {
			r := newFront(t, 1, once)
			r.decodes[0].play(s)
			a := r.chat(fmt.Sprintf(`,"stream":%v`, stream))
			n, code := a.terminal()
			begun := stream && a.status == 200
			if n != 1 || code != "worker_lost" || !begun && a.status != 502 || begun && a.text() == "" {
				t.Errorf("%s, stream %v: %d %s %q", name, stream, a.status, a.body, a.events)
			}
			r.prefills[0].play(s)
			r.decodes[0].play(silent)
			if n, code := r.chat(`,"stream":true`).terminal(); n != 1 || code == "" {
				t.Errorf("%s, at prefill: %d terminal events, %q", name, n, code)
			}
			r.quiet()
		}
	}
}

// Given a decode worker that makes the next token only when the client has seen the last one,
// when a stream runs, then it comes to its end: nothing is collected on the way.
// vLLM production-stack: PR #777; dstackai/dstack issue #4269.
func TestF105EachTokenGoesOutAlone(t *testing.T) {
	r := newFront(t, 1, nil)
	seen := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		for i := range 8 {
			l.piece(string(rune('a' + i)))
			select {
			case <-seen:
			case <-l.ctx.Done():
				return
			}
		}
		l.done(8)
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := r.send(ctx, "/v1/completions", `{"prompt":"x","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var e struct{ Choices []struct{ Text string } }
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil && len(e.Choices) > 0 && e.Choices[0].Text != "" {
			text += e.Choices[0].Text
			seen <- struct{}{}
		}
	}
	if text != "abcdefgh" {
		t.Errorf("the stream said %q", text)
	}
	r.quiet()
}

// Given sixty requests, when their clients cut them before the head, in the middle, and behind
// the end, then no worker has a load in the gateway's books, and no leg is open at a worker.
// vLLM router: vllm-project/router PR #215.
func TestF107LoadsComeDownAgain(t *testing.T) {
	r := newFront(t, 2, nil)
	for _, d := range r.decodes {
		d.play(func(l *fakeLeg) {
			l.accept()
			if len(l.req.Tokens)%3 == 0 {
				l.wait()
			}
			l.piece("a")
			if len(l.req.Tokens)%3 == 1 {
				l.wait()
			}
			l.done(1)
		})
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			prompt := strings.Repeat("x", 3*i+i%3+1)
			if (len(prompt))%3 == 0 { // no byte will come: leave when it is there
				go func() {
					until(t, "it is there", func() bool { return strings.Contains(r.get("/debug/requests"), fmt.Sprintf(`"rid":"r%d"`, i)) })
					cancel()
				}()
			}
			resp, err := r.send(ctx, "/v1/completions", `{"stream":true,"prompt":"`+prompt+`"}`, "X-Request-Id", fmt.Sprint("r", i))
			if err != nil {
				return
			}
			io.ReadAtLeast(resp.Body, make([]byte, 4096), 1)
			cancel()
			resp.Body.Close()
		})
	}
	all.Wait()
	r.quiet()
}

// Given four equal workers, when 64 requests arrive at once, then each gets sixteen: a choice and
// its booking are one step.
// AIBrix: issue #2677.
func TestF110ABurstSpreads(t *testing.T) {
	r := newFront(t, 4, func(c *gateway.Config) { c.Limits = relay.Limits{MaxRunning: 64} })
	for i := range 4 {
		r.prefills[i].play(silent)
		r.decodes[i].play(silent)
	}
	ctx, leave := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if resp, err := r.send(ctx, "/v1/chat/completions", hello+"}"); err == nil {
				resp.Body.Close()
			}
		})
	}
	for _, f := range append(append([]*fakeWorker(nil), r.prefills...), r.decodes...) {
		f.await(func() bool { return f.open == 16 })
	}
	leave()
	all.Wait()
	for _, f := range append(append([]*fakeWorker(nil), r.prefills...), r.decodes...) {
		if n := len(f.legs()); n != 16 {
			t.Errorf("a worker got %d of 64", n)
		}
	}
	r.quiet()
}
