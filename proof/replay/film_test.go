package replay

import (
	"strings"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/room"
	"baton/serve/recorder"
)

// batch records a decode core that computes two requests in the same steps.
func batch(t *testing.T, dir string) (file string) {
	t.Helper()
	cfg := decode.Config{Boot: 0xd1, Blocks: 16, QueuedMax: 4, RunningMax: 4, ChunkTokens: 64}
	rec, err := recorder.NewDecode(dir, life("decode", cfg.Boot), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	core, out := decode.New(cfg), decode.Effects{}
	const output = 4
	said, both := map[room.ID]int{}, 0
	now := time.Duration(0)
	feed := func(ev decode.Event) (answers []decode.Event) {
		now += time.Millisecond
		out.Reset()
		rec.Before(now, &ev, map[room.ID]string{0xaaa: "ours", 0xbbb: "theirs"}[ev.Room])
		core.Step(now, ev, &out)
		rec.After(out.List)
		for _, x := range out.List {
			switch x.Kind {
			case decode.Begin:
				said[x.Room]++
				answers = append(answers, decode.Event{Kind: decode.Begun, Room: x.Room, OK: true})
			case decode.Step:
				home := decode.Event{Kind: decode.StepDone}
				for _, it := range x.Items {
					if !it.Prefill {
						said[it.Room]++
					}
					home.Results = append(home.Results, decode.Result{Room: it.Room, OK: true, Finished: said[it.Room] == output})
				}
				both += len(x.Items) / 2
				answers = append(answers, home)
			}
		}
		return answers
	}
	owed := []decode.Event{
		{Kind: decode.Request, Room: 0xaaa, Peer: decode.Local, Tokens: 20, MaxNew: output, Deadline: time.Minute},
		{Kind: decode.Request, Room: 0xbbb, Peer: decode.Local, Tokens: 20, MaxNew: output, Deadline: time.Minute},
	}
	for len(owed) > 0 {
		owed = append(owed[1:], feed(owed[0])...)
	}
	if both == 0 {
		t.Fatal("no step had both in it")
	}
	return only(t, dir)
}

// TestARoomIsDrawnWithoutThoseOfItsBatch: a step names all rooms that it computes, and whoever
// asks for one request, or one room, gets to see that alone.
func TestARoomIsDrawnWithoutThoseOfItsBatch(t *testing.T) {
	file := batch(t, t.TempDir())
	var charts []string
	for _, f := range []*Film{OfRequest("ours"), OfRoom(0xaaa), OfRequest("theirs"), OfRoom(0xbbb)} {
		if r, err := f.Watch(file); err != nil || r.Differs != nil {
			t.Fatalf("%v, %v", r, err)
		}
		got, err := f.Draw()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(f.rooms); n != 1 || strings.Count(got, " request ") != 1 || strings.Count(got, "→ end") != 1 && strings.Count(got, ", end") != 1 {
			t.Errorf("%d rooms, want 1:\n%s", n, got)
		}
		charts = append(charts, got)
	}
	if charts[0] != charts[1] || charts[2] != charts[3] || charts[0] == charts[2] {
		t.Errorf("a request and its only room are drawn in two ways:\n%s", strings.Join(charts, "\n"))
	}
}
