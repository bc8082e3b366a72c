package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"baton/engine/weights/store"
)

// llamaPackage has llama.cpp's prebuilt libraries, one for each kind of x86-64 processor; version of the goals.
const llamaPackage = "@node-llama-cpp/linux-x64@3.21.1"

//go:embed anchor/anchor.c
var anchorSource []byte

// place is the folder where everything that is fetched or made lies, kept between runs.
type place struct {
	dir    string
	libs   string // of llama.cpp
	anchor string // the program that measures it
}

// prepare fetches llama.cpp and builds the anchor, unless they are there.
func prepare(ctx context.Context, dir string) (*place, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("llamacpp: this is %s/%s; llama.cpp's libraries are fetched for linux/amd64 alone", runtime.GOOS, runtime.GOARCH)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("llamacpp: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("llamacpp: %w", err)
	}
	p := &place{dir: dir, libs: filepath.Join(dir, "node_modules", "@node-llama-cpp", "linux-x64", "bins", "linux-x64"), anchor: filepath.Join(dir, "anchor")}
	if _, err := os.Stat(p.libs); err != nil {
		say("fetching %s", llamaPackage)
		if err := p.run(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", dir, llamaPackage); err != nil {
			return nil, err
		}
	}
	return p, p.build(ctx)
}

// build compiles the anchor.
func (p *place) build(ctx context.Context) error {
	source := filepath.Join(p.dir, "anchor.c")
	if old, err := os.ReadFile(source); err == nil && bytes.Equal(old, anchorSource) {
		if _, err := os.Stat(p.anchor); err == nil {
			return nil
		}
	}
	if err := os.WriteFile(source, anchorSource, 0o644); err != nil {
		return fmt.Errorf("llamacpp: %w", err)
	}
	libs := []string{}
	for _, pattern := range []string{"libllama.v*.so", "libggml.v*.so", "libggml-base.so"} {
		found, _ := filepath.Glob(filepath.Join(p.libs, pattern))
		if len(found) != 1 {
			return fmt.Errorf("llamacpp: %d files %s in %s, want one; delete the folder and try again", len(found), pattern, p.libs)
		}
		libs = append(libs, "-l:"+filepath.Base(found[0]))
	}
	args := append([]string{"-O2", "-o", p.anchor, source, "-L" + p.libs}, libs...)
	return p.run(ctx, "cc", append(args, "-Wl,-rpath,"+p.libs, "-Wl,--allow-shlib-undefined", "-lm")...)
}

// run executes a command and shows what it said if it failed.
func (p *place) run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("llamacpp: there is no %s on this machine; install it (npm comes with Node.js, cc with gcc or clang)", name)
	case err != nil:
		return fmt.Errorf("llamacpp: %s: %w\n%s", name, err, out)
	}
	return nil
}

// file returns the path of a model, made or fetched if it is not there.
func (p *place) file(ctx context.Context, m subject) (string, error) {
	if m.shape == "" {
		return store.Pull(ctx, m.name, os.Stderr)
	}
	path := filepath.Join(p.dir, m.name+".gguf")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	say("making %s", filepath.Base(path))
	return path, synthesise(path, shapes[m.shape], synthFormats[m.format])
}

// theirs measures llama.cpp once: tokens per second by test.
func (p *place) theirs(ctx context.Context, model string, threads, repeat int, tests []string) (map[string]float64, error) {
	args := append([]string{p.libs, model, strconv.Itoa(threads), strconv.Itoa(repeat)}, tests...)
	cmd := exec.CommandContext(ctx, p.anchor, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("llamacpp: anchor: %w\n%s", err, said.Bytes())
	}
	speeds := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		var test string
		var speed float64
		if _, err := fmt.Sscan(line, &test, &speed); err != nil {
			return nil, fmt.Errorf("llamacpp: anchor printed %q: %w", line, err)
		}
		speeds[test] = speed
	}
	return speeds, nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
