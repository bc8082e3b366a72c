package gateway

import (
	"strings"
	"testing"
	"time"

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
