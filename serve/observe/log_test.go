package observe

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/serve/observe/logrules"
)

// TestLogLinesKeepToTheirKeys reads every line of the tree that logs: the message is a constant,
// the keys are those of doc.go, and events and causes are words of ours, never data.
func TestLogLinesKeepToTheirKeys(t *testing.T) {
	root := "../.."
	lines := 0
	for _, dir := range []string{"serve", "transfer", "engine", "cmd", "bench"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && logs(call) {
					lines++
					if strings.HasPrefix(filepath.ToSlash(rel), "engine/") {
						t.Errorf("%s:%d: the engine logs nothing: what it has to say it returns, and its worker logs it", rel, set.Position(call.Pos()).Line)
					}
					for _, wrong := range judge(call) {
						t.Errorf("%s:%d: %s", rel, set.Position(call.Pos()).Line, wrong)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if lines < 15 {
		t.Errorf("only %d lines that log were found", lines)
	}
}

// logs says whether a call is one of slog's, with pairs of key and value.
func logs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, f.Sel.Name) || len(call.Args) == 0 {
		return false
	}
	switch x := f.X.(type) {
	case *ast.Ident:
		return x.Name == "slog" || x.Name == "log"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "Log"
	}
	return false
}

func judge(call *ast.CallExpr) (wrong []string) {
	// A message that is handed on must come from a caller that is judged: worker's trace.
	if _, ok := literal(call.Args[0]); !ok && call.Ellipsis == token.NoPos {
		wrong = append(wrong, "the message is not constant")
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "slog" {
			wrong = append(wrong, "it goes past the logger that somebody chose")
		}
	}
	args := call.Args[1:]
	if call.Ellipsis != token.NoPos {
		return wrong
	}
	for i := 0; i < len(args); i += 2 {
		pair := args[i:]
		if known(args[i]) { // both in one argument
			pair = args[i].(*ast.CallExpr).Args
			i--
		}
		if len(pair) < 2 {
			wrong = append(wrong, "a key has no value")
			break
		}
		key, ok := literal(pair[0])
		switch {
		case !ok:
			wrong = append(wrong, "a key is not constant")
		case !slices.Contains(logrules.Keys, key):
			wrong = append(wrong, "key "+key+" is not one of "+strings.Join(logrules.Keys, ", "))
		case (key == "event" || key == "cause") && !word(pair[1]):
			wrong = append(wrong, key+" is a fixed word; data goes under detail")
		}
	}
	return wrong
}

// known says whether an argument is a key with its value, or nothing if that is empty.
func known(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Known"
}

// word says whether a value can only be one of a fixed list: a literal, the name of a kind, or a
// room.Cause.
func word(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "String"
	case *ast.SelectorExpr:
		return x.Sel.Name == "Cause"
	}
	return false
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// TestTheRuleForLogLinesSees keeps the test above from passing because it is blind.
func TestTheRuleForLogLinesSees(t *testing.T) {
	for src, want := range map[string]int{
		`log.Info("worker started", "worker", name)`:                0,
		`w.log.Info("room ended", "after", now()-began)`:            0,
		`c.Log.Warn("x", "event", "fixed")`:                         0,
		`log.Info("worker "+name)`:                                  1,
		`slog.Error("x", "model", name)`:                            2,
		`w.log.Error("x", "event", fmt.Sprintf("block %d", 1))`:     1,
		`w.log.Error("x", "cause", err)`:                            1,
		`w.log.Error("x", "cause", o.Cause, "event", k.String())`:   0,
		`w.log.Error(what, "colour", 1, "event", s.Name, "k", 2)`:   4,
		`log.Info("x", observe.Known("rid", id), "after", now())`:   0,
		`log.Info("x", observe.Known("cause", o.Cause.String()))`:   0,
		`log.Info("x", observe.Known("cause", err.Error(), "rid"))`: 1,
		`log.Info("x", "rid", id, observe.Known("cause", why))`:     1,
		`log.Info("x", observe.Known("colour", c), "rid")`:          2,
	} {
		e, err := parser.ParseExpr(src)
		if err != nil {
			t.Fatal(err)
		}
		call := e.(*ast.CallExpr)
		if !logs(call) {
			t.Errorf("%s is not seen", src)
		}
		if got := judge(call); len(got) != want {
			t.Errorf("%s: %q, want %d", src, got, want)
		}
	}
}
