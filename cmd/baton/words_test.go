package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestErrorsAreInTheWordsOfWhoTypes(t *testing.T) {
	for in, want := range map[string]string{
		"fleet: 0 workers":                                     "0 workers",
		"store: pulling x: gguf: the file is empty":            "pulling x: the file is empty",
		"store: worker: twice":                                 "twice",
		"fleet: worker worker-0 could not start: baton: model": "worker worker-0 could not start: model",
		"fleet: one\nworker: two":                              "one\ntwo",
		"the chat: is a word here":                             "the chat: is a word here",
		"my.model: no prefix":                                  "my.model: no prefix",
		"checkpoint: model x: safetensors: cut":                "model x: cut",
		"--record x: recorder: no":                             "--record x: no",
	} {
		if got := plain(errors.New(in)); got != want {
			t.Errorf("%q is told as %q, want %q", in, got, want)
		}
	}
}

// TestEveryPackageIsKnownByItsErrors: a package of the engine, of the links or of what serves that
// puts its name in front of an error is one whose name is taken off.
func TestEveryPackageIsKnownByItsErrors(t *testing.T) {
	named := regexp.MustCompile(`(?:errors\.New|fmt\.Errorf)\("([a-z]+): `)
	met := 0
	for _, floor := range []string{"engine", "serve", "transfer"} {
		err := filepath.WalkDir(filepath.Join("..", "..", floor), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range named.FindAllSubmatch(text, -1) {
				name := string(m[1])
				if name != filepath.Base(filepath.Dir(path)) || name == "conformance" || name == "fake" { // for tests
					continue
				}
				met++
				if plain(errors.New(name+": x")) != "x" {
					t.Errorf("%s: errors that begin with %s: are told so to who types", path, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if met < 100 {
		t.Errorf("%d errors were found, there were more than 200", met)
	}
}

func TestEveryInterfaceIsListenedOnOnlyIfSomebodySaysSo(t *testing.T) {
	for addr, bad := range map[string]bool{"": true, ":": true, ":0": true, ":8000": true, "127.0.0.1:": true,
		"127.0.0.1:8000": false, "0.0.0.0:8000": false, "[::]:8000": false, "localhost:0": false, "nonsense": false} {
		if err := checkListen("listen", addr); (err != nil) != bad {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: modified}}
	}
	for _, row := range []struct {
		version string
		info    debug.BuildInfo
		want    string
	}{
		{"dev", debug.BuildInfo{}, "dev"},
		{"dev", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev"},
		{"dev", debug.BuildInfo{Settings: settings("false")}, "dev (0123456789ab)"},
		{"dev", debug.BuildInfo{Settings: settings("true")}, "dev (0123456789ab, changed since)"},
		{"1.2", debug.BuildInfo{Main: debug.Module{Version: "v0"}, Settings: settings("false")}, "1.2 (0123456789ab)"},
		{"dev", debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260101-0123456789ab+dirty"}, Settings: settings("true")}, "v0.0.0-20260101-0123456789ab+dirty"},
	} {
		if got := build(row.version, &row.info); got != row.want {
			t.Errorf("%+v: %q, want %q", row.info, got, row.want)
		}
	}
}

// Who has the address by which clients of OpenAI's API know the gateway may give that.
func TestTheAddressOfAGatewayMayHaveItsVersion(t *testing.T) {
	for in, want := range map[string]string{"http://a:1/v1": "http://a:1", "http://a:1/v1/": "http://a:1", "http://a:1/": "http://a:1",
		"https://a/b/v1": "https://a/b", "http://a:1/xv1": "http://a:1/xv1"} {
		if got, err := baseURL(in); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", in, got, err, want)
		}
	}
}

// /dev/null is a character device, and nobody types there.
func TestDevNullIsNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) {
		t.Error("somebody is taken to type there")
	}
}

// What is printed in front of an error is the program's name and no package's; --version is the
// line of the command.
func TestMainSpeaksPlainly(t *testing.T) {
	baton := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), mainEnv+"=1", "KERNELS=")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if got := baton("serve", "--prefill", "1000"); got != "baton: 1000 workers of a role; want 0 to 256\n" {
		t.Errorf("says %q", got)
	}
	flag, command := baton("--version"), baton("version")
	if flag != command || !strings.HasPrefix(flag, "baton dev") || strings.Count(flag, "\n") != 1 {
		t.Errorf("%q and %q", flag, command)
	}
}
