package scenario

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write README.md")

// scripted is a scenario of this package.
type scripted struct {
	name, doc string
	waits     string // id that it is skipped for; "" if it runs
}

var named = regexp.MustCompile(`^TestF(\d+)[A-Z]`)

// scenarios reads the tests of this package, by entry.
func scenarios(t *testing.T) map[string]scripted {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]scripted{}
	for _, name := range files {
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "TestF") {
				continue
			}
			m := named.FindStringSubmatch(fn.Name.Name)
			if m == nil {
				t.Errorf("%s is not called after an entry", fn.Name.Name)
				continue
			}
			id := "F" + m[1]
			if other, twice := all[id]; twice {
				t.Errorf("%s has two tests, %s and %s", id, other.name, fn.Name.Name)
			}
			all[id] = scripted{fn.Name.Name, strings.Join(strings.Fields(fn.Doc.Text()), " "), waitsFor(fn)}
		}
	}
	return all
}

// waitsFor returns the id of a test that does nothing but wait.
func waitsFor(fn *ast.FuncDecl) string {
	if len(fn.Body.List) != 1 {
		return ""
	}
	line, _ := fn.Body.List[0].(*ast.ExprStmt)
	if line == nil {
		return ""
	}
	call, _ := line.X.(*ast.CallExpr)
	if call == nil || len(call.Args) != 2 {
		return ""
	}
	name, _ := call.Fun.(*ast.Ident)
	id, _ := call.Args[1].(*ast.BasicLit)
	if name == nil || name.Name != "waits" || id == nil {
		return ""
	}
	return strings.Trim(id.Value, `"`)
}

// Every entry has a test here, tests elsewhere, a missing part, or a reason why it cannot happen;
// and a test says what it plays and where it comes from.
func TestTheRecordIsComplete(t *testing.T) {
	all, known := scenarios(t), map[string]bool{}
	thread := regexp.MustCompile(`#\d+`)
	for _, e := range Entries {
		if known[e.ID] {
			t.Errorf("%s stands twice in the record", e.ID)
		}
		known[e.ID] = true
		s, own := all[e.ID]
		runs := own && s.waits == ""
		verdicts := 0
		for _, is := range []bool{runs || len(Elsewhere[e.ID]) > 0, Missing[e.ID] != "", Unfit[e.ID] != ""} {
			if is {
				verdicts++
			}
		}
		if verdicts != 1 {
			t.Errorf("%s %s: %d verdicts, want one: a test, a missing part, or why it cannot happen", e.ID, e.Title, verdicts)
		}
		if Missing[e.ID] != "" && s.waits != e.ID {
			t.Errorf("%s waits for %s, but no test of its own is skipped for it", e.ID, Missing[e.ID])
		}
		if Partly[e.ID] != "" && !runs && len(Elsewhere[e.ID]) == 0 {
			t.Errorf("%s is said to be partly proven, but is not", e.ID)
		}
		if !runs {
			continue
		}
		cited := slices.ContainsFunc(thread.FindAllString(s.doc, -1), func(n string) bool { return strings.Contains(e.Source, n) })
		if !strings.HasPrefix(s.doc, "Given ") || !strings.Contains(s.doc, ", when ") || !strings.Contains(s.doc, " then ") || !cited {
			t.Errorf("%s: its comment says no Given, when, then, or none of its sources: %s", s.name, s.doc)
		}
	}
	for _, table := range []map[string]string{Unfit, Missing, Partly} {
		for id := range table {
			if !known[id] {
				t.Errorf("a verdict is about %s, which is no entry", id)
			}
		}
	}
	for id, s := range all {
		if !known[id] {
			t.Errorf("%s is about no entry", s.name)
		}
	}
	if len(Entries) < 120 {
		t.Errorf("%d entries, there were 120", len(Entries))
	}
}

// An entry that cannot happen here is a line of BUGS.md, with the reason.
func TestTheFieldRecordHasWhatCannotHappen(t *testing.T) {
	page, err := os.ReadFile("../../BUGS.md")
	if err != nil {
		t.Fatal(err)
	}
	for id, why := range Unfit {
		found := false
		for line := range strings.Lines(string(page)) {
			found = found || strings.HasPrefix(line, "| "+id+" |") && strings.HasSuffix(line, "| "+why+" |\n")
		}
		if !found {
			t.Errorf("BUGS.md has no line %q with the reason %q", id, why)
		}
	}
}

// What is said to be proven elsewhere is a test that exists.
func TestProofsElsewhereExist(t *testing.T) {
	for id, tests := range Elsewhere {
		for _, one := range tests {
			dir, name, _ := strings.Cut(one, " ")
			files, _ := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			found := false
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				found = found || strings.Contains(string(b), "\nfunc "+name+"(")
			}
			if !found {
				t.Errorf("%s: there is no %s in %s", id, name, dir)
			}
		}
	}
}

// groups are the kinds of failures, each with the number of its first entry.
var groups = []struct {
	first int
	name  string
}{
	{1, "A. Abort, cancel and client disconnect"}, {23, "B. Transfers that never end"}, {43, "C. Wrong bytes"}, {63, "D. Identity"},
	{75, "E. Death, restart, membership, health"}, {95, "F. Drain, retraction, migration"}, {102, "G. Gateway"},
	{120, "H. Capacity and scheduling"}, {127, "I. What the client is told"},
}

// readme prints README.md.
func readme(all map[string]scripted) string {
	var b, rows strings.Builder
	proven, partly, group := 0, 0, 0
	for _, e := range Entries {
		n := 0
		fmt.Sscanf(e.ID, "F%d", &n)
		for group < len(groups) && n >= groups[group].first {
			fmt.Fprintf(&rows, "\n## %s\n\n| id | failure | where it is proven | must hold |\n|---|---|---|---|\n", groups[group].name)
			group++
		}
		var where []string
		if s, own := all[e.ID]; own && s.waits == "" {
			where = append(where, "`"+s.name+"`")
		}
		for _, one := range Elsewhere[e.ID] {
			dir, name, _ := strings.Cut(one, " ")
			where = append(where, "`"+name+"` in `"+dir+"`")
		}
		if len(where) > 0 {
			proven++
		}
		switch {
		case Partly[e.ID] != "":
			partly++
			where = append(where, "the rest waits for "+Partly[e.ID])
		case Missing[e.ID] != "":
			where = append(where, "waits for "+Missing[e.ID])
		case Unfit[e.ID] != "":
			where = append(where, "cannot happen: "+Unfit[e.ID])
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", e.ID, strings.ReplaceAll(e.Title, "|", "\\|"), strings.Join(where, "; "), e.Holds)
	}
	fmt.Fprintf(&b, `# Failures that somebody met in public

%d failures of disaggregated and multi-worker serving, each reported in a public thread (entries.go names them), and where
Baton's answer is proven. %d are proven, %d of them but for a part that does not exist yet; %d wait for one as a whole, and
their tests are skipped with its name; %d cannot happen here. The words of the last column are explained in doc.go.

Each test begins with its story in two sentences. To read and run one:

	go test -v -run TestF43 ./proof/scenario

This page is printed by %s.
`, len(Entries), proven, partly, len(Missing), len(Unfit), "`go test -run TestReadme ./proof/scenario -rewrite`")
	return b.String() + rows.String()
}

func TestReadmeIsTheRecord(t *testing.T) {
	const name = "README.md"
	want := readme(scenarios(t))
	if *rewrite {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the tests say (%v): go test -run TestReadme ./proof/scenario -rewrite", name, err)
	}
}
