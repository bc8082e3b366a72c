package scenario

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"baton/core/room"
	"baton/serve/observe"
	"baton/serve/worker"
)

// Given a link with rooms on it, when bytes that are no frame come in on it, then the link ends
// with its rooms, which are told, prefill lives on, and the next room makes a new link and gets
// the right answer.
// SGLang: PR #30352, PR #30301.
func TestF01AFrameThatNobodyKnows(t *testing.T) {
	p, po := startWorker(t, worker.Prefill, 64, "layout")
	d, do := startWorker(t, worker.Decode, 64, "layout")
	link := newWire(t, p.Link())
	for _, junk := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x00", "\x00\x00\x00\x09abcdefghi"} {
		held, release := po.hold()
		q := legOf(prompt(100), 3)
		pre := open(t, p, worker.Prefill, q)
		q.Link = link.listener.Addr().String()
		dec := open(t, d, worker.Decode, q)
		<-held
		link.inject([]byte(strings.Repeat(junk, 1000)))
		until(t, "decode has given the room up", func() bool { return len(snapshot(t, d).Rooms) == 0 })
		release()
		<-pre.over
		<-dec.over
		if dec.end == nil || dec.end.Cause != room.WorkerLost || pre.end == nil || pre.end.Outcome == room.Success {
			t.Fatalf("%q: decode ends with %+v, prefill with %+v", junk, dec.end, pre.end)
		}
		empty(t, p, d)
		q = legOf(prompt(100), 3)
		open(t, p, worker.Prefill, q)
		q.Link = link.listener.Addr().String()
		if got, want := open(t, d, worker.Decode, q).ended(room.NoCause).ids, follow(q.Tokens, 3, do.vocab); !slices.Equal(got, want) {
			t.Errorf("behind %q: %v, want %v", junk, got, want)
		}
	}
	empty(t, p, d)
}

// Given a worker whose engine step hangs, when its health is asked fifty times, then no probe
// becomes a room, takes a block or waits in the engine.
// SGLang: issue #35884.
func TestF21AProbeIsNoRequest(t *testing.T) {
	u, o := startWorker(t, worker.Unified, 64, "layout")
	held, release := o.hold()
	c := open(t, u, worker.Decode, legOf(prompt(40), 2))
	<-held
	before := snapshot(t, u)
	for range 50 {
		resp, err := plain.Get("http://" + u.HTTP() + "/health")
		if err != nil {
			t.Fatal(err)
		}
		var h observe.Health
		err = json.NewDecoder(resp.Body).Decode(&h)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || h.Live != 1 {
			t.Errorf("%+v, %v: want one live room", h, err)
		}
	}
	after := snapshot(t, u)
	if len(after.Rooms) != 1 || after.Worker.Blocks != before.Worker.Blocks {
		t.Errorf("probes left %+v, %+v", after.Rooms, after.Worker.Blocks)
	}
	release()
	c.ended(room.NoCause)
	empty(t, u)
	if o.steps != 3 { // 40 tokens in two chunks, one token more
		t.Errorf("%d engine steps, want 3", o.steps)
	}
}
