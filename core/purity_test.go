package core_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Why the cores are pure: the explorer, the simulator, a replayed recording and production
// must take the same decisions from the same events. Each rule closes one way in which they
// could differ.
var reasons = map[string]string{
	"go":     "a core is one line of decisions; what takes time is an effect",
	"select": "select picks at random among the ready, and no seed replays it",
	"chan":   "a core waits for nobody; what it waits for is an event",
	"map":    "the order of a map is random in every run",
	"clock":  "time is an argument of Step; the explorer has none",
	"import": "a core may use the standard library's pure parts, and other cores' words",
}

// allowed lists what the cores may import, and why that is pure.
var allowed = map[string]string{
	"cmp":             "compares",
	"container/heap":  "moves",
	"container/list":  "moves",
	"encoding/binary": "writes integers",
	"errors":          "values",
	"fmt":             "formats",
	"math":            "computes",
	"maps":            "for Clone and Copy alone, see impurities",
	"math/bits":       "computes",
	"slices":          "moves",
	"strconv":         "formats",
	"strings":         "formats",
	"time":            "for Duration and its units alone, see clock",
}

// clock lists what of package time may be named: durations and their units.
var clock = map[string]bool{
	"Duration": true, "Nanosecond": true, "Microsecond": true, "Millisecond": true, "Second": true, "Minute": true, "Hour": true,
}

// TestTheCoresArePure parses every core package and fails on anything by which two runs could
// differ. Tests are exempt.
func TestTheCoresArePure(t *testing.T) {
	dirs := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			dirs[filepath.Dir(path)] = append(dirs[filepath.Dir(path)], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{"room", "blocks", "sched", "prefill", "decode", "relay"} {
		if len(dirs[must]) == 0 {
			t.Errorf("package core/%s is gone: rename it here too, or nothing checks it", must)
		}
	}
	fset := token.NewFileSet()
	load := importer.ForCompiler(fset, "source", nil)
	for dir, files := range dirs {
		var parsed []*ast.File
		for _, name := range files {
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: load}).Check("baton/core/"+dir, fset, parsed, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range parsed {
			for _, bad := range impurities(f, info) {
				t.Errorf("%s: %s: %s", fset.Position(bad.at), bad.what, reasons[bad.rule])
			}
		}
	}
}

type impurity struct {
	at         token.Pos
	rule, what string
}

func impurities(f *ast.File, info *types.Info) (all []impurity) {
	add := func(n ast.Node, rule, what string) { all = append(all, impurity{n.Pos(), rule, what}) }
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if allowed[path] == "" && !strings.HasPrefix(path, "baton/core/") {
			add(i, "import", "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "go", "starts a goroutine")
		case *ast.SelectStmt:
			add(n, "select", "selects")
		case *ast.ChanType:
			add(n, "chan", "has a channel")
		case *ast.RangeStmt:
			if _, is := types.Unalias(info.Types[n.X].Type).Underlying().(*types.Map); is {
				add(n, "map", "ranges over a map")
			}
		case *ast.Ident:
			o := info.Uses[n]
			if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
				break
			}
			switch path := o.Pkg().Path(); {
			case path == "time" && !clock[o.Name()]:
				add(n, "clock", "uses time."+o.Name())
			case path == "maps" && o.Name() != "Clone" && o.Name() != "Copy":
				add(n, "map", "uses maps."+o.Name())
			}
		}
		return true
	})
	return all
}

// TestThePurityTestSees: a test that cannot fail proves nothing.
func TestThePurityTestSees(t *testing.T) {
	const impure = `package p
import ("time"; "maps"; "math/rand"; "sync")
var mu sync.Mutex
func f(m map[int]int, c chan int) time.Duration {
	go f(m, c)
	select { case <-c: }
	for range m {}
	for range maps.Keys(m) {}
	return time.Since(time.Now()) + time.Duration(rand.Int())*time.Second
}`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", impure, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: importer.ForCompiler(fset, "source", nil)}).Check("p", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, bad := range impurities(f, info) {
		seen[bad.rule]++
	}
	want := map[string]int{"go": 1, "select": 1, "chan": 1, "map": 2, "clock": 2, "import": 2}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}
