package mutants

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAFuzzerFindsMutants: with the fuzzer as the scheduler of a whole world (FuzzSchedule) and
// no seed at all, the mistakes below are found. It builds instrumented programs, so it runs only
// with BATON_NIGHTLY=1; the seeds themselves run with every test of those packages.
func TestAFuzzerFindsMutants(t *testing.T) {
	if os.Getenv("BATON_NIGHTLY") == "" {
		t.Skip("builds instrumented programs: set BATON_NIGHTLY=1")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mutant, world string }{
		{"01-original-bug", "sim"},
		{"04-free-on-abort", "sim"},
		{"07-word-without-chunks", "sim"},
		{"relay-02-peer-left-open", "relaysim"},
		{"relay-03-retry-before-fence", "relaysim"},
		{"relay-13-discard-forgotten", "relaysim"},
	} {
		t.Run(c.mutant+" in "+c.world, func(t *testing.T) {
			name := c.mutant + ".patch"
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			out, took := fuzz(t, prepare(t, m, root, nil), root, c.world)
			found := regexp.MustCompile(`explore: (\w+) does not hold: (.*)`).FindString(out)
			if found == "" {
				t.Fatalf("the fuzzer found nothing in %v:\n%s", took, out)
			}
			t.Logf("after %v: %s", took.Round(time.Millisecond), found)
		})
	}
}

// fuzz runs FuzzSchedule of a world with the mutant in it, from an empty corpus, and returns
// what it said and for how long it ran.
func fuzz(t *testing.T, overlay, root, world string) (string, time.Duration) {
	dir := t.TempDir()
	program := filepath.Join(dir, "fuzz.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet", "off", "-overlay", overlay, "-fuzz", "FuzzSchedule", "-o", program, "baton/proof/"+world)
	build.Dir = root
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.fuzz", "FuzzSchedule", "-test.fuzztime", "60s", "-test.fuzzminimizetime", "1s",
		"-test.fuzzcachedir", filepath.Join(dir, "cache"), "-test.parallel", "2")
	run.Dir = empty
	start := time.Now()
	b, err := run.CombinedOutput()
	if err == nil {
		return string(b), time.Since(start)
	}
	return strings.TrimSpace(string(b)), time.Since(start)
}
