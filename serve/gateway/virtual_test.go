package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/leg"
	"baton/serve/observe/logrules"
	"baton/serve/upstream/baton"
)

// The tests here run the gateway's loop, its legs and its handlers in virtual time: every
// goroutine in one bubble, workers without sockets. A budget that is armed a moment too late,
// or not at all, is seen to the nanosecond, and takes no time.

// memory is the network to workers that are scripts.
type memory map[string]script // by address

// RoundTrip runs the worker's script. Its first word makes the answer, the end of its context
// ends it.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	req, err := leg.ReadRequest(r.Body)
	if err != nil {
		return nil, err
	}
	in, out := io.Pipe()
	w := &piped{out: out, head: make(chan int, 1)}
	go func() {
		defer out.Close()
		defer func() {
			if recover() != nil { // the script cut the connection
				out.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		m[r.URL.Host](&fakeLeg{req: req, ctx: r.Context(), w: w})
	}()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	select {
	case status := <-w.head:
		return &http.Response{StatusCode: status, Body: in, Header: http.Header{}}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// piped is the worker's side of an answer.
type piped struct {
	out  *io.PipeWriter
	head chan int
	said bool
}

func (p *piped) Header() http.Header { return http.Header{} }
func (p *piped) Flush()              {}
func (p *piped) WriteHeader(status int) {
	p.said = true
	p.head <- status
}
func (p *piped) Write(b []byte) (int, error) {
	if !p.said {
		p.WriteHeader(http.StatusOK)
	}
	return p.out.Write(b)
}

// bubble is a gateway with one pair, in virtual time.
type bubble struct {
	*testing.T
	g       *Gateway
	workers memory
	began   time.Time
}

// virtual runs f in a bubble. At its end the gateway is closed; nothing may be left.
func virtual(t *testing.T, change func(*Config), f func(*bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := Config{Model: "fake", Text: byteText{}, Log: logrules.New(t), Keepalive: -1}
		c.Budgets = relay.Budgets{Queue: 6 * time.Second, Place: 5 * time.Second, Connect: 7 * time.Second, FirstToken: 11 * time.Second, Gap: 13 * time.Second, Total: time.Minute}
		c.Limits = relay.Limits{MaxRunning: 1, MaxQueued: 4, MaxTries: 1}
		if change != nil {
			change(&c)
		}
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		b := &bubble{T: t, g: g, workers: memory{}, began: time.Now()}
		g.client = baton.Over(b.workers)
		f(b)
		b.left()
		g.Close()
	})
}

// join adds a worker that plays s.
func (b *bubble) join(role string, s script) int32 {
	addr := fmt.Sprint(role, len(b.workers))
	b.workers[addr] = s
	w := Worker{Name: addr, Role: role, HTTP: addr, Boot: "b", ContextTokens: 1000, Manifest: "0123"}
	if role == RolePrefill {
		w.Link = "127.0.0.1:9"
	}
	id, err := b.g.Join(b.Context(), w)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// heard is what a client got and when, from the beginning of the bubble.
type heard struct {
	at     time.Duration
	status int
	body   string
}

// ask sends a request on a goroutine of its own.
func (b *bubble) ask(ctx context.Context, headers ...string) <-chan heard {
	got := make(chan heard, 1)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(helloBody+`,"stream":true}`)).WithContext(ctx)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		b.g.Handler().ServeHTTP(w, r)
		got <- heard{time.Since(b.began), w.Code, w.Body.String()}
	}()
	return got
}

// left demands that the gateway holds nothing.
func (b *bubble) left() {
	b.Helper()
	synctest.Wait()
	b.g.ask(b.Context(), func(l *loop) {
		for _, m := range l.roster.members {
			if m.load != 0 {
				b.Errorf("%s has load %d", m.Name, m.load)
			}
		}
		if n := len(l.calls) + len(l.legs) + l.core.Running() + l.core.Queue().Len; n != 0 {
			b.Errorf("%d calls, %d legs, %d running, %d queued are left", len(l.calls), len(l.legs), l.core.Running(), l.core.Queue().Len)
		}
		if at, timer, ok := l.core.NextTimer(); ok {
			b.Errorf("%s is armed for %v", timer.Name, at)
		}
	})
}

// Scripts in virtual time.
func accepts(l *fakeLeg) { l.accept(); l.wait() }
func says(l *fakeLeg)    { l.accept(); l.piece("hel"); l.wait() }
func ignores(l *fakeLeg) { l.wait() }
func computes(l *fakeLeg) {
	l.accept()
	l.line(leg.Line{End: &leg.End{Outcome: room.Success, PromptTokens: len(l.req.Tokens)}})
}
func answers(l *fakeLeg) { l.accept(); l.piece("hel"); l.piece("lo"); l.done(5) }

// TestBudgetsEndRequestsToTheMoment: each budget ends its phase exactly when it is over, with
// its own cause, and no later timer is left armed.
func TestBudgetsEndRequestsToTheMoment(t *testing.T) {
	for _, row := range []struct {
		name            string
		prefill, decode script // nil: no such worker
		change          func(*Config)
		headers         []string
		want            time.Duration
		status          int
		code            string
	}{
		{name: "place", prefill: accepts, want: 5 * time.Second, status: 503, code: "unavailable"},
		{name: "queue, with nobody to serve it", prefill: accepts, change: func(c *Config) { c.Budgets.Place = time.Minute }, want: 6 * time.Second, status: 503, code: "unavailable"},
		{name: "connect", prefill: accepts, decode: ignores, want: 7 * time.Second, status: 502, code: "worker_lost"},
		{name: "connect, prefill", prefill: ignores, decode: accepts, want: 7 * time.Second, status: 502, code: "worker_lost"},
		{name: "first token", prefill: accepts, decode: accepts, want: 11 * time.Second, status: 504, code: "deadline"},
		{name: "gap", prefill: computes, decode: says, want: 13 * time.Second, status: 200, code: "deadline"},
		{name: "total", prefill: computes, decode: says, change: func(c *Config) { c.Budgets.Total = 2 * time.Second }, want: 2 * time.Second, status: 200, code: "deadline"},
		{name: "total by header", prefill: accepts, decode: accepts, headers: []string{"X-Request-Timeout", "1.5"}, want: 1500 * time.Millisecond, status: 504, code: "deadline"},
	} {
		t.Run(row.name, func(t *testing.T) {
			virtual(t, row.change, func(b *bubble) {
				if row.prefill != nil {
					b.join(RolePrefill, row.prefill)
				}
				if row.decode != nil {
					b.join(RoleDecode, row.decode)
				}
				r := <-b.ask(b.Context(), row.headers...)
				if r.at != row.want || r.status != row.status || !strings.Contains(r.body, `"code":"`+row.code+`"`) || strings.Contains(r.body, "[DONE]") {
					b.Errorf("after %v: status %d, %s; want %v, %d, %s", r.at, r.status, r.body, row.want, row.status, row.code)
				}
			})
		})
	}
}

// TestAQueuedRequestEndsWithItsBudget: one right to run, two requests: the second leaves the
// queue when its budget is over, and the first does not notice.
func TestAQueuedRequestEndsWithItsBudget(t *testing.T) {
	virtual(t, nil, func(b *bubble) {
		b.join(RolePrefill, computes)
		b.join(RoleDecode, func(l *fakeLeg) {
			l.accept()
			for range 10 { // ten seconds of an answer
				l.piece(".")
				time.Sleep(time.Second)
			}
			l.done(10)
		})
		first := b.ask(b.Context())
		synctest.Wait()
		if r := <-b.ask(b.Context()); r.at != 6*time.Second || r.status != 429 || !strings.Contains(r.body, `"code":"overload"`) {
			b.Errorf("after %v: status %d, %s; want 6s, 429, overload", r.at, r.status, r.body)
		}
		if r := <-first; r.at != 10*time.Second || r.status != 200 || strings.Count(r.body, "data: [DONE]") != 1 {
			b.Errorf("after %v: status %d, %s; want 10s, 200", r.at, r.status, r.body)
		}
	})
}

// TestAWorkerThatComesIsUsedAtOnce: who waits for a worker is served in the moment in which one
// joins, or is heard of as well.
func TestAWorkerThatComesIsUsedAtOnce(t *testing.T) {
	virtual(t, nil, func(b *bubble) {
		b.join(RolePrefill, computes)
		got := b.ask(b.Context())
		time.Sleep(4 * time.Second)
		b.join(RoleDecode, answers)
		if r := <-got; r.at != 4*time.Second || r.status != 200 || !strings.Contains(r.body, "[DONE]") {
			b.Errorf("after %v: status %d, %s; want 4s, 200", r.at, r.status, r.body)
		}
	})
	virtual(t, nil, func(b *bubble) {
		b.join(RolePrefill, computes)
		ill := b.join(RoleDecode, answers)
		b.g.Health(b.Context(), ill, time.Now(), false)
		got := b.ask(b.Context())
		time.Sleep(2 * time.Second)
		b.g.Health(b.Context(), ill, time.Now(), true)
		if r := <-got; r.at != 2*time.Second || r.status != 200 {
			b.Errorf("after %v: status %d, %s; want 2s, 200", r.at, r.status, r.body)
		}
	})
}

// TestAClientMayLeaveInEveryPhase: its request is over in the moment in which it leaves, and
// both legs are closed in that moment.
func TestAClientMayLeaveInEveryPhase(t *testing.T) {
	for phase, pair := range map[string][2]script{
		"queued": {computes, says}, "placing": {computes, nil}, "connecting": {ignores, ignores}, "prefilling": {accepts, accepts}, "streaming": {computes, says},
	} {
		t.Run(phase, func(t *testing.T) {
			virtual(t, nil, func(b *bubble) {
				began := time.Now()
				closed := func(s script) script {
					return func(l *fakeLeg) {
						s(l)
						if l.ctx.Err() != nil && time.Since(began) != 2*time.Second && phase != "queued" {
							b.Errorf("a leg is closed after %v, want 2s", time.Since(began))
						}
					}
				}
				b.join(RolePrefill, closed(pair[0]))
				if pair[1] != nil {
					b.join(RoleDecode, closed(pair[1]))
				}
				ctx, leave := context.WithCancel(b.Context())
				other, leaveToo := context.WithCancel(b.Context())
				defer leaveToo()
				var first <-chan heard
				if phase == "queued" {
					first = b.ask(other)
					synctest.Wait()
				}
				got := b.ask(ctx)
				time.Sleep(2 * time.Second)
				b.g.ask(b.Context(), func(l *loop) {
					in := false
					l.core.Rooms(func(v relay.View) bool { in = in || v.Phase.String() == phase; return true })
					if !in {
						b.Errorf("nobody is %s", phase)
					}
				})
				leave()
				if r := <-got; r.at != 2*time.Second {
					b.Errorf("its handler returns after %v, want 2s", r.at)
				}
				if first != nil {
					leaveToo()
					<-first
				}
			})
		})
	}
}

// TestCloseEndsEverythingInThatMoment: whatever phase they are in.
func TestCloseEndsEverythingInThatMoment(t *testing.T) {
	virtual(t, func(c *Config) { c.Limits.MaxRunning = 2 }, func(b *bubble) {
		b.join(RolePrefill, computes)
		b.join(RoleDecode, says)
		var got []<-chan heard
		for range 4 { // two stream, two are queued
			got = append(got, b.ask(b.Context()))
		}
		time.Sleep(time.Second)
		b.g.Close()
		for _, c := range got {
			if r := <-c; r.at != time.Second || r.status != 200 && r.status != 503 {
				b.Errorf("after %v: status %d, %s", r.at, r.status, r.body)
			}
		}
	})
}
