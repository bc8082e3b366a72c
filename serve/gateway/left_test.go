package gateway

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/relay"
)

// The request has one deadline, counted from its arrival. Each leg of each attempt is told what is
// left of it at that moment, and never the whole again.
func TestEveryAttemptIsToldWhatIsLeft(t *testing.T) {
	two := func(c *Config) { c.Limits = relay.Limits{MaxRunning: 1, MaxTries: 2, RetryBurst: 2} }
	virtual(t, two, func(b *bubble) {
		var mu sync.Mutex
		left := map[string]int64{} // by leg; guarded by mu
		told := func(leg string, then script) script {
			return func(l *fakeLeg) {
				mu.Lock()
				left[leg] = l.req.LeftMS
				mu.Unlock()
				then(l)
			}
		}
		b.join(RolePrefill, told("first prefill", accepts))
		b.join(RoleDecode, told("first decode", func(l *fakeLeg) { l.accept(); time.Sleep(2 * time.Second); l.cut() }))
		b.join(RolePrefill, told("second prefill", computes))
		b.join(RoleDecode, told("second decode", func(l *fakeLeg) { time.Sleep(time.Second); answers(l) }))
		if r := <-b.ask(b.Context()); r.at != 3*time.Second || r.status != 200 || !strings.Contains(r.body, "[DONE]") {
			b.Errorf("after %v: status %d, %s; want the answer of the second pair after 3s", r.at, r.status, r.body)
		}
		want := map[string]int64{"first prefill": 60_000, "first decode": 60_000, "second prefill": 58_000, "second decode": 58_000}
		if mu.Lock(); !maps.Equal(left, want) {
			b.Errorf("the first attempt was told that %d ms are left, and the second, two seconds later, %d: all legs: %v, want %v",
				left["first decode"], left["second decode"], left, want)
		}
		mu.Unlock()
	})
}
