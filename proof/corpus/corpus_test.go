package corpus

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSeedsAreFoundCutAndReadAgain: a world that shows the bytes that it was given is searched
// for two of them; each seed ends with what it is for.
func TestSeedsAreFoundCutAndReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "seeds")
	names := map[byte]string{'x': "an x", 0x80: "NO TEXT (0x80)"}
	s := Seeds{Dir: dir, Scopes: 3, Wanted: []string{"an x", "NO TEXT (0x80)"}, Play: func(scope uint8, choices []byte, saw func(string)) error {
		if scope > 2 {
			return errors.New("no such scope")
		}
		for _, c := range choices {
			saw(names[c])
		}
		return nil
	}}
	s.Check(t, true)
	s.Check(t, false)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, "an-x"), filepath.Join(dir, "no-text-0x80")}; !slices.Equal(files, want) {
		t.Fatalf("got %q, want %q", files, want)
	}
	for i, end := range []byte{'x', 0x80} {
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, choices, err := Parse(string(text)); err != nil || slices.Index(choices, end) != len(choices)-1 {
			t.Errorf("%s: %q, %v; want it to end with the first %q", files[i], choices, err, end)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, text := range []string{"", "go test fuzz v1\n", "go test fuzz v2\nbyte('a')\n[]byte(\"\")\n", "go test fuzz v1\nint(1)\n[]byte(\"\")\n", "go test fuzz v1\nbyte('a')\nstring(\"\")\n"} {
		if _, _, err := Parse(text); err == nil {
			t.Errorf("%q is a seed", text)
		}
	}
}
