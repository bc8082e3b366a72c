package model

import (
	"fmt"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
)

// Bounds of hyper-parameters (M4). They are far above any dense model that a CPU serves and far
// below what could overflow an int32 product of two of them; a file beyond them is taken for
// damaged rather than allocated for.
const (
	layersMax    = 512     // Llama-3.1-405B has 126
	widthMax     = 1 << 16 // embedding width; 405B has 16,384
	ffnMax       = 1 << 18 // feed-forward width; 405B has 53,248
	headsMax     = 1024    // query heads; 405B has 128
	headDimMax   = 512     // Gemma's 256 is the largest in use
	vocabMax     = 1 << 21 // Gemma's 262,144 is the largest in use
	contextMax   = 1 << 24 // 10 M tokens is the longest that is claimed
	epsMax       = 1e-2    // rms epsilons are 1e-6 to 1e-5
	ropeScaleMax = 1 << 20 // linear factors are 2 to 64
	thetaMax     = 1e12    // rope bases are 1e4 to 1e7
	capMax       = 1e6     // soft caps are 30 and 50
	betaMax      = 1e6     // YaRN's betas are 32 and 1
	widthStep    = 32      // quantisation group of activations: every matrix width is a multiple
)

// Architectures lists what can be served, by the names that GGUF files use.
var Architectures = []string{"llama", "qwen2", "qwen3", "gemma3"}

// Rope says which elements of a head are turned together. Keys written under one style are never
// readable under the other, so it is in the manifest.
type Rope string

const (
	Interleaved Rope = "interleaved" // elements 2i and 2i+1: what GGUF files of architecture llama are permuted for
	Half        Rope = "half"        // elements i and i+d/2: all other files
)

// Config is the shape of a model, read from its file and checked.
type Config struct {
	Arch    string
	Name    string // general.name, for people
	Layers  int
	Width   int // embedding width
	FFN     int // feed-forward width
	Heads   int // query heads
	KVHeads int // key and value heads; each serves Heads/KVHeads query heads
	HeadDim int // width of one head; Heads*HeadDim need not be Width
	Vocab   int // ids that can be drawn: the logits of a position
	Rows    int // rows of the embedding: ids that can be read; those from Vocab on are padding
	Context int // positions that the model was trained for

	RopeDim   int // leading elements of a head that are turned; the others pass through
	RopeStyle Rope
	Angles    Angles // of layers that see everything
	Local     Angles // of layers with a window; equal to Angles but for Gemma
	NormEps   float32
	Tied      bool // the output matrix is the token embedding
	RopeFreqs bool // the file has per-frequency divisors (Llama 3.1 and later)

	Window  int    // tokens that a position of a sliding layer sees, its own included; 0: no layer slides
	Sliding []bool // [Layers] which layers do; nil if none

	QKVBias, OutBias, MLPBias bool // biases of queries, keys and values; of attention's output; of the feed-forward
	QKNorm                    bool // queries and keys are normed head by head, before they are turned
	PostNorms                 bool // attention and feed-forward are normed once more before they are added
	GELU                      bool // in the feed-forward, where others have SiLU

	EmbedScale float32 // of token embeddings; 0 means 1
	NormShift  float32 // what the file leaves out of every norm's weight: 1 for Gemma's safetensors
	AttnScale  float32 // of scores; 0 means 1/sqrt(HeadDim)
	AttnCap    float32 // soft cap of scores; 0: none
	LogitCap   float32 // soft cap of logits; 0: none

	hf bool // tensors have the names of transformers
}

// QWidth is the width of all query heads together, KVWidth that of all keys (or values).
func (c *Config) QWidth() int  { return c.Heads * c.HeadDim }
func (c *Config) KVWidth() int { return c.KVHeads * c.HeadDim }

// slides says whether layer l has a window.
func (c *Config) slides(l int) bool { return c.Sliding != nil && c.Sliding[l] }

// ReadConfig reads the hyper-parameters of f, a GGUF file or a directory of safetensors, and
// checks each against its bound and against the others. It does not look at tensors, except to
// find the vocabulary's size and which of the optional ones there are; Open checks every shape.
func ReadConfig(f weights.File) (Config, error) {
	switch f := f.(type) {
	case *gguf.File:
		return readGGUF(f)
	case *safetensors.Dir:
		return readJSON(f)
	}
	return Config{}, fmt.Errorf("model: weights in a %T are not supported", f)
}

// check compares the numbers with each other. say names a number as the file does.
func (c *Config) check(say func(string) string) error {
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("model: %s %d is not a multiple of %s %d", say("heads"), c.Heads, say("kv heads"), c.KVHeads)
	}
	if c.RopeDim%2 != 0 || c.RopeDim > c.HeadDim {
		return fmt.Errorf("model: %s is %d, want an even number up to the head width %d", say("rope dim"), c.RopeDim, c.HeadDim)
	}
	if c.HeadDim%16 != 0 {
		return fmt.Errorf("model: head width is %d, want a multiple of 16, the rows of a panel", c.HeadDim)
	}
	for _, w := range []struct {
		what string
		n    int
	}{{say("width"), c.Width}, {say("ffn"), c.FFN}, {"width of all query heads", c.QWidth()}} {
		if w.n%widthStep != 0 {
			return fmt.Errorf("model: %s is %d, want a multiple of %d, the group that activations are quantised in", w.what, w.n, widthStep)
		}
	}
	return nil
}
