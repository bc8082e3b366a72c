package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"baton/core/relay"
	"baton/serve/leg"
)

// A worker that leaves keeps what it has; who comes meanwhile waits for its successor, which
// takes the place beside it. Whoever met the leaving one before the gateway knew is not refused
// for it: it is tried again like after a death.
func TestASuccessorStandsBesideTheWorkerThatLeaves(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Budgets.Place = time.Minute })
	old := r.decodes[0]
	finish := make(chan struct{})
	old.play(func(l *fakeLeg) { l.accept(); l.piece("hel"); <-finish; l.piece("lo"); l.done(5) })
	live, late := make(chan answer, 1), make(chan answer, 1)
	go func() { live <- r.post("/v1/chat/completions", helloBody+`,"stream":true}`) }()
	r.until(streaming)

	old.play(func(l *fakeLeg) { l.refuse(leg.LeavingStatus, `{"message":"the worker is draining"}`) })
	go func() { late <- r.post("/v1/chat/completions", helloBody+`}`) }()
	r.until(func(l *loop) (waits bool) {
		l.core.Rooms(func(v relay.View) bool {
			waits = waits || v.Phase == relay.Placing && v.Attempt == 2
			return true
		})
		return waits
	})
	if err := r.g.Retire(t.Context(), old.id); err != nil {
		t.Fatal(err)
	}
	r.g.Health(t.Context(), old.id, time.Now(), true) // of one that leaves that is no news
	if n := old.legs.Load(); n != 2 || r.g.Serving() {
		t.Errorf("%d legs at the worker that leaves, want 2; serving %v", n, r.g.Serving())
	}

	r.joined = 1 // its place again
	r.decodes = append(r.decodes, r.join(RoleDecode, goodDecode))
	if a := <-late; a.status != 200 {
		t.Errorf("met the leaving worker: %d %s", a.status, a.body)
	}
	if a := r.post("/v1/chat/completions", helloBody+`}`); a.status != 200 {
		t.Errorf("beside it: %d %s", a.status, a.body)
	}
	rows := func() (up []bool) {
		var got struct {
			Workers []struct {
				Worker string
				Up     bool
			}
		}
		if err := json.Unmarshal([]byte(r.get("/debug/requests").body), &got); err != nil {
			t.Fatal(err)
		}
		for _, w := range got.Workers {
			if w.Worker == RoleDecode {
				up = append(up, w.Up)
			}
		}
		return up
	}
	if up := rows(); len(up) != 2 || !up[0] || up[1] {
		t.Errorf("rows of the place are up %v, want the successor and then the one that leaves", up)
	}
	if m := r.get("/metrics").body; !strings.Contains(m, `baton_worker_legs{role="decode",worker="decode"} 1`) {
		t.Error("the leg at the worker that leaves is not counted")
	}
	close(finish)
	if a := <-live; a.text() != "hello" {
		t.Errorf("the stream at the worker that leaves: %d %q", a.status, a.events)
	}
	r.g.Leave(t.Context(), old.id)
	if up := rows(); len(up) != 1 || !up[0] {
		t.Errorf("rows of the place are up %v, want the successor alone", up)
	}
	r.quiet()
}
