package store

import (
	"context"
	"io"

	"baton/engine/weights/gguf"
)

// Source is where a model is: a file, or bytes inside the binary.
type Source struct {
	Name     string // what the user asked for, "recall" for the default
	Path     string // "" if embedded
	Embedded []byte // nil if a file; read only
}

// Open opens the model file.
func (s Source) Open() (*gguf.File, error) { panic("not yet") }

// Resolve finds a model on this machine: "" or "recall" (embedded), "smollm2" or
// "hf:OWNER/REPO/FILE" in the cache, anything else is a path. It never uses the network; an
// error says which pull would help.
func Resolve(nameOrPath string) (Source, error) { panic("not yet") }

// Pull brings a model into the cache and returns its path; if it is there already, at once.
// Progress goes to w (may be nil): a bar if w is a terminal, a line now and then otherwise.
func Pull(ctx context.Context, spec string, w io.Writer) (string, error) { panic("not yet") }

// Dir returns the cache directory: $BATON_MODELS, or baton/models in the user's cache.
func Dir() (string, error) { panic("not yet") }
