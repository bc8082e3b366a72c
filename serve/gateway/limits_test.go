package gateway

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"baton/core/relay"
	"baton/serve/leg"
)

func TestAFullGatewaySays429AndWhenToComeAgain(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Limits = relay.Limits{MaxRunning: 1, MaxQueued: 1} })
	here, leave := make(chan struct{}, 1), make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); here <- struct{}{}; <-leave; l.piece("x"); l.done(1) })
	answers := make(chan answer, 2)
	go func() { answers <- r.post("/v1/chat/completions", helloBody+`}`) }()
	<-here
	go func() { answers <- r.post("/v1/chat/completions", helloBody+`}`) }()
	r.until(func(l *loop) bool { return l.core.Queue().Len == 1 }) // the third is one too many
	a := r.post("/v1/chat/completions", helloBody+`}`)
	if _, code := a.terminal(); a.status != 429 || a.header.Get("Retry-After") == "" || code != "overload" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	close(leave)
	for range 2 {
		if a := <-answers; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.quiet()
}

// Whoever is refused for want of a worker, or asks for health, hears of which kind: an operator
// then looks for it, and does not see decode workers that seem to be there for nothing.
func TestWithoutAWorkerItSays503AndWhichIsMissing(t *testing.T) {
	for missing, workers := range map[string]map[string]bool{ // role: usable
		"no worker is ready to take requests":                       {},
		"no prefill worker is ready to take requests":               {RoleDecode: true},
		"no decode worker is ready to take requests":                {RolePrefill: true, RoleDecode: false},
		"no prefill and no decode worker is ready to take requests": {RolePrefill: false, RoleDecode: false},
		"no unified worker is ready to take requests":               {RoleUnified: false},
	} {
		r := newRig(t, 0, nil)
		for role, usable := range workers {
			f := r.join(role, goodDecode)
			r.g.Health(t.Context(), f.id, time.Now(), usable)
		}
		for _, stream := range []string{`}`, `,"stream":true}`} {
			a := r.post("/v1/chat/completions", helloBody+stream)
			if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"message":"`+missing+`"`) {
				t.Errorf("%v: %d %v %s, want %q", workers, a.status, a.header, a.body, missing)
			}
		}
		if h := r.get("/health"); h.status != 503 || !strings.Contains(h.body, `"ok":false,"reason":"`+missing+`"`) {
			t.Errorf("%v: health %d %s, want %q", workers, h.status, h.body, missing)
		}
		r.quiet()
	}
}

// A request that finds no worker waits for one to come or to be healthy again; when none comes
// in time it is refused as if it had not waited.
func TestARequestWaitsForAWorkerToComeBack(t *testing.T) {
	waiting := func(l *loop) (yes bool) {
		l.core.Rooms(func(v relay.View) bool {
			yes = yes || v.Phase == relay.Placing
			return true
		})
		return yes
	}
	for name, row := range map[string]struct{ away, back func(r *rig) }{
		"another life": {func(r *rig) { r.g.Leave(t.Context(), r.decodes[0].id) }, func(r *rig) {
			r.joined = 1
			r.decodes = append(r.decodes, r.join(RoleDecode, goodDecode))
		}},
		"good health": {func(r *rig) { r.g.Health(t.Context(), r.decodes[0].id, time.Now(), false) }, func(r *rig) {
			r.g.Health(t.Context(), r.decodes[0].id, time.Now(), true)
		}},
		"lost on the way": {func(r *rig) { r.decodes[0].play(func(l *fakeLeg) { l.cut() }) }, func(r *rig) {
			r.decodes[0].play(goodDecode)
			r.g.Health(t.Context(), r.decodes[0].id, time.Now(), true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, func(c *Config) { c.Budgets.Place = time.Minute })
			row.away(r)
			got := make(chan answer, 1)
			go func() { got <- r.post("/v1/chat/completions", helloBody+`,"stream":true}`) }()
			r.until(waiting)
			if name == "lost on the way" {
				r.until(func(l *loop) bool { return waiting(l) && !l.roster.serving() })
			}
			row.back(r)
			if a := <-got; a.text() != "hello" {
				t.Errorf("%d %s %q", a.status, a.body, a.events)
			}
			r.quiet()
		})
	}
	r := newRig(t, 1, nil)
	r.g.Leave(t.Context(), r.decodes[0].id)
	if a := r.post("/v1/chat/completions", helloBody+`}`); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("nobody comes: %d %s", a.status, a.body)
	}
}

func TestADrainingGatewayFinishesWhatItHas(t *testing.T) {
	r := newRig(t, 1, nil)
	here, leave := make(chan struct{}), make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); close(here); <-leave; l.piece("hello"); l.done(5) })
	live := make(chan answer, 1)
	go func() { live <- r.post("/v1/chat/completions", helloBody+`,"stream":true}`) }()
	<-here
	drained := make(chan error, 1)
	go func() { drained <- r.g.Drain(t.Context()) }()
	r.until(func(l *loop) bool { return l.core.Draining() })
	a := r.post("/v1/chat/completions", helloBody+`}`)
	if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "shutting down") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if h := r.get("/health"); h.status != 503 || !strings.Contains(h.body, `"draining":true`) {
		t.Errorf("health %d %s", h.status, h.body)
	}
	select {
	case err := <-drained:
		t.Errorf("drained with a live request: %v", err)
	default:
	}
	close(leave)
	if a := <-live; a.text() != "hello" {
		t.Errorf("%d %q", a.status, a.events)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// A gateway that is closed with live requests tells each client so.
func TestCloseEndsEveryRequestWithAnError(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece("hel"); l.wait() })
	live := make(chan answer, 1)
	go func() { live <- r.post("/v1/chat/completions", helloBody+`,"stream":true}`) }()
	r.until(streaming)
	r.g.Close()
	a := <-live
	if n, code := a.terminal(); n != 1 || code == "" {
		t.Errorf("%d %q", a.status, a.events)
	}
}

func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.ClientBytes = 4 << 10 })
	gone := make(chan struct{})
	r.prefills[0].play(func(l *fakeLeg) { l.accept(); l.wait() })
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		defer close(gone)
		big := leg.Line{Text: strings.Repeat("x", 1000), IDs: []int32{1}}
		for l.ctx.Err() == nil {
			l.line(big)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := r.begin(ctx, "/v1/chat/completions", helloBody+`,"stream":true}`)
	defer resp.Body.Close()
	<-gone // nobody reads: the leg was closed by the gateway, whose client is still connected
	r.quiet()
	if got := outcomes(t, r); got != "aborted/cancelled:1" {
		t.Errorf("counted %s", got)
	}
}

func TestTimeBudgetsEndWhatIsSilent(t *testing.T) {
	silent := func(l *fakeLeg) { l.accept(); l.wait() }
	short := 20 * time.Millisecond
	rows := []struct {
		name            string
		change          func(*Config)
		prefill, decode script
		header          string
		status          int
		code            string
	}{
		{"total by header", nil, silent, silent, "0.02", 504, "deadline"},
		{"connect", func(c *Config) { c.Budgets.Connect = short }, silent, func(l *fakeLeg) { l.wait() }, "", 502, "worker_lost"},
		{"first token", func(c *Config) { c.Budgets.FirstToken = short }, silent, silent, "", 504, "deadline"},
		{"gap", func(c *Config) { c.Budgets.Gap = short }, silent, func(l *fakeLeg) { l.accept(); l.piece("hel"); l.wait() }, "", 200, "deadline"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, 1, row.change)
			r.prefills[0].play(row.prefill)
			r.decodes[0].play(row.decode)
			headers := []string{}
			if row.header != "" {
				headers = append(headers, "X-Request-Timeout", row.header)
			}
			a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`, headers...)
			if n, code := a.terminal(); a.status != row.status || n != 1 || code != row.code {
				t.Errorf("status %d, %d terminal events, code %q: %s %q", a.status, n, code, a.body, a.events)
			}
			r.quiet()
		})
	}
}

func TestASilentStreamIsKeptAliveByComments(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Keepalive = 5 * time.Millisecond })
	goOn := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); <-goOn; l.piece("hello"); l.done(5) })
	resp := r.begin(t.Context(), "/v1/chat/completions", helloBody+`,"stream":true}`)
	defer resp.Body.Close()
	first := make([]byte, len(": keepalive\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != ": keepalive\n\n" || resp.StatusCode != 200 {
		t.Fatalf("%d %q %v", resp.StatusCode, first, err)
	}
	close(goOn)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || !strings.Contains(string(rest), "hello") {
		t.Errorf("%q %v", rest, err)
	}
	r.quiet()
}

// Bodies count in bytes, as they come: a byte each locks nobody out, and many bytes are refused.
func TestBodiesOnTheirWayAreBounded(t *testing.T) {
	r := newRig(t, 1, nil)
	for range 300 {
		c := r.dial()
		io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
	}
	if a := r.post("/v1/chat/completions", helloBody+`}`); a.status != 200 {
		t.Errorf("behind slow bodies: %d %s", a.status, a.body)
	}
}
