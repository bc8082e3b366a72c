package transcript

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"baton/core/room"
)

// PhaseTable is a core's table of phases as a page shows it.
func PhaseTable(rows []room.PhaseRow) string {
	var b strings.Builder
	b.WriteString("| phase | queue | poll state | it waits for | exit without help |\n|---|---|---|---|---|\n")
	or := func(s string) string {
		if s == "" {
			return "–"
		}
		return s
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name, or(r.Queue.String()), r.Poll, or(r.WaitsFor), r.Exit)
	}
	return b.String()
}

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
