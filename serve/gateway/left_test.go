package gateway

import (
	"sync"
	"testing"
	"time"
)

// The request has one deadline, counted from its arrival. Each leg of each attempt is told what is
// left of it at that moment, and never the whole again.
func TestEveryAttemptIsToldWhatIsLeft(t *testing.T) {
	const passes = 30 * time.Millisecond
	var mu sync.Mutex
	var left []int64 // of each leg, in the order in which they came; guarded by mu
	told := func(then script) script {
		return func(l *fakeLeg) {
			mu.Lock()
			left = append(left, l.req.LeftMS)
			mu.Unlock()
			then(l)
		}
	}
	r := newRig(t, 2, nil)
	r.prefills[0].play(told(func(l *fakeLeg) { l.accept(); l.wait() }))
	r.decodes[0].play(told(func(l *fakeLeg) { l.accept(); time.Sleep(passes); l.cut() }))
	r.prefills[1].play(told(goodPrefill))
	r.decodes[1].play(told(goodDecode))
	if a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`); a.text() != "hello" {
		t.Fatalf("status %d %s %q: want the answer of the second pair", a.status, a.body, a.events)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(left) != 4 {
		t.Fatalf("%d legs, want 4", len(left))
	}
	first, second := min(left[0], left[1]), max(left[2], left[3])
	if first <= passes.Milliseconds() || first-second < passes.Milliseconds()-1 {
		t.Errorf("the first attempt was told that %d ms are left, and the second, %v later, %d", first, passes, second)
	}
	r.quiet()
}
