package transcript

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt and ARCHITECTURE.md")

// Player is a core under a transcript, in the words of its files.
type Player interface {
	// Config starts anew with other sizes: the line "config key=value …".
	Config(a *Args)
	// Step steps the event of the line "> verb key=value …" and returns the effects, one a line.
	Step(now time.Duration, verb string, a *Args) []string
	// Show returns what an operator sees, one row a line: the line "show".
	Show(now time.Duration) []string
}

// Run plays every testdata/*.txt with a fresh player and compares. Lines that are empty or begin
// with # are for the reader. "after=2s" in an event moves the clock before it.
func Run(t *testing.T, fresh func() Player) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			Equal(t, name, string(script), play(t, fresh(), string(script)))
		})
	}
}

// Equal compares a file's text, or a part of it that is all of want, with what it should be, and
// with -rewrite writes the file.
func Equal(t *testing.T, name, is, want string) {
	t.Helper()
	switch {
	case is == want:
	case *rewrite:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says something else; -rewrite makes it:\n%s", name, want)
	}
}

func play(t *testing.T, p Player, script string) string {
	var b strings.Builder
	now := time.Duration(0)
	say := func(lines []string) {
		for _, l := range lines {
			fmt.Fprintln(&b, "   ", l)
		}
	}
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		words := strings.Fields(line)
		if line != "" && line[0] == ' ' {
			continue // said by the core last time
		}
		fmt.Fprintln(&b, line)
		switch {
		case line == "" || line[0] == '#':
		case words[0] == "config":
			a := arguments(t, line, words[1:])
			p.Config(a)
			a.done()
		case words[0] == ">" && len(words) > 1:
			a := arguments(t, line, words[2:])
			now += a.Time("after")
			say(p.Step(now, words[1], a))
			a.done()
		case words[0] == "show":
			say(p.Show(now))
		default:
			t.Fatalf("%q is no line of a transcript", line)
		}
	}
	return b.String()
}
