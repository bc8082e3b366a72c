package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Seeds is the corpus of one fuzz test f(scope uint8, choices []byte).
type Seeds struct {
	Dir    string   // testdata/fuzz/FuzzName
	Scopes int      // how many scopes there are to choose from
	Wanted []string // what the seeds have to show between them
	// Play goes the way of one input, tells saw what it meets, and says what broke.
	Play func(scope uint8, choices []byte, saw func(string)) error
}

// Fuzz lets the fuzzer choose the scope and the way through it, as play goes it.
func Fuzz(f *testing.F, play func(scope uint8, choices []byte, saw func(string)) error) {
	f.Fuzz(func(t *testing.T, scope uint8, choices []byte) {
		if err := play(scope, choices, func(string) {}); err != nil {
			t.Fatal(err)
		}
	})
}

// version is the first line of a seed, as the standard library writes it.
const version = "go test fuzz v1"

// longest is how many choices a seed has at most before it is cut.
const longest = 240

// looks bounds the search for new seeds.
const looks = 40_000

// Check demands that the seeds show all that is wanted. With rewrite it replaces them first.
func (s Seeds) Check(t *testing.T, rewrite bool) {
	t.Helper()
	if rewrite {
		s.rewrite(t)
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scope, choices, err := Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, sight := range s.sights(t, scope, choices) {
			shown[sight] = name
		}
	}
	for _, want := range s.Wanted {
		if shown[want] == "" {
			t.Errorf("none of the %d seeds in %s leads to %q: if the world has changed, add -rewrite to find new ones", len(files), s.Dir, want)
		}
	}
}

func (s Seeds) sights(t *testing.T, scope uint8, choices []byte) []string {
	saw := map[string]bool{}
	if err := s.Play(scope, choices, func(sight string) { saw[sight] = true }); err != nil {
		t.Fatalf("scope %d, choices %q: %v", scope, choices, err)
	}
	return slices.Sorted(maps.Keys(saw))
}

// rewrite looks for one short seed per thing that the seeds before it do not show.
func (s Seeds) rewrite(t *testing.T) {
	for _, want := range s.Wanted { // what a fuzzer found stays
		if err := os.Remove(filepath.Join(s.Dir, fileOf(want))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, want := range s.Wanted {
		left[want] = true
	}
	for look := range uint64(looks) {
		if len(left) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(look, 1))
		scope, choices := uint8(look%uint64(s.Scopes)), make([]byte, r.IntN(longest))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		for _, sight := range s.sights(t, scope, choices) {
			if left[sight] {
				s.keep(t, left, sight, scope, choices)
			}
		}
	}
}

// keep writes the seed under the name of what it shows, cut to what that takes.
func (s Seeds) keep(t *testing.T, left map[string]bool, sight string, scope uint8, choices []byte) {
	for n := range choices {
		if slices.Contains(s.sights(t, scope, choices[:n]), sight) {
			choices = choices[:n]
			break
		}
	}
	for _, shown := range s.sights(t, scope, choices) {
		delete(left, shown)
	}
	name := filepath.Join(s.Dir, fileOf(sight))
	text := fmt.Sprintf("%s\nbyte(%q)\n[]byte(%q)\n", version, rune(scope), choices)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fileOf makes a name that every file system takes.
func fileOf(sight string) string {
	words := strings.FieldsFunc(strings.ToLower(sight), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// Parse reads one seed.
func Parse(text string) (scope uint8, choices []byte, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 || lines[0] != version {
		return 0, nil, fmt.Errorf("corpus: want %q and two values, got %q", version, lines)
	}
	first, found1 := strings.CutPrefix(lines[1], "byte(")
	second, found2 := strings.CutPrefix(lines[2], "[]byte(")
	r, _, _, err1 := strconv.UnquoteChar(strings.TrimSuffix(strings.TrimPrefix(first, "'"), "')"), '\'')
	s, err2 := strconv.Unquote(strings.TrimSuffix(second, ")"))
	if !found1 || !found2 || err1 != nil || err2 != nil || r > 255 {
		return 0, nil, fmt.Errorf("corpus: want byte('…') and []byte(\"…\"), got %q", lines[1:])
	}
	return uint8(r), []byte(s), nil
}
