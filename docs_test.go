package baton_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/proof/gate"
)

// commands are the pieces of a page in code that somebody can type: `go …` and, in blocks, lines
// that begin with go or ./baton.
var command = regexp.MustCompile("`(go (?:test|run) [^`]+)`|(?m)^    ((?:go (?:test|run)|\\./baton) .*)$")

func commands(t *testing.T, page string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "\n./", " ./") // a command may be broken over two lines
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		c, _, _ := strings.Cut(m[1]+m[2], "#")
		all = append(all, strings.TrimSpace(strings.ReplaceAll(c, `\|`, "|")))
	}
	return all
}

// TestPagesNameWhatExists: every command of the pages names packages, tests, mutants, scopes and
// flags that are there.
func TestPagesNameWhatExists(t *testing.T) {
	for page, least := range map[string]int{"README.md": 9, "BUGS.md": 30, "ARCHITECTURE.md": 8} {
		all := commands(t, page)
		if len(all) < least {
			t.Errorf("%s: %d commands were found, there were %d", page, len(all), least)
		}
		for _, c := range all {
			if wrong := judge(t, c); wrong != "" {
				t.Errorf("%s: %s: %s", page, c, wrong)
			}
		}
	}
}

func TestTheRuleForCommandsSees(t *testing.T) {
	for c, wrong := range map[string]bool{
		"go test ./proof/mutants -v -run '/^01-'": false, "go test ./proof/mutants -v -run '/^99-'": true,
		"go test ./proof/gate -v -run '//^TERM'": false, "go test ./proof/gate -v -run '//^NEVER'": true,
		"go test -run TestF43 ./proof/scenario": false, "go test -run TestF999 ./proof/scenario": true,
		"go test ./nowhere": true, "go test ./... -nosuch": true, "go test ./core/prefill -rewrite": false,
		"go run ./cmd/baton verify --seeds 3": false, "go run ./cmd/baton verify --sneeds 3": true, "go run ./cmd/baton verity": true,
		"./baton ps": false, "./baton serve --model X --nosuch": true,
	} {
		if got := judge(t, c); (got != "") != wrong {
			t.Errorf("%s: %q", c, got)
		}
	}
}

// judge says what is wrong with a command.
func judge(t *testing.T, c string) string {
	words := strings.Fields(c)
	switch {
	case words[0] == "./baton":
		return judgeBaton(words[1:])
	case strings.HasPrefix(c, "go run ./cmd/baton"):
		return judgeBaton(words[3:])
	case words[1] != "test":
		return "only go test and go run ./cmd/baton are known here"
	}
	var run string
	var dirs []string
	for i := 2; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-run":
			if i++; i < len(words) {
				run = strings.Trim(words[i], "'")
			}
		case strings.HasPrefix(w, "./"):
			dirs = append(dirs, w)
		case !slices.Contains([]string{"-v", "-rewrite", "-fuzz", "-fuzztime", "10s", "FuzzSchedule"}, w):
			return w + " is not known"
		}
	}
	for _, dir := range dirs {
		if dir == "./..." {
			continue
		}
		if wrong := judgeTests(t, strings.TrimSuffix(dir, "/..."), run); wrong != "" {
			return wrong
		}
	}
	return ""
}

// judgeTests looks for the tests that -run names, and the mutants or scopes behind them.
func judgeTests(t *testing.T, dir, run string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	if len(files) == 0 {
		return "there is no package " + dir
	}
	if run == "" {
		return ""
	}
	parts := strings.Split(run, "/")
	if parts[0] != "" && !slices.ContainsFunc(testsOf(t, files), regexp.MustCompile(parts[0]).MatchString) {
		return "no test of " + dir + " matches " + parts[0]
	}
	var below []string
	switch dir {
	case "./proof/mutants":
		names, _ := filepath.Glob(filepath.Join(dir, "*.patch"))
		for _, n := range names {
			below = append(below, strings.TrimSuffix(filepath.Base(n), ".patch"))
		}
	case "./proof/gate":
		for _, s := range gate.Scopes() {
			if !s.Nightly {
				below = append(below, strings.ReplaceAll(s.Name, " ", "_"))
			}
		}
	}
	if last := parts[len(parts)-1]; len(parts) > 1 && !slices.ContainsFunc(below, regexp.MustCompile(last).MatchString) {
		return "nothing below the tests of " + dir + " matches " + last
	}
	return ""
}

func testsOf(t *testing.T, files []string) (names []string) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// judgeBaton looks for the subcommand's file and its flags in it.
func judgeBaton(words []string) string {
	if len(words) == 0 || strings.ToUpper(words[0]) == words[0] { // COMMAND stands for all
		return ""
	}
	b, err := os.ReadFile(filepath.Join("cmd/baton", words[0]+".go"))
	if err != nil {
		return "there is no command " + words[0]
	}
	for _, w := range words[1:] {
		if flag, ok := strings.CutPrefix(w, "--"); ok {
			flag, _, _ = strings.Cut(flag, "=")
			if flag != "help" && !strings.Contains(string(b), strconv.Quote(flag)) {
				return words[0] + " has no flag --" + flag
			}
		}
	}
	return ""
}

// row is a line of "Why not simpler" that cites mutants.
var row = regexp.MustCompile("(?m)^\\|.*\\| ((?:`[a-z0-9-]+` \\(\\d+\\)(?:, )?)+) \\|$")

var cited = regexp.MustCompile("`([a-z0-9-]+)` \\((\\d+)\\)")

// TestArchitectureTellsTheCounterexamples: each guard that the page calls necessary has the mutants
// that show it, with the number of events in their shortest histories; proof/mutants holds the
// number in the header of a mutant true.
func TestArchitectureTellsTheCounterexamples(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range row.FindAllStringSubmatch(string(page), -1) {
		for _, c := range cited.FindAllStringSubmatch(r[1], -1) {
			n++
			names, _ := filepath.Glob("proof/mutants/" + c[1] + "-*.patch")
			if len(names) != 1 {
				t.Errorf("%d mutants begin with %s-", len(names), c[1])
				continue
			}
			b, err := os.ReadFile(names[0])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(b), "\n# events: "+c[2]+"\n") {
				t.Errorf("the page says that %s shows itself in %s events, its header does not", filepath.Base(names[0]), c[2])
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d mutants are cited", n)
	}
}
