package transcript

import (
	"os"
	"strings"
	"testing"
)

// Section holds the part of a page between the lines "<!-- name -->" and "<!-- /name -->" equal
// to want, whole lines.
func Section(t *testing.T, page, name, want string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), "<!-- "+name+" -->\n")
	_, tail, closed := strings.Cut(rest, "<!-- /"+name+" -->\n")
	if !ok || !closed {
		t.Fatalf("%s has no part between <!-- %s --> and <!-- /%s -->", page, name, name)
	}
	Equal(t, page, string(b), head+"<!-- "+name+" -->\n"+want+"<!-- /"+name+" -->\n"+tail)
}
