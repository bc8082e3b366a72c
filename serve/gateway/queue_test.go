package gateway

import (
	"fmt"
	"strings"
	"testing"

	"baton/core/relay"
)

// metricOf reads one plain sample of the gateway's metrics.
func metricOf(t *testing.T, r *rig, name string) (v float64) {
	t.Helper()
	_, rest, ok := strings.Cut(r.get("/metrics").body, "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &v); !ok || err != nil {
		t.Fatalf("metrics lack %s: %v", name, err)
	}
	return v
}

// TestTheQueueShowsItsLengthAndItsOldest holds the only right to run: the metrics say how many
// wait behind it and for how long, and 0 when they are through.
func TestTheQueueShowsItsLengthAndItsOldest(t *testing.T) {
	const length, oldest = "baton_gateway_queued", "baton_gateway_queue_oldest_seconds"
	r := newRig(t, 1, func(c *Config) { c.Limits = relay.Limits{MaxRunning: 1, MaxQueued: 4} })
	here, leave := make(chan struct{}, 3), make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); here <- struct{}{}; <-leave; l.piece("x"); l.done(1) })
	answers := make(chan answer, 3)
	ask := func() { answers <- r.post("/v1/chat/completions", helloBody+`}`) }
	go ask()
	<-here
	go ask()
	go ask()
	r.until(func(l *loop) bool { return l.core.Queue().Len == 2 })
	if n, first := metricOf(t, r, length), metricOf(t, r, oldest); n != 2 || !(first > 0) {
		t.Errorf("%v wait, the oldest for %v s; want 2, longer than 0", n, first)
	} else if later := metricOf(t, r, oldest); later <= first {
		t.Errorf("the oldest has waited for %v s, and then for %v: time goes on", first, later)
	}
	close(leave)
	for range 3 {
		if a := <-answers; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.quiet()
	if n, left := metricOf(t, r, length), metricOf(t, r, oldest); n != 0 || left != 0 {
		t.Errorf("behind the last %v wait, the oldest for %v s", n, left)
	}
}
