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
	if line := pj.one(t, "msg", "room ended", "room", half.Room.String()); line["rid"] != "" {
		t.Errorf("a room without a request has the rid %v", line["rid"])
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
