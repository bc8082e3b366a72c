package worker

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// journal keeps what a worker logs, one JSON object a line.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

// into makes a worker log to the journal.
func (j *journal) into(level slog.Level) option {
	return func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: level})) }
}

// lines returns the lines that hold all of these, key and value by turns.
func (j *journal) lines(t testing.TB, want ...string) (found []map[string]any) {
	t.Helper()
	j.mu.Lock()
	all := j.b.String()
	j.mu.Unlock()
next:
	for text := range strings.Lines(all) {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for i := 0; i < len(want); i += 2 {
			if line[want[i]] != want[i+1] {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// one returns the only line that holds all of these.
func (j *journal) one(t testing.TB, want ...string) map[string]any {
	t.Helper()
	found := j.lines(t, want...)
	if len(found) != 1 {
		t.Fatalf("%d lines with %q, want one: %v", len(found), want, found)
	}
	return found[0]
}

// Every room that was here ends with one line at Info and one count, also the one of which only
// a Prealloc ever came; so does every leg that was refused.
func TestEveryRoomEndsWithOneLine(t *testing.T) {
	var pj, dj journal
	p, f := start(t, Prefill, 16, pj.into(slog.LevelInfo))
	d, _ := start(t, Decode, 16, dj.into(slog.LevelInfo))
	r := rand.New(rand.NewPCG(31, 32))

	whole := ask(r, 40, 2, f.vocab)
	pre, dec := both(t, p, d, whole, p.Link())
	pre.ended(room.NoCause)
	dec.ended(room.NoCause)

	half := ask(r, 40, 2, f.vocab)
	late := half
	half.Link = p.Link()
	left := open(t, d, Decode, half)
	inQueue(t, p, half.Room, room.Bootstrap)
	left.cancel()
	empty(t, p, d)
	open(t, p, Prefill, late).ended(room.Cancelled)
	open(t, p, Prefill, leg.Request{RID: "rid", Room: newRoom(r), LeftMS: 1000, Params: late.Params}).ended(room.ClientError) // no tokens

	for _, j := range []*journal{&pj, &dj} {
		line := j.one(t, "msg", "room ended", "room", whole.Room.String())
		if line["rid"] != "rid" || line["outcome"] != "success" || line["after"] == nil {
			t.Errorf("the whole room: %v", line)
		}
		line = j.one(t, "msg", "room ended", "room", half.Room.String(), "outcome", "aborted", "cause", "cancelled")
		if after, ok := line["after"].(float64); !ok || after <= 0 || after > float64(time.Hour) {
			t.Errorf("the half room: %v", line)
		}
	}
	if rid, said := pj.one(t, "msg", "room ended", "room", half.Room.String())["rid"]; said {
		t.Errorf("a room without a request has the rid %v", rid)
	}
	if cause, said := pj.one(t, "msg", "room ended", "room", whole.Room.String())["cause"]; said {
		t.Errorf("a success has the cause %v", cause)
	}
	if line := pj.one(t, "msg", "leg refused", "room", half.Room.String()); line["rid"] != "rid" || line["cause"] != "cancelled" || line["detail"] == "" {
		t.Errorf("the leg that came late: %v", line)
	}
	if line := pj.one(t, "msg", "leg refused", "cause", "client_error"); !strings.Contains(line["detail"].(string), "tokens") {
		t.Errorf("the leg without tokens: %v", line)
	}
	if n := len(pj.lines(t, "msg", "room ended")); n != 2 {
		t.Errorf("%d rooms ended in prefill's log, want 2", n)
	}
	if _, body := get(t, p, "/metrics"); !strings.Contains(body, `baton_rooms_ended_total{cause="cancelled",outcome="aborted",role="prefill"} 1`) {
		t.Error("the half room is not counted")
	}
}

// At Debug every transition names its room, so that one search finds the whole life of a room,
// with lease, peer and the phase it led to where there is one.
func TestTransitionsNameTheirRoom(t *testing.T) {
	var pj, dj journal
	p, f := start(t, Prefill, 16, pj.into(slog.LevelDebug))
	d, _ := start(t, Decode, 16, dj.into(slog.LevelDebug))
	r := rand.New(rand.NewPCG(41, 42))
	whole, half := ask(r, 40, 2, f.vocab), ask(r, 40, 2, f.vocab)
	pre, dec := both(t, p, d, whole, p.Link())
	pre.ended(room.NoCause)
	dec.ended(room.NoCause)
	half.Link = p.Link()
	left := open(t, d, Decode, half)
	inQueue(t, p, half.Room, room.Bootstrap)
	left.cancel()
	empty(t, p, d)

	boot, lease := d.Boot().String(), room.Lease{Boot: d.Boot(), Seq: 1}.String()
	again := room.Lease{Boot: d.Boot(), Seq: 2}.String()
	for _, want := range [][]string{
		{"msg", "event", "event", "prealloc", "room", whole.Room.String(), "lease", lease, "peer", boot},
		{"msg", "effect", "event", "settle", "room", whole.Room.String(), "lease", lease, "peer", boot, "phase", "succeeded"},
		{"msg", "event", "event", "cancel", "room", half.Room.String(), "lease", again, "peer", boot, "phase", "failed"},
		{"msg", "effect", "event", "end_half", "room", half.Room.String(), "lease", again},
		{"msg", "effect", "event", "step", "room", whole.Room.String(), "phase", "computing"},
		{"msg", "event", "event", "step_done", "room", whole.Room.String(), "phase", "writing"},
	} {
		pj.one(t, append(want, "worker", p.name)...)
	}
	for _, want := range [][]string{
		{"msg", "effect", "event", "send_prealloc", "room", whole.Room.String(), "lease", lease, "peer", p.Link(), "phase", "preallocated"},
		{"msg", "event", "event", "settled", "room", whole.Room.String(), "lease", lease, "peer", p.Link()},
		{"msg", "event", "event", "link_up", "peer", p.Link()},
		{"msg", "effect", "event", "send_cancel", "room", half.Room.String(), "lease", again, "peer", p.Link(), "phase", "failed"},
	} {
		dj.one(t, append(want, "worker", d.name)...)
	}
	for _, j := range []*journal{&pj, &dj} {
		for _, line := range j.lines(t, "level", "DEBUG") {
			if line["room"] == room.ID(0).String() {
				t.Errorf("a room that is none: %v", line)
			}
		}
	}
	if err := stopNow(d); err != nil {
		t.Fatal(err)
	}
	until(t, "prefill hears the end of the link", func() bool { return len(pj.lines(t, "event", "link_end", "peer", boot)) == 1 })
}

// What the link says of connections that never became one goes where the worker logs.
func TestARefusedLinkIsInTheWorkersLog(t *testing.T) {
	var j journal
	p, f := start(t, Prefill, 16, j.into(slog.LevelInfo))
	d, _ := start(t, Decode, 16, func(c *Config) { c.Secret = []byte("another secret, as long") })
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab)
	q.Link = p.Link()
	open(t, d, Decode, q).ended(room.Internal)
	until(t, "the refusal is logged", func() bool { return len(j.lines(t, "msg", "link refused", "worker", p.name)) == 1 })
}
