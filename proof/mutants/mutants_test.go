package mutants

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/proof/gate"
)

var rewrite = flag.Bool("rewrite", false, "write the charts of testdata")

// together is how many mutants are built at a time: a build of its own takes one core.
const together = 2

// patience bounds one mutant: a mutated core may run for ever.
const patience = 4 * time.Minute

// A mutant whose chart is kept is one that people are shown: it is found at once, and its chart is
// one that can be read at a glance.
const (
	chartMax   = 10 // lines
	deadWithin = time.Second
)

// TestMutantsDie builds the gate with every patch and demands that its scope breaks as said.
func TestMutantsDie(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the gate once per mutant")
	}
	patches, err := filepath.Glob("*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("no mutants: %v", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	worlds := map[string]string{} // of a scope
	for _, s := range gate.Scopes() {
		worlds[s.Name] = s.Package
	}
	turn := make(chan bool, together)
	for _, name := range patches {
		t.Run(strings.TrimSuffix(name, ".patch"), func(t *testing.T) {
			t.Parallel()
			turn <- true
			defer func() { <-turn }()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			overlay := prepare(t, m, root, worlds)
			out, dead := run(t, m, overlay, root)
			if dead != (m.Open == "") {
				t.Fatalf("dead: %v, in scope %q, test %q, open: %q: %s\n%s", dead, m.Scope, m.Test, m.Open, m.Why, out)
			}
			switch {
			case m.Open != "":
				t.Logf("OPEN: %s\nnothing sees it: %s", m.Why, m.Open)
				return
			case m.Test != "":
				_, name, _ := strings.Cut(m.Test, " ")
				broke := strings.Contains(out, "--- FAIL: "+name) || m.Says != "" && strings.Contains(out, "=== RUN   "+name) && strings.Contains(out, "panic: ") // of a core
				if !broke || !strings.Contains(out, m.Says) {
					t.Fatalf("want %s to fail and %q to be said, got\n%s", name, m.Says, out)
				}
				_, out, _ = strings.Cut(out, m.Says)
				out, _, _ = strings.Cut(out, "\n")
				t.Logf("%s\n%s: … %s%s", m.Why, name, m.Says, out)
				return
			}
			judge(t, m, out)
			if m.Holds == "" {
				return
			}
			if out, dead := explore(t, overlay, root, m.Holds); dead {
				t.Fatalf("the mutant is said to stay hidden in scope %q, got\n%s", m.Holds, out)
			}
		})
	}
}

// TestKnownMistakesHaveMutants: whatever BUGS.md and the field say goes wrong in systems of this kind
// is here, by the name of a patch.
func TestKnownMistakesHaveMutants(t *testing.T) {
	for mistake, names := range map[string][]string{
		"the original bug":              {"01-original-bug"},
		"forget on abort":               {"28-forget-on-abort", "16-computes-after-failure"},
		"silent peer":                   {"23-silent-peer"},
		"free too early":                {"02-release-while-writing", "03-drain-ignores-compute", "04-free-on-abort"},
		"release by timer":              {"25-release-by-timer"},
		"lost acknowledgement":          {"29-lost-acknowledgement"},
		"lying acknowledgement":         {"24-lying-acknowledgement"},
		"lease reuse after a restart":   {"30-lease-repeats-after-restart"},
		"check, then write":             {"04-free-on-abort"},
		"a chunk taken twice":           {"31-chunk-accepted-twice"},
		"retry before the fence":        {"relay-03-retry-before-fence"},
		"[DONE] and an error":           {"driver-01-done-behind-an-error", "driver-02-error-behind-done"},
		"wrong blame":                   {"relay-07-client-error-blames"},
		"poisoned prefix":               {"pool-07-failed-step-published", "pool-08-abort-in-mid-prefill-published", "pool-01-published-before-home"},
		"load count released early":     {"fleet-04-load-released-early"},
		"deadline counted per hop":      {"fleet-01-deadline-per-try", "fleet-02-moment-for-a-span", "fleet-07-deadline-per-hop", "driver-03-deadline-per-attempt"},
		"released twice":                {"10-double-release", "relay-05-released-twice"},
		"a late word revives the dead":  {"05-success-after-abort"},
		"the word taken for the bytes":  {"07-word-without-chunks"},
		"the echo taken for the cause":  {"relay-08-echo-taken-for-the-cause"},
		"a key that forgets":            {"22-key-forgets-slots"},
		"a room that nobody hears go":   {"27-half-room-goes-silently"},
		"an answer begun twice":         {"relay-13-discard-forgotten"},
		"whoever waits is not told":     {"relay-09-roster-unheard"},
		"a place that is never given":   {"19-slot-leaks"},
		"blocks that nobody gives back": {"21-blocks-leak-on-failure"},
		"n times one answer":            {"driver-10-choices-draw-alike", "driver-11-first-tokens-of-one-choice", "engine-01-choice-not-in-the-number"},
		"the end of the prompt shared":  {"branch-02-writes-the-shared-block", "driver-07-block-not-copied", "driver-08-block-copied-backwards"},
		"a grammar that counts wrongly": {"driver-05-first-token-twice", "driver-06-first-token-never"},
		"output taken for prompt":       {"driver-12-output-becomes-prompt", "driver-13-continued-output-is-prompt-in-usage"},
		"KV of somebody else":           {"driver-14-digest-without-grammar", "driver-15-key-without-salt"},
		"a prefix that is not computed": {"driver-16-key-of-what-is-not-computed", "pool-20-output-published-one-on"},
		"a pin for ever":                {"pool-26-pins-for-ever"},
		"a client that speaks as model": {"engine-10-client-text-is-special", "engine-07-control-tokens-are-text"},
	} {
		for _, name := range names {
			text, err := os.ReadFile(name + ".patch")
			if err != nil {
				t.Errorf("%s: %v", mistake, err)
				continue
			}
			if m, err := Parse(name, string(text)); err == nil && m.Open != "" {
				t.Errorf("%s: nothing sees %s: %s", mistake, name, m.Open)
			}
		}
	}
}

// prepare writes the mutant's overlay. Worlds that do not judge this mutant are left out of the gate:
// most of the time is that of building it.
func prepare(t *testing.T, m *Mutant, root string, worlds map[string]string) string {
	var without []string
	if m.Test == "" && worlds != nil {
		judges := map[string]bool{worlds[m.Holds]: true}
		for name := range strings.SplitSeq(m.Scope, "; ") {
			if worlds[name] == "" {
				t.Fatalf("scope %q is none of the gate's", name)
			}
			judges[worlds[name]] = true
		}
		for _, world := range worlds {
			if !judges[world] {
				without = append(without, "proof/gate/"+world+".go")
			}
		}
	}
	list, err := m.Overlay(root, t.TempDir(), without...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// run lets a mutant be judged as its header says.
func run(t *testing.T, m *Mutant, overlay, root string) (out string, dead bool) {
	if pkg, name, ok := strings.Cut(m.Test, " "); ok {
		return test(t, overlay, root, pkg, name)
	}
	return explore(t, overlay, root, m.Scope)
}

// explore runs one scope of the gate, or several with semicolons between them, and says whether
// one failed.
func explore(t *testing.T, overlay, root, scope string) (out string, dead bool) {
	return test(t, overlay, root, "baton/proof/gate", "TestScope", "BATON_SCOPE="+scope)
}

// test runs a test with the mutant in the place of the production files.
func test(t *testing.T, overlay, root, pkg, name string, env ...string) (out string, dead bool) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "go", "test", "-p", "1", "-vet", "off", "-overlay", overlay, "-run", "^"+name+"$", "-v", pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("no answer in %v", patience)
	}
	return string(b), err != nil
}

// judge demands that the mutant broke what its header says, and no other way.
func judge(t *testing.T, m *Mutant, out string) {
	_, found, ok := strings.Cut(out, "explore: "+m.Breaks+" does not hold: ")
	if !ok || !strings.Contains(found, m.Says) {
		t.Fatalf("want %s to break and %q to be said, got\n%s", m.Breaks, m.Says, out)
	}
	_, chart, _ := strings.Cut(found, "\n")
	chart, _, _ = strings.Cut(chart, "--- FAIL")
	var lines []string
	for line := range strings.Lines(chart) {
		if strings.TrimSpace(line) == "" {
			break
		}
		lines = append(lines, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "        "))
	}
	t.Logf("%s\n%s", m.Why, strings.Join(lines, "\n"))
	if n := events(lines); m.Events != "" && strconv.Itoa(n) != m.Events {
		t.Errorf("the shortest history has %d events, and the mutant's header says %s; pages that tell it change with the header", n, m.Events)
	}
	if m.Chart == "" {
		return
	}
	if len(lines) > chartMax {
		t.Errorf("the chart has %d lines, want at most %d", len(lines), chartMax)
	}
	figures := regexp.MustCompile(`, ([0-9.]+) s, `).FindStringSubmatch(out)
	if figures == nil {
		t.Fatalf("no time in\n%s", out)
	}
	if seconds, err := strconv.ParseFloat(figures[1], 64); err != nil || seconds > deadWithin.Seconds() {
		t.Errorf("it took %s s to find, want at most %v", figures[1], deadWithin)
	}
	got, kept := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", m.Chart)
	if *rewrite {
		if err := os.WriteFile(kept, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the chart is\n%swant testdata/%s\n%s", got, m.Chart, want)
	}
}

// events counts those of a chart: its lines with a number in front.
func events(chart []string) (n int) {
	for _, line := range chart {
		if words := strings.Fields(line); len(words) > 0 && words[0] == strconv.Itoa(n+1) {
			n++
		}
	}
	return n
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for name, text := range map[string]string{
		"two judges":      "# why\n# breaks: TERM\n# scope: s\n# test: p T\n--- a/f\n+++ b/f\n@@\n-a\n+b\n",
		"open and dead":   "# why\n# breaks: TERM\n# open: o\n# scope: s\n--- a/f\n+++ b/f\n@@\n-a\n+b\n",
		"no property":     "# why\n# scope: s\n--- a/f\n+++ b/f\n@@\n-a\n+b\n",
		"no patch":        "# why\n# breaks: TERM\n# scope: s\n",
		"no file":         "# why\n@@\n",
		"not a patch":     "why\n",
		"unmarked line":   "# why\n--- a/f\n+++ b/f\n@@\na\n",
		"no comment":      "# breaks: TERM\n# scope: s\n+++ b/f\n@@\n-a\n+b\n",
		"comment in body": "# why\n# breaks: TERM\n# scope: s\n+++ b/f\n@@\n# no\n",
	} {
		if m, err := Parse(name, text); err == nil {
			t.Errorf("%s: %+v, want an error", name, m)
		}
	}
}

func TestApplyWantsItsLinesOnce(t *testing.T) {
	m, err := Parse("m", "# why\n# breaks: TERM\n# scope: s\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n-b\n+c\n+d\n@@ -9 +9 @@\n-z\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"x\na\nb\nz\n", "x\na\nc\nd\n"},
		{"z\na\nb\n", "a\nc\nd\n"},
		{"a\nb\na\nb\nz\n", ""}, // twice
		{"aa\nb\nz\n", ""},      // never
	} {
		got, err := m.Apply(func(string) (string, error) { return c.text, nil })
		if (err == nil) != (c.want != "") || got["f"] != c.want {
			t.Errorf("%q becomes %q, %v; want %q", c.text, got["f"], err, c.want)
		}
	}
}
