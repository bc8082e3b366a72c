package replay

import (
	"encoding/json"
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
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", overlay(t, m, root), "-run", "^TestReplayOfAnother$", ".")
			cmd.Env = append(os.Environ(), traceEnv+"="+file)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "a fresh core does something else") {
				t.Fatalf("the mutant did the same: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// overlay writes the mutant's files and the list by which the compiler takes them for ours.
func overlay(t *testing.T, m *mutants.Mutant, root string) string {
	changed, err := m.Apply(func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		return string(b), err
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, text := range changed {
		to := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}
