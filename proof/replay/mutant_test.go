package replay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"baton/proof/mutants"
)

// traceEnv is the trace that TestReplayOfAnother replays, for a build of this test with another
// core.
const traceEnv = "BATON_TRACE"

func TestReplayOfAnother(t *testing.T) {
	file := os.Getenv(traceEnv)
	if file == "" {
		t.Skip("for TestAMutantDoesSomethingElse")
	}
	r, err := Check(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.Differs != nil {
		chart, err := r.Differs.Draw(r)
		t.Errorf("%s\n%s%v", r, chart, err)
	}
}

// TestAMutantDoesSomethingElse replays one trace of chance with the core that made it, and with
// that core and a mistake in it: a prefill worker that skips a cancelled room, one that frees
// blocks under a running step. Replay sees each at once, whatever it breaks.
func TestAMutantDoesSomethingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("builds this test once for each mutant")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	file := livesOfPrefill(t, t.TempDir(), 2, 3000)
	if r, err := Check(file); err != nil || r.Differs != nil {
		t.Fatal(r, err)
	}
	for _, name := range []string{"01-original-bug", "03-drain-ignores-compute"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../mutants", name+".patch"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := mutants.Parse(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := m.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", "^TestReplayOfAnother$", ".")
			cmd.Env = append(os.Environ(), traceEnv+"="+file)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "a fresh core does something else") {
				t.Fatalf("the mutant did the same: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
