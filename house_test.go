// Package baton_test holds what is true of the whole tree: who may import whom (ARCHITECTURE.md),
// what the pure floor may not do, and the size of files.
package baton_test

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forbidden imports: package (with everything below it) → what it may not import → why.
// A name that vanishes fails the test, so that no rule outlives what it is about.
var forbidden = map[string]map[string]string{
	"core": {
		"engine":   "core decides, engine computes: a decision that needs a kernel cannot be explored",
		"transfer": "core decides, transfer moves: cores say what to write as an effect",
		"serve":    "imports point downwards",
		"bench":    "imports point downwards",
		"proof":    "production code knows nothing of its proof",
		"cmd":      "imports point downwards",
	},
	"core/room": {
		"core/prefill": "room is the words that all share, it sits below them",
		"core/decode":  "room is the words that all share, it sits below them",
		"core/relay":   "room is the words that all share, it sits below them",
		"core/blocks":  "room is the words that all share, it sits below them",
	},
	"core/prefill": {
		"core/decode": "the two speak by messages alone, or they could not live in two processes",
		"core/relay":  "a worker does not know its gateway",
	},
	"core/decode": {
		"core/prefill": "the two speak by messages alone, or they could not live in two processes",
		"core/relay":   "a worker does not know its gateway",
	},
	"core/relay": {
		"core/prefill": "the gateway sees legs, not rooms",
		"core/decode":  "the gateway sees legs, not rooms",
		"core/blocks":  "the gateway holds no blocks",
	},
	"engine": {
		"transfer":    "engine and transfer do not know each other: they meet in serve/worker",
		"core/relay":  "engine computes what a worker decides, requests are not its business",
		"core/decode": "cores drive the engine by effects, it never asks them",
		"serve":       "imports point downwards",
		"bench":       "imports point downwards",
		"proof":       "production code knows nothing of its proof",
		"cmd":         "imports point downwards",
	},
	"engine/kernel": {
		"engine/model": "kernels are below the model",
	},
	"transfer": {
		"engine":       "engine and transfer do not know each other: they meet in serve/worker",
		"core/prefill": "a plane moves blocks by lease, it decides nothing",
		"core/decode":  "a plane moves blocks by lease, it decides nothing",
		"serve":        "imports point downwards",
		"bench":        "imports point downwards",
		"proof":        "production code knows nothing of its proof",
		"cmd":          "imports point downwards",
	},
	"serve": {
		"bench": "imports point downwards",
		"proof": "production code knows nothing of its proof",
		"cmd":   "imports point downwards",
	},
	"serve/recorder": {
		"serve":    "it is told what was decided: one that knew a driver could change it",
		"engine":   "a trace holds what cores see, no text and no token",
		"transfer": "a trace holds what cores see, no bytes that were moved",
	},
	"bench": {
		"cmd": "imports point downwards",
	},
	"proof": {
		"cmd":   "the proof runs the parts, and the binary from outside",
		"bench": "measuring is no part of proving",
	},
	"proof/explore": {
		"core":  "the checker knows nothing of ours, or it would share our mistakes",
		"serve": "the checker knows nothing of ours, or it would share our mistakes",
	},
	"proof/replay": {
		"serve/worker":  "a file is all that a fresh core needs, or it could not be sent to anybody",
		"serve/gateway": "a file is all that a fresh core needs, or it could not be sent to anybody",
		"engine":        "a file is all that a fresh core needs, or it could not be sent to anybody",
		"transfer":      "a file is all that a fresh core needs, or it could not be sent to anybody",
	},
	"proof/relaysim": {
		"core/prefill": "the gateway's world sees legs from outside; pairs are explored in proof/sim",
	},
}

// support are packages that help tests and nothing else: why tests below may import them although
// imports point downwards. Nothing that is built into the binary may.
var support = map[string]string{
	"proof/transcript": "the three cores have one harness for their transcripts, and it knows none of them",
	"proof/realmodel":  "four packages of the engine compare with one real model, and it must be looked for in one way",
}

// nouns that say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}

// pureImports is all that the pure floor needs of the standard library.
var pureImports = []string{"bytes", "cmp", "container/heap", "container/list", "encoding/binary", "errors", "fmt",
	"iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unique"}

// linesMax is where a reader has lost the thread (pebble's and vLLM's largest files as a warning).
const linesMax = 600

// goPackage is one directory with Go files outside tests.
type goPackage struct {
	dir     string
	name    string
	files   []string
	imports map[string]bool // "core/room" for ours, the full path for others
}

func TestImportsPointDownwards(t *testing.T) {
	all := packages(t)
	for _, from := range slices.Sorted(maps.Keys(forbidden)) {
		if !exists(from) {
			t.Errorf("a rule is about %s, which does not exist: say what became of it", from)
		}
		for _, to := range slices.Sorted(maps.Keys(forbidden[from])) {
			if !exists(to) {
				t.Errorf("a rule forbids %s to import %s, which does not exist: say what became of it", from, to)
			}
			for _, p := range all {
				if !below(p.dir, from) {
					continue
				}
				for i := range p.imports {
					if below(i, to) {
						t.Errorf("%s imports %s: %s", p.dir, i, forbidden[from][to])
					}
				}
			}
		}
	}
}

// TestTestsImportDownwards: the tests of the lower floors keep to the rules as well, but for the
// packages that exist for them.
func TestTestsImportDownwards(t *testing.T) {
	for _, p := range packages(t) {
		for i := range p.imports {
			if _, ok := support[i]; ok {
				t.Errorf("%s imports %s, which is for tests alone", p.dir, i)
			}
		}
	}
	used := map[string]bool{}
	for _, floor := range []string{"core", "engine", "transfer"} {
		err := filepath.WalkDir(floor, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range f.Imports {
				ours := strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), "baton/")
				if _, ok := support[ours]; ok {
					used[ours] = true
				} else if below(ours, "proof") || below(ours, "serve") || below(ours, "bench") || below(ours, "cmd") {
					t.Errorf("%s imports %s: imports point downwards, and only %v are there for tests", name, ours, slices.Sorted(maps.Keys(support)))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, why := range support {
		if !used[name] {
			t.Errorf("nobody needs %s any more, of which it is said that %s", name, why)
		}
	}
}

func TestExploreKnowsNothingOfOurs(t *testing.T) {
	for _, p := range packages(t) {
		for i := range p.imports {
			if p.dir == "proof/explore" && (ours(i) || strings.Contains(i, ".")) {
				t.Errorf("proof/explore imports %s: the checker is the standard library and itself", i)
			}
		}
	}
}

func TestPackagesHaveNamesAndWords(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(emptyNames, path.Base(p.dir)) {
			t.Errorf("%s: the name says nothing about what is inside", p.dir)
		}
		if p.name != "main" && !slices.ContainsFunc(p.files, func(f string) bool { return path.Base(f) == "doc.go" }) {
			t.Errorf("%s has no doc.go: what is it, what does it never do, who may import it?", p.dir)
		}
		for _, f := range p.files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(b, []byte("\n")); n > linesMax && !bytes.Contains(b[:min(len(b), 400)], []byte("DO NOT EDIT")) {
				t.Errorf("%s has %d lines, at most %d fit into a head", f, n, linesMax)
			}
		}
	}
}

// TestCoreIsPure holds what makes exploring and replaying true: the cores cannot see a clock,
// a goroutine, the order of a map or chance.
func TestCoreIsPure(t *testing.T) {
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "source", nil)
	checked := 0
	for _, p := range packages(t) {
		if !below(p.dir, "core") {
			continue
		}
		checked++
		for i := range p.imports {
			if !below(i, "core") && !slices.Contains(pureImports, i) {
				t.Errorf("%s imports %s: the pure floor needs only %v", p.dir, i, pureImports)
			}
		}
		var files []*ast.File
		for _, f := range p.files {
			parsed, err := parser.ParseFile(set, f, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, parsed)
		}
		known := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		conf := types.Config{Importer: from, Error: func(error) {}}
		conf.Check(p.dir, set, files, &known) // errors are the compiler's to report
		for _, f := range files {
			impure(set, f, &known, func(at token.Pos, what string) { t.Errorf("%s: %s", set.Position(at), what) })
		}
	}
	if checked < 5 {
		t.Errorf("only %d packages of core were checked", checked)
	}
}

// clocks are the functions of package time that look at the world.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}

// impure reports what a file of the pure floor may not do.
func impure(set *token.FileSet, f *ast.File, known *types.Info, report func(token.Pos, string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n.Pos(), "starts a goroutine: a core is one thread of decisions")
		case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			report(n.Pos(), "uses a channel: events come in by Step alone")
		case *ast.RangeStmt:
			if over := known.TypeOf(n.X); over != nil {
				if _, ok := over.Underlying().(*types.Map); ok {
					report(n.Pos(), "ranges over a map: its order is chance")
				}
			}
		case *ast.SelectorExpr:
			if use := known.Uses[n.Sel]; use != nil && use.Pkg() != nil {
				switch {
				case use.Pkg().Path() == "time" && slices.Contains(clocks, use.Name()):
					report(n.Pos(), "reads a clock: time comes in by Step alone")
				case use.Pkg().Path() == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, use.Name()):
					report(n.Pos(), "walks a map: its order is chance")
				}
			}
		}
		return true
	})
}

// TestImpureSeesWhatItForbids keeps the check above from passing because it is blind.
func TestImpureSeesWhatItForbids(t *testing.T) {
	const src = `package p
import ("time"; "maps")
func f(m map[int]int, c chan int) {
	go f(m, c)
	for range m { _ = time.Now() }
	c <- 1
	_ = maps.Keys(m)
	for range []int{1} { _ = time.Second }
}`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	if _, err := conf.Check("p", set, []*ast.File{f}, &known); err != nil {
		t.Fatal(err)
	}
	var lines []int
	impure(set, f, &known, func(at token.Pos, _ string) { lines = append(lines, set.Position(at).Line) })
	slices.Sort(lines)
	if want := []int{3, 4, 5, 5, 6, 7}; !slices.Equal(lines, want) {
		t.Errorf("found something in lines %v, want %v", lines, want)
	}
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	byDir := map[string]*goPackage{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (base == "testdata" || base == "node_modules" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		p := byDir[dir]
		if p == nil {
			p = &goPackage{dir: dir, name: f.Name.Name, imports: map[string]bool{}}
			byDir[dir] = p
		}
		p.files = append(p.files, name)
		for _, i := range f.Imports {
			p.imports[strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), "baton/")] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		all = append(all, *byDir[dir])
	}
	return all
}

func below(p, tree string) bool { return p == tree || strings.HasPrefix(p, tree+"/") }

func ours(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{"core", "engine", "transfer", "serve", "proof", "bench", "cmd"}, first)
}

func exists(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}
