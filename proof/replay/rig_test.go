package replay

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/serve/recorder"
)

var began = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func life(role string, boot room.Boot) recorder.Life {
	return recorder.Life{Role: role, Name: role + "-0", Boot: boot, Began: began, Log: slog.New(slog.DiscardHandler)}
}

// only is the one trace in a directory.
func only(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+recorder.Suffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("traces %v, %v, want one", files, err)
	}
	return files[0]
}

// livesOfPrefill records a prefill core to which chance happens: rooms whose halves come in any
// order, aborts, cancels, links that end, failed steps and writes, deadlines.
func livesOfPrefill(t testing.TB, dir string, seed uint64, steps int) (file string) {
	t.Helper()
	cfg := prefill.Config{Blocks: 24, QueuedMax: 6, RunningMax: 4, ChunkTokens: 32}
	rec, err := recorder.NewPrefill(dir, life("prefill", 0xf1), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	core, out := prefill.New(cfg), prefill.Effects{}
	r := rand.New(rand.NewPCG(seed, 8))
	now := time.Duration(0)
	var owed []prefill.Event // answers to effects
	feed := func(ev prefill.Event) {
		now += time.Duration(r.IntN(1e6))
		out.Reset()
		rid := ""
		if ev.Kind == prefill.Request {
			rid = "rid-" + ev.Room.String()
		}
		rec.Before(now, &ev, rid)
		core.Step(now, ev, &out)
		rec.After(out.List)
		for _, x := range out.List {
			switch x.Kind {
			case prefill.Step:
				home := prefill.Event{Kind: prefill.StepDone}
				for _, it := range x.Items {
					home.Results = append(home.Results, prefill.Result{Room: it.Room, OK: r.IntN(20) > 0})
				}
				owed = append(owed, home)
			case prefill.Write:
				owed = append(owed, prefill.Event{Kind: prefill.WriteDone, Room: x.Room, Lease: x.Lease, Chunk: x.Chunk, OK: r.IntN(20) > 0})
			}
		}
	}
	for i := range steps {
		n := 1 + i/10 + r.IntN(4)
		id := room.ID(1000 + n)
		lease := room.Lease{Boot: room.Boot(1 + n%2), Seq: uint64(n)}
		tokens := 1 + n*37%150
		switch c := r.IntN(16); {
		case c < 3:
			feed(prefill.Event{Kind: prefill.Request, Room: id, Tokens: tokens, Deadline: now + time.Second})
		case c < 6:
			feed(prefill.Event{Kind: prefill.Prealloc, Prealloc: room.Prealloc{Room: id, Lease: lease, Conn: room.Conn(1 + n%2), Tokens: tokens, Left: time.Second}})
		case c < 7:
			feed(prefill.Event{Kind: prefill.Cancel, Cancel: room.Cancel{Room: id, Lease: lease, Cause: room.Deadline}})
		case c < 8:
			feed(prefill.Event{Kind: prefill.Abort, Room: id, Cause: room.Cancelled})
		case c < 9 && r.IntN(10) == 0:
			feed(prefill.Event{Kind: prefill.LinkEnd, Boot: lease.Boot, Conn: room.Conn(1 + n%2)})
		case len(owed) > 0:
			k := r.IntN(len(owed))
			ev := owed[k]
			owed = slices.Delete(owed, k, k+1)
			feed(ev)
		default:
			if _, timer, ok := core.NextTimer(); ok && r.IntN(10) == 0 { // at any moment, as the explorer does
				feed(prefill.Event{Kind: prefill.TimerFired, Timer: timer})
			}
		}
	}
	return filepath.Join(dir, "prefill-00000000000000f1"+recorder.Suffix)
}

// a request that is tried twice: the first decode worker refuses.
func livesOfRelay(t testing.TB, dir string) (file string) {
	t.Helper()
	rec, err := recorder.NewRelay(dir, life("gateway", 0x9a), relay.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	core, out := relay.New(relay.Limits{}), relay.Effects{}
	now := time.Duration(0)
	for _, ev := range []relay.Event{
		{Kind: relay.Roster, Worker: 0},
		{Kind: relay.Arrive, Req: 1, Budgets: relay.Budgets{Total: time.Minute}},
		{Kind: relay.Arrive, Req: 2, Budgets: relay.Budgets{Total: time.Minute}},
		{Kind: relay.Pair, Req: 1, Attempt: 1, OK: true, Room: 0xaaa, Prefill: 0, Decode: 1},
		{Kind: relay.Pair, Req: 2, Attempt: 1, OK: true, Room: 0xbbb, Prefill: 0, Decode: 1},
		{Kind: relay.LegEnd, Req: 1, Attempt: 1, Leg: relay.Decode, Outcome: room.Fail(room.WorkerLost)},
		{Kind: relay.LegClosed, Req: 1, Attempt: 1, Leg: relay.Prefill},
		{Kind: relay.Pair, Req: 1, Attempt: 2, OK: true, Room: 0xccc, Prefill: 0, Decode: 2},
		{Kind: relay.LegOpen, Req: 1, Attempt: 2, Leg: relay.Prefill},
		{Kind: relay.LegOpen, Req: 1, Attempt: 2, Leg: relay.Decode},
		{Kind: relay.LegEnd, Req: 1, Attempt: 2, Leg: relay.Prefill, Outcome: room.Done(), Said: true},
		{Kind: relay.Tokens, Req: 1, Attempt: 2, Leg: relay.Decode, N: 1},
		{Kind: relay.Tokens, Req: 1, Attempt: 2, Leg: relay.Decode, N: 1},
		{Kind: relay.Tokens, Req: 1, Attempt: 2, Leg: relay.Decode, N: 1},
		{Kind: relay.LegEnd, Req: 1, Attempt: 2, Leg: relay.Decode, Outcome: room.Done(), Finished: true, Said: true},
	} {
		now += time.Millisecond
		out.Reset()
		rid := ""
		if ev.Kind == relay.Arrive {
			rid = map[uint64]string{1: "ours", 2: "theirs"}[ev.Req]
		}
		rec.Before(now, &ev, rid)
		core.Step(now, ev, &out)
		rec.After(out.List)
	}
	return filepath.Join(dir, "gateway-000000000000009a"+recorder.Suffix)
}

// change writes the file with one text for another, and returns the line in which that is.
func change(t testing.TB, file, old, new string) (line int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), old)
	if at < 0 {
		t.Fatalf("%s is not in the trace", old)
	}
	if err := os.WriteFile(file, []byte(string(b[:at])+new+string(b[at+len(old):])), 0o600); err != nil {
		t.Fatal(err)
	}
	return 1 + strings.Count(string(b[:at]), "\n")
}
