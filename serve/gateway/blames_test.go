package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Given a worker with many requests, when it dies, then the log has one line of it with a count,
// the metric every one of them.
func TestAWorkerThatDiesIsOneLine(t *testing.T) {
	var log bytes.Buffer // written by the loop, read when it is over
	r := newRig(t, 1, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Limits.MaxTries = 1
	})
	const n = 40
	var here, gone sync.WaitGroup
	here.Add(n)
	die := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); here.Done(); <-die; l.cut() })
	for range n {
		gone.Go(func() { r.post("/v1/chat/completions", helloBody+`}`) })
	}
	here.Wait()
	close(die)
	gone.Wait()
	r.quiet()
	if m := r.get("/metrics").body; !strings.Contains(m, fmt.Sprintf(`baton_gateway_blames_total{cause="worker_lost",worker="decode"} %d`, n)) {
		t.Error("the metric does not count every request")
	}
	r.g.Close() // tells what waits to be told
	lines, told := 0, 0
	for line := range strings.Lines(log.String()) {
		if _, rest, ok := strings.Cut(line, `msg="worker blamed" worker=decode cause=worker_lost rid=`); ok {
			var attempts int
			if _, detail, ok := strings.Cut(rest, `detail="`); ok {
				fmt.Sscanf(detail, "%d attempts", &attempts)
			}
			lines, told = lines+1, told+attempts
		}
	}
	if told != n || lines > n/10 { // one, unless this machine needs seconds for a burst of 40 ends
		t.Errorf("%d lines tell of %d attempts, want one of %d:\n%s", lines, told, n, log.String())
	}
}
