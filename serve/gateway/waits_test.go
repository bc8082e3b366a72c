package gateway

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine/chat"
	"baton/serve/leg"
)

// TestAStreamThatWaitsForMemoryIsNoSilence: a worker took a room's memory back and says so now and
// then, for longer than a gap may be; the client gets the rest, and nothing of what was said. One
// that says it and then nothing any more is given up a gap later.
func TestAStreamThatWaitsForMemoryIsNoSilence(t *testing.T) {
	waits := func(l *fakeLeg, times int) {
		l.accept()
		l.piece("hel")
		for range times {
			time.Sleep(10 * time.Second)
			l.line(leg.Line{Waits: true})
		}
	}
	virtual(t, nil, func(b *bubble) {
		b.join(RolePrefill, computes)
		b.join(RoleDecode, func(l *fakeLeg) { waits(l, 3); l.piece("lo"); l.done(5) })
		r := <-b.ask(b.Context())
		if r.at != 30*time.Second || r.status != 200 || strings.Count(r.body, "data: [DONE]") != 1 || strings.Contains(r.body, "waits") {
			b.Errorf("after %v: status %d, %s; want 30s, 200, a whole answer", r.at, r.status, r.body)
		}
		if n := strings.Count(r.body, `"content":"`); n > 3 { // the role, and two pieces
			b.Errorf("%d pieces came of two", n)
		}
	})
	virtual(t, nil, func(b *bubble) {
		b.join(RolePrefill, computes)
		b.join(RoleDecode, func(l *fakeLeg) { waits(l, 1); l.wait() })
		if r := <-b.ask(b.Context()); r.at != 23*time.Second || !strings.Contains(r.body, `"code":"deadline"`) {
			b.Errorf("after %v: status %d, %s; want 23s, deadline", r.at, r.status, r.body)
		}
	})
}

// dawdling takes a while to cut a conversation into tokens.
type dawdling struct {
	byteText
	takes time.Duration
}

func (s dawdling) Chat(c chat.Conversation) (*chat.Prompt, error) {
	time.Sleep(s.takes)
	return s.byteText.Chat(c)
}

// TestTheTimeOfARequestRunsWhileItIsChecked: what it takes to check a request and to cut it into
// tokens is part of its time (W9), also where nothing is left of it, and workers hear of the rest.
func TestTheTimeOfARequestRunsWhileItIsChecked(t *testing.T) {
	for _, row := range []struct{ takes, total, want, left time.Duration }{
		{3 * time.Second, 5 * time.Second, 5 * time.Second, 2 * time.Second},
		{8 * time.Second, 5 * time.Second, 8*time.Second + 1, time.Millisecond}, // at once
	} {
		var left atomic.Int64
		listens := func(l *fakeLeg) { left.Store(l.req.LeftMS); l.accept(); l.wait() }
		virtual(t, func(c *Config) { c.Text = dawdling{takes: row.takes} }, func(b *bubble) {
			b.join(RolePrefill, listens)
			b.join(RoleDecode, listens)
			r := <-b.ask(b.Context(), "X-Request-Timeout", fmt.Sprint(row.total.Seconds()))
			if r.at != row.want || r.status != 504 || !strings.Contains(r.body, `"code":"deadline"`) {
				b.Errorf("after %v: status %d, %s; want %v, 504, deadline", r.at, r.status, r.body, row.want)
			}
			if at := left.Load(); at != 0 && at != row.left.Milliseconds() {
				b.Errorf("a worker was told that %d ms are left, want %v", at, row.left)
			}
		})
	}
}
