package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/proof/replay"
	"baton/serve/recorder"
)

// recording makes a directory for the traces of all processes of a test and gives the flags for
// it. When they are over, whatever ended them, fresh cores are told what each was told and must
// do the same (X7).
func recording(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	kept := t.ArtifactDir()
	t.Cleanup(func() { replayed(t, dir, kept) })
	return []string{"--record", dir}
}

// replayed replays every trace of a directory; when something is wrong all of them are kept.
func replayed(t *testing.T, dir, kept string) {
	reports, mail, err := replay.All(dir)
	if err != nil {
		t.Errorf("%v (X7)", err)
		keep(t, dir, kept)
	}
	events, killed := 0, 0
	for _, r := range reports {
		events += r.Events
		if r.End != recorder.EndClosed {
			killed++
		}
	}
	t.Logf("%d traces replayed, %d of killed processes, %d events; %s", len(reports), killed, events, mail)
}

// keep copies traces to where go test -artifacts keeps them.
func keep(t *testing.T, dir, to string) {
	if err := os.CopyFS(filepath.Join(to, "traces"), os.DirFS(dir)); err != nil {
		t.Error(err)
	}
}

// TestAChangedTraceIsNoticed keeps X7 from passing because nothing is compared: one word of one
// trace of a real process is changed, and replay says where.
func TestAChangedTraceIsNoticed(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "--record", dir)
	askAll(t, c, repeats(rand.New(rand.NewPCG(19, 8)), 8), 4)
	awaitQuiet(t, c, endedMax)
	if err := c.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct{ role, old, new string }{
		{"prefill", `{"kind":"end","room":`, `{"kind":"refuse","room":`},
		{"decode", `"kind":"emit"`, `"kind":"begin"`},
		{"gateway", `"kind":"forward"`, `"kind":"discard"`},
	} {
		files, err := filepath.Glob(filepath.Join(dir, change.role+"-*"+recorder.Suffix))
		if err != nil || len(files) != 1 {
			t.Fatalf("traces of %s: %v, %v", change.role, files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if r, err := replay.Check(files[0]); err != nil || r.Differs != nil || r.End != recorder.EndClosed || r.Rooms < 8 {
			t.Fatalf("as it was written: %v, %v", r, err)
		}
		at := strings.LastIndex(string(b), change.old)
		if at < 0 {
			t.Fatalf("no %s in the trace of %s", change.old, change.role)
		}
		changed := string(b[:at]) + change.new + string(b[at+len(change.old):])
		if err := os.WriteFile(files[0], []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := replay.Check(files[0])
		if line := 1 + strings.Count(string(b[:at]), "\n"); err != nil || r.Differs == nil || r.Differs.Line != line {
			t.Errorf("%s for %s in line %d: %v, %v", change.new, change.old, line, r, err)
		} else {
			t.Log(r)
		}
	}
}
