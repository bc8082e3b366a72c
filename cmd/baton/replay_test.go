package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
	"baton/serve/recorder"
)

// gatewayAndWorker records a gateway that opens one leg of a request, and a prefill worker to which
// it comes.
func gatewayAndWorker(t *testing.T) (dir, gateway, worker string) {
	t.Helper()
	dir = t.TempDir()
	life := func(role string) recorder.Life {
		return recorder.Life{Role: role, Name: role + "-0", Boot: 1, Began: time.Now(), Log: slog.New(slog.DiscardHandler)}
	}
	g, err := recorder.NewRelay(dir, life("gateway"), relay.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r, does := relay.New(relay.Limits{}), relay.Effects{}
	for _, ev := range []relay.Event{{Kind: relay.Roster}, {Kind: relay.Arrive, Req: 1, Budgets: relay.Budgets{Total: time.Minute}},
		{Kind: relay.Pair, Req: 1, Attempt: 1, OK: true, Room: 0xaaa, Decode: 1}} {
		does.Reset()
		g.Before(1, &ev, map[bool]string{true: "ours"}[ev.Kind == relay.Arrive])
		r.Step(1, ev, &does)
		g.After(does.List)
	}
	g.Close()
	cfg := prefill.Config{Blocks: 8, QueuedMax: 8, RunningMax: 4, ChunkTokens: 16}
	w, err := recorder.NewPrefill(dir, life("prefill"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, wants := prefill.New(cfg), prefill.Effects{}
	ev := prefill.Event{Kind: prefill.Request, Room: room.ID(0xaaa), Tokens: 20, Deadline: time.Minute}
	w.Before(2, &ev, "ours")
	p.Step(2, ev, &wants)
	w.After(wants.List)
	w.Close()
	return dir, filepath.Join(dir, "gateway-0000000000000001"+recorder.Suffix), filepath.Join(dir, "prefill-0000000000000001"+recorder.Suffix)
}

// replayed is what the command prints for the arguments, its exit code, and what is printed behind.
func replayed(t *testing.T, args ...string) (out string, code int, complaint string) {
	t.Helper()
	var b strings.Builder
	root := newRoot()
	root.SetArgs(append([]string{"replay"}, args...))
	root.SetOut(&b)
	err := root.Execute()
	if err == nil {
		return b.String(), 0, ""
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		if code, err = exit.code, exit.err; err == nil {
			return b.String(), code, ""
		}
		return b.String(), code, err.Error()
	}
	return b.String(), 1, err.Error()
}

// TestATraceUnderTwoNamesIsReadOnce: what it heard twice would be a false alarm.
func TestATraceUnderTwoNamesIsReadOnce(t *testing.T) {
	dir, gateway, worker := gatewayAndWorker(t)
	t.Chdir(dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(worker, link); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{dir}, {gateway, worker, filepath.Base(worker)}, {gateway, link, worker}, {".", dir, link}} {
		if out, code, complaint := replayed(t, args...); code != 0 || !strings.Contains(out, "2 files, 4 events") || !strings.Contains(out, "1 messages between them were heard") {
			t.Errorf("%v: exit %d, %s\n%s", args, code, complaint, out)
		}
	}
	b, err := os.ReadFile(worker)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("z"+recorder.Suffix, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{dir}, {dir, "--rid", "ours"}} {
		if out, code, complaint := replayed(t, args...); code != 1 || !strings.Contains(complaint, "the same life as") || !strings.Contains(out, "2 files, 4 events") {
			t.Errorf("%v with a copy: exit %d, %s\n%s", args, code, complaint, out)
		}
	}
}

// TestReplayShowsNothingThatCannotBePrinted, wherever it comes from.
func TestReplayShowsNothingThatCannotBePrinted(t *testing.T) {
	for in, want := range map[string]string{"a – é\n→": "a – é\n→", "\x1b[2J\a": `\x1b[2J\a`, "\xff\r\u009b\u202e": `\xff\r\u009b\u202e`, "\ufffd": "\ufffd"} {
		if got := visible(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	var b strings.Builder
	if fmt.Fprint(&paper{w: &b}, "\x1b[2J\n"); b.String() != `\x1b[2J`+"\n" {
		t.Errorf("a report has %q", b.String())
	}
	for _, args := range [][]string{{"\x1b[2J"}, {"--room", "\x1b[2J", "x"}} {
		if _, code, complaint := replayed(t, args...); code == 0 || strings.Contains(complaint, "\x1b") {
			t.Errorf("%q: exit %d, %q", args, code, complaint)
		}
	}
	_, gateway, _ := gatewayAndWorker(t)
	if _, code, complaint := replayed(t, gateway, "--rid", "\x1b[2J"); code != 1 || !strings.Contains(complaint, `"\x1b[2J"`) {
		t.Errorf("exit %d, %q", code, complaint)
	}
}

// TestAReportThatCannotBeWrittenIsAnError: nobody takes silence for a clean trace.
func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	_, gateway, _ := gatewayAndWorker(t)
	err := replayPlan{}.run(full{}, []string{gateway})
	if err == nil || !strings.Contains(err.Error(), "the report is not whole: no space") {
		t.Errorf("%v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
