package mutants

import (
	"fmt"
	"slices"
	"strings"
)

// Mutant is one mistake, as its file says it.
type Mutant struct {
	Name   string
	Why    string // the comment, without the keys below
	Breaks string // the property: TERM, ALONE, PROMPT or SAFETY, or a name of DESIGN's invariants where a driver's test judges
	Says   string // a piece of the violation's text; may be empty
	Scope  string // of proof/gate; or empty: Test judges
	Test   string // "package TestName": what judges a mistake in a driver, which no explorer runs
	Holds  string // a scope in which the mistake stays hidden; may be empty
	Chart  string // file with the expected chart, or empty
	Events string // in the shortest history, where a page tells it; or empty
	Open   string // why nothing sees the mistake in Scope, or any other; empty for mutants that die
	files  []file
}

// file is what a mutant does to one file.
type file struct {
	name  string // from the root of the tree
	hunks []hunk
}

// hunk replaces some lines, context included.
type hunk struct {
	head     string
	old, new []string
}

// Parse reads a patch: a comment of lines with "#", of which "# key: value" sets breaks, says,
// scope, test, holds, chart, events and open, then a unified diff whose line numbers do not matter.
func Parse(name, text string) (*Mutant, error) {
	m := &Mutant{Name: name}
	fail := func(n int, format string, args ...any) (*Mutant, error) {
		return nil, fmt.Errorf("mutants: %s, line %d: %s", name, n, fmt.Sprintf(format, args...))
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		var at *hunk
		if f := len(m.files) - 1; f >= 0 && len(m.files[f].hunks) > 0 {
			at = &m.files[f].hunks[len(m.files[f].hunks)-1]
		}
		switch {
		case len(m.files) == 0 && strings.HasPrefix(line, "#"):
			m.comment(strings.TrimSpace(line[1:]))
		case strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+++ b/"):
			m.files = append(m.files, file{name: line[len("+++ b/"):]})
		case strings.HasPrefix(line, "@@"):
			if len(m.files) == 0 {
				return fail(n, "a hunk before the name of a file, want \"+++ b/path\"")
			}
			f := &m.files[len(m.files)-1]
			f.hunks = append(f.hunks, hunk{head: line})
		case at == nil:
			return fail(n, "%q is neither comment nor patch", line)
		case line == "" || line[0] == ' ':
			line = strings.TrimPrefix(line, " ")
			at.old, at.new = append(at.old, line), append(at.new, line)
		case line[0] == '-':
			at.old = append(at.old, line[1:])
		case line[0] == '+':
			at.new = append(at.new, line[1:])
		default:
			return fail(n, "%q: want a line that begins with a space, - or +", line)
		}
	}
	if (m.Breaks == "") == (m.Open == "") || (m.Scope == "") == (m.Test == "") || m.Why == "" || len(m.files) == 0 {
		return fail(n, "want a comment, \"# breaks: PROPERTY\" or \"# open: REASON\", \"# scope: NAME\" or \"# test: PACKAGE NAME\", and a patch")
	}
	return m, nil
}

func (m *Mutant) comment(line string) {
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "breaks":
		m.Breaks = value
	case "says":
		m.Says = value
	case "scope":
		m.Scope = value
	case "test":
		m.Test = value
	case "open":
		m.Open = value
	case "holds":
		m.Holds = value
	case "chart":
		m.Chart = value
	case "events":
		m.Events = value
	default:
		m.Why = strings.TrimSpace(m.Why + " " + line)
	}
}

// Apply returns the changed text of every file that the mutant touches. The old lines of a
// hunk have to occur exactly once.
func (m *Mutant) Apply(read func(name string) (string, error)) (map[string]string, error) {
	changed := map[string]string{}
	for _, f := range m.files {
		text, err := read(f.name)
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
		}
		lines := strings.Split(text, "\n")
		for _, h := range f.hunks {
			at := places(lines, h.old)
			if len(at) != 1 {
				return nil, fmt.Errorf("mutants: %s: the old lines of %q occur %d times in %s, want once: what does the mistake look like now?", m.Name, h.head, len(at), f.name)
			}
			lines = slices.Replace(lines, at[0], at[0]+len(h.old), h.new...)
		}
		changed[f.name] = strings.Join(lines, "\n")
	}
	return changed, nil
}

// places lists where old begins in lines.
func places(lines, old []string) (at []int) {
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(old)], old) {
			at = append(at, i)
		}
	}
	return at
}
