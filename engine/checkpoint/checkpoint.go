package checkpoint

import (
	"errors"
	"fmt"
	"runtime/debug"

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
		d, err := safetensors.Open(src.Path)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: model %s: %w", c.Name, err)
		}
		c.Weights, err = d, c.readDir(d)
		return c.orClosed(err)
	}
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	c.Weights = f
	return c.orClosed(c.readGGUF(f))
}

// orClosed returns c, or closes it if it could not be read.
func (c *Checkpoint) orClosed(err error) (*Checkpoint, error) {
	if err != nil {
		c.Weights.Close()
		return nil, fmt.Errorf("checkpoint: model %s: %w", c.Name, err)
	}
	c.Config.Vocab = min(c.Config.Vocab, c.Tokenizer.Vocab())
	c.tidy()
	return c, nil
}

// largeBytes is the size of a model beside whose loading a collection is nothing.
const largeBytes = 64 << 20

// tidy gives back what reading has left behind: the parts of a large tokenizer.json alone are more
// than 100 MB, and nothing in a server that has started would soon make the collector look.
func (c *Checkpoint) tidy() {
	if c.Weights.Size() >= largeBytes {
		debug.FreeOSMemory()
	}
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
	c.Template, err = chat.FromGGUF(f, c.Tokenizer)
	return withoutTemplate(err)
}

// Names of the files that a directory may have beside its weights, as transformers writes them.
const (
	tokenizerName  = "tokenizer.json"
	tokenConfig    = "tokenizer_config.json"
	generationName = "generation_config.json"
	templateName   = "chat_template.jinja"
)

func (c *Checkpoint) readDir(d *safetensors.Dir) (err error) {
	if c.Config, err = model.ReadConfig(d); err != nil {
		return err
	}
	file := func(name string) []byte {
		b, ferr := d.File(name)
		if err == nil {
			err = ferr
		}
		return b
	}
	words, tokens, generation, jinja := file(tokenizerName), file(tokenConfig), file(generationName), file(templateName)
	switch {
	case err != nil:
		return err
	case words == nil:
		return fmt.Errorf("%s is missing in %s: tokenizers in other formats (tokenizer.model, vocab.json) are not read", tokenizerName, d.Path())
	}
	if c.Tokenizer, err = tokenizer.FromJSON(words, tokens, generation, d.Config()); err != nil {
		return err
	}
	c.Template, err = chat.FromConfig(tokens, jinja, c.Tokenizer)
	return withoutTemplate(err)
}

// withoutTemplate takes a model that has none for what it is.
func withoutTemplate(err error) error {
	if errors.Is(err, chat.ErrNone) {
		return nil
	}
	return err
}

// Load repacks the weights. The checkpoint stays open until the model is closed.
func (c *Checkpoint) Load(o model.Options) (*model.Model, error) {
	o.Tokenizer = c.Tokenizer
	m, err := model.Open(c.Weights, o)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: model %s: %w", c.Name, err)
	}
	c.tidy()
	return m, nil
}

// Close gives the mapped files back. Config, Tokenizer and Template stay valid.
func (c *Checkpoint) Close() error { return c.Weights.Close() }
