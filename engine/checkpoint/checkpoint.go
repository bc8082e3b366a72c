package checkpoint

import (
	"errors"
	"fmt"

	"baton/engine/chat"
	"baton/engine/model"
	"baton/engine/tokenizer"
	"baton/engine/weights"
	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
	"baton/engine/weights/store"
)

// Checkpoint is a model on disk (or in the binary), read as far as a gateway needs it: the
// weights are mapped but not touched until Load.
type Checkpoint struct {
	Name      string       // what was asked for; "recall" for the default
	Config    model.Config // shape, read and checked
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil: the model has none
	Weights   weights.File
}

// Open finds a model as store.Resolve does, and reads it. Close it when the loaded model is
// closed, or at once if only words are wanted. An error names the file and what is wrong in it.
func Open(nameOrPath string) (*Checkpoint, error) {
	src, err := store.Resolve(nameOrPath)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Name: src.Name}
	if src.Dir {
		dir, err := safetensors.Open(src.Path)
		if err != nil {
			return nil, err
		}
		c.Weights, err = dir, c.readDir(dir)
	} else {
		f, err := src.Open()
		if err != nil {
			return nil, err
		}
		c.Weights = f
		if err := c.readGGUF(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("checkpoint: model %s: %w", c.Name, err)
		}
	}
	return c, nil
}

func (c *Checkpoint) readGGUF(f *gguf.File) (err error) {
	// First of all, because a file of another architecture often has another tokenizer too, and
	// its error would send the reader the wrong way.
	if c.Config, err = model.ReadConfig(f); err != nil {
		return err
	}
	if c.Tokenizer, err = tokenizer.FromGGUF(f); err != nil {
		return err
	}
	if f.Kind("tokenizer.chat_template") != "" {
		c.Template, err = chat.FromGGUF(f, c.Tokenizer)
	}
	return err
}

func (c *Checkpoint) readDir(d *safetensors.Dir) error { return errors.New("not yet") }

// Load repacks the weights. The checkpoint stays open until the model is closed.
func (c *Checkpoint) Load(o model.Options) (*model.Model, error) {
	o.Tokenizer = c.Tokenizer
	m, err := model.Open(c.Weights, o)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: model %s: %w", c.Name, err)
	}
	return m, nil
}

// Close gives the mapped files back. Config, Tokenizer and Template stay valid.
func (c *Checkpoint) Close() error { return c.Weights.Close() }
