package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultIsInsideTheBinary(t *testing.T) {
	for _, name := range []string{"", "recall"} {
		s, err := Resolve(name)
		if err != nil || s.Name != "recall" || s.Path != "" {
			t.Fatalf("%q: %v, %v", name, s.Path, err)
		}
		f, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		if arch, _ := f.String("general.architecture"); arch != "llama" {
			t.Errorf("architecture %q", arch)
		}
	}
}

func TestNamesAreFoundOrExplained(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("BATON_MODELS", dir)
	file := filepath.Join(dir, "x.gguf")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Resolve(file); err != nil || s.Path != file || s.Name != file {
		t.Errorf("%v, %v", s, err)
	}
	whole := filepath.Join(dir, "whole")
	if err := os.MkdirAll(whole, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(whole, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Resolve(whole); err != nil || s.Path != whole || !s.Dir {
		t.Errorf("a directory: %+v, %v", s, err)
	} else if _, err := s.Open(); err == nil {
		t.Error("a directory was opened as a file")
	}
	rows := map[string]string{
		"smollm2":                "store: the model smollm2 is not on this machine (looked for " + filepath.Join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf") + "); fetch it with: baton pull smollm2",
		"hf:a/b/c.gguf":          "fetch it with: baton pull hf:a/b/c.gguf",
		"llama":                  `store: there is no model "llama"; known are recall (inside the binary), smollm2, hf:OWNER/REPO/FILE.gguf, hf:OWNER/REPO, the path of a .gguf file, and the path of a directory`,
		"model.gguf":             `store: there is no model "model.gguf": no such file; known are`,
		"dir/model":              `store: there is no model "dir/model": no such file; known are`,
		"hf:foo":                 `store: "hf:foo": want hf:OWNER/REPO/FILE.gguf, each of letters`,
		dir:                      "has no config.json; known are",
		filepath.Join(file, "y"): "store: ",
	}
	for name, want := range rows {
		if _, err := Resolve(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Resolve("smollm2"); err != nil || s.Name != "smollm2" {
		t.Errorf("%v, %v", s, err)
	}
}

func TestWhatCannotBePulledIsExplained(t *testing.T) {
	for name, want := range map[string]string{
		"":       "store: recall is inside the binary, there is nothing to pull",
		"recall": "store: recall is inside the binary, there is nothing to pull",
		"llama":  `store: "llama" cannot be pulled; what can be are smollm2, hf:OWNER/REPO/FILE.gguf and hf:OWNER/REPO`,
	} {
		if _, err := Pull(t.Context(), name, nil); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", name, err, want)
		}
	}
}

func TestDirFollowsTheEnvironment(t *testing.T) {
	t.Setenv("BATON_MODELS", "/somewhere")
	if d, err := Dir(); d != "/somewhere" || err != nil {
		t.Errorf("%s, %v", d, err)
	}
	t.Setenv("BATON_MODELS", "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home/x")
	if d, err := Dir(); !strings.HasSuffix(d, filepath.Join("baton", "models")) || err != nil {
		t.Errorf("%s, %v", d, err)
	}
}

// TestAHeldLockIsWaitedFor: the second one is told, waits, and gets it when the first lets go,
// or leaves when its context ends.
func TestAHeldLockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := &teller{told: make(chan string, 1)}
	ended := make(chan error)
	go func() {
		_, err := lock(ctx, path, told)
		ended <- err
	}()
	if got := <-told.told; got != "another process is pulling this model; waiting for it\n" {
		t.Errorf("told %q", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	go func() {
		unlock, err := lock(t.Context(), path, told)
		if err == nil {
			unlock()
		}
		ended <- err
	}()
	<-told.told
	unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type teller struct{ told chan string }

func (w *teller) Write(b []byte) (int, error) { w.told <- string(b); return len(b), nil }

func TestProgressIsABarOnATerminalAndLinesElsewhere(t *testing.T) {
	var b bytes.Buffer
	m := NewMeter(&b, "fetching", 20_000_000, 100_000_000)
	if m.bar {
		t.Fatal("a buffer is taken for a terminal")
	}
	m.done = 50_000_000
	if got, want := m.text(3*time.Second), "fetching  50 % 50.0 MB of 100.0 MB, 10.0 MB/s, 5s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.bar = true
	if got, want := m.text(3*time.Second), "fetching [###############...............]  50 % 50.0 MB of 100.0 MB, 10.0 MB/s, 5s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.End()
	if got := b.String(); !strings.HasPrefix(got, "\rfetching [") || !strings.HasSuffix(got, "\x1b[K\n") {
		t.Errorf("a bar is drawn as %q", got)
	}
	m.total, m.bar = 0, false
	if got, want := m.text(3*time.Second), "fetching 50.0 MB, 10.0 MB/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.total, m.done = 100, 200 // more than announced: no overflow of the bar
	m.bar = true
	if got := m.text(time.Second); !strings.Contains(got, strings.Repeat("#", barCells)+"]") {
		t.Errorf("%q", got)
	}
	var none *Meter
	none.Add(1)
	none.End()
	for n, want := range map[int64]string{999: "999 B", 1000: "1.0 kB", 98_362_432: "98.4 MB", 1_500_000_000: "1.50 GB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) is %q, want %q", n, got, want)
		}
	}
}
