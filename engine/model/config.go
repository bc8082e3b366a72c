package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
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
	widthStep    = 32      // quantisation group of activations: every matrix width is a multiple
)

// Architectures lists what general.architecture may say.
var Architectures = []string{"llama"}

// Rope says which elements of a head are turned together.
type Rope string

// Interleaved turns elements 2i and 2i+1: what GGUF files of architecture llama are permuted
// for. Keys written under one style are never readable under the other, so it is in the manifest.
const Interleaved Rope = "interleaved"

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

	RopeDim   int     // leading elements of a head that are turned; the others pass through
	RopeBase  float64 // theta
	RopeScale float64 // positions are divided by this; 1 unless the file says "linear"
	RopeStyle Rope
	NormEps   float32
	Tied      bool // the output matrix is the token embedding
	RopeFreqs bool // the file has per-frequency divisors (Llama 3.1 and later)
}

// QWidth is the width of all query heads together, KVWidth that of all keys (or values).
func (c *Config) QWidth() int  { return c.Heads * c.HeadDim }
func (c *Config) KVWidth() int { return c.KVHeads * c.HeadDim }

// keys reads checked numbers and keeps the first complaint.
type keys struct {
	f    *gguf.File
	arch string
	err  error
}

func (k *keys) fail(format string, a ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("model: "+format, a...)
	}
}

// count reads an integer between 1 and most; with want false a missing key gives 0.
func (k *keys) count(key string, most int, want bool) int {
	key = k.arch + "." + key
	v, ok := k.f.Uint(key)
	if !ok {
		if kind := k.f.Kind(key); kind != "" {
			k.fail("%s is %s, want an integer from 1 to %d: per-layer shapes are not supported", key, kind, most)
		} else if want {
			k.fail("%s is missing: this is not a complete llama model file", key)
		}
		return 0
	}
	if v < 1 || v > uint64(most) {
		k.fail("%s is %d, want 1 to %d", key, v, most)
		return 0
	}
	return int(v)
}

// float reads a float in (0, most]; a missing key gives def.
func (k *keys) float(key string, def, most float64) float64 {
	key = k.arch + "." + key
	v, ok := k.f.Float(key)
	if !ok {
		if kind := k.f.Kind(key); kind != "" {
			k.fail("%s is %s, want a float", key, kind)
		}
		return def
	}
	if !(v > 0 && v <= most) {
		k.fail("%s is %g, want more than 0 and at most %g", key, v, most)
	}
	return v
}

// ReadConfig reads the hyper-parameters of f and checks each against its bound and against the
// others. It does not look at tensors, except to find the vocabulary's size and whether there
// is an output matrix; Open checks every tensor's shape.
func ReadConfig(f weights.File) (Config, error) {
	switch f := f.(type) {
	case *gguf.File:
		return readGGUF(f)
	}
	return Config{}, fmt.Errorf("model: weights of %T are not supported", f)
}

func readGGUF(f *gguf.File) (Config, error) {
	arch, ok := f.String("general.architecture")
	if !ok {
		return Config{}, fmt.Errorf("model: general.architecture is missing: this is not a model file")
	}
	if arch != Architectures[0] {
		return Config{}, fmt.Errorf("model: architecture %q is not supported, only %q: use a Llama or SmolLM file", arch, Architectures)
	}
	k := &keys{f: f, arch: arch}
	c := Config{
		Arch: arch, RopeStyle: Interleaved, RopeScale: 1,
		Layers:  k.count("block_count", layersMax, true),
		Width:   k.count("embedding_length", widthMax, true),
		FFN:     k.count("feed_forward_length", ffnMax, true),
		Heads:   k.count("attention.head_count", headsMax, true),
		KVHeads: k.count("attention.head_count_kv", headsMax, false),
		Context: k.count("context_length", contextMax, true),
		HeadDim: k.count("attention.key_length", headDimMax, false),
		RopeDim: k.count("rope.dimension_count", headDimMax, false),
	}
	c.Name, _ = f.String("general.name")
	value := k.count("attention.value_length", headDimMax, false)
	c.RopeBase = k.float("rope.freq_base", 10000, thetaMax)
	// The default is that of llama.cpp's converter; no file in use leaves it out.
	c.NormEps = float32(k.float("attention.layer_norm_rms_epsilon", 1e-5, epsMax))
	if k.err != nil {
		return Config{}, k.err
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 {
		if c.Width%c.Heads != 0 {
			k.fail("llama.embedding_length %d is not a multiple of llama.attention.head_count %d and llama.attention.key_length is missing", c.Width, c.Heads)
			return Config{}, k.err
		}
		c.HeadDim = c.Width / c.Heads
	}
	if c.RopeDim == 0 {
		c.RopeDim = c.HeadDim
	}
	if value != 0 && value != c.HeadDim {
		k.fail("llama.attention.value_length is %d and key_length %d: they must be equal", value, c.HeadDim)
	}
	k.scaling(&c)
	k.vocab(&c)
	c.check(k)
	return c, k.err
}

// unsupported lists keys that would change the arithmetic of a llama file in ways that are not
// implemented. A file that carries one is refused: without it, answers would be wrong silently.
var unsupported = []string{
	"attention.clamp_kqv", "attention.scale", "attention.temperature_scale", "attn_logit_softcapping",
	"embedding_scale", "final_logit_softcapping", "logit_scale", "residual_scale", "rope.scaling.attn_factor",
}

// scaling reads how positions are scaled. YaRN is refused: it changes the softmax scale as well.
func (k *keys) scaling(c *Config) {
	if n, ok := k.f.Uint(k.arch + ".expert_count"); ok && n > 0 {
		k.fail("llama.expert_count is %d: mixtures of experts are not supported, use a dense model", n)
	}
	for _, key := range unsupported {
		if k.f.Kind(k.arch+"."+key) != "" {
			k.fail("llama.%s is set: it is not supported, and leaving it out would give wrong answers", key)
		}
	}
	// Within the window, sliding and full attention are the same.
	if w, ok := k.f.Uint(k.arch + ".attention.sliding_window"); ok && w > 0 && w < uint64(c.Context) {
		c.Context = int(w)
	}
	c.RopeScale = k.float("rope.scale_linear", 1, ropeScaleMax) // what old files say for linear
	switch t, _ := k.f.String(k.arch + ".rope.scaling.type"); t {
	case "", "none", "llama3": // llama3 comes as the tensor rope_freqs.weight
	case "linear":
		c.RopeScale = k.float("rope.scaling.factor", 1, ropeScaleMax)
	default:
		k.fail("llama.rope.scaling.type %q is not supported, only none, linear and llama3", t)
	}
	_, c.RopeFreqs = k.f.Tensor("rope_freqs.weight")
	_, out := k.f.Tensor("output.weight")
	c.Tied = !out
}

// vocab takes the vocabulary's size from the embedding tensor, which exists in every file, and
// compares it with the key, which does not.
func (k *keys) vocab(c *Config) {
	t, ok := k.f.Tensor("token_embd.weight")
	if !ok {
		k.fail("tensor token_embd.weight is missing: this is not a complete llama model file")
		return
	}
	if len(t.Dims) != 2 || t.Dims[1] < 1 || t.Dims[1] > vocabMax {
		k.fail("tensor token_embd.weight has shape %v, want [%d vocab] with vocab from 1 to %d", t.Dims, c.Width, vocabMax)
		return
	}
	c.Vocab = int(t.Dims[1])
	c.Rows = c.Vocab
	if v := k.count("vocab_size", vocabMax, false); v != 0 && v != c.Vocab {
		k.fail("llama.vocab_size is %d but token_embd.weight has %d rows", v, c.Vocab)
	}
}

// check compares the numbers with each other.
func (c *Config) check(k *keys) {
	if c.Heads%c.KVHeads != 0 {
		k.fail("llama.attention.head_count %d is not a multiple of head_count_kv %d", c.Heads, c.KVHeads)
	}
	if c.RopeDim%2 != 0 || c.RopeDim > c.HeadDim {
		k.fail("llama.rope.dimension_count is %d, want an even number up to the head width %d", c.RopeDim, c.HeadDim)
	}
	if c.HeadDim%16 != 0 {
		k.fail("head width is %d, want a multiple of 16, the rows of a panel", c.HeadDim)
	}
	for _, w := range []struct {
		what string
		n    int
	}{{"llama.embedding_length", c.Width}, {"llama.feed_forward_length", c.FFN}, {"width of all query heads", c.QWidth()}} {
		if w.n%widthStep != 0 {
			k.fail("%s is %d, want a multiple of %d, the group that activations are quantised in", w.what, w.n, widthStep)
		}
	}
}

// frequencies returns the angle per position of each turned pair, in float64 so that it is
// exact at every position of a long context. divisors is rope_freqs.weight, or nil.
func (c *Config) frequencies(divisors []float32) []float64 {
	f := make([]float64, c.RopeDim/2)
	for i := range f {
		f[i] = math.Pow(c.RopeBase, -2*float64(i)/float64(c.RopeDim)) / c.RopeScale
		if divisors != nil {
			f[i] /= float64(divisors[i])
		}
	}
	return f
}

// layerName is the prefix of the tensors of layer l.
func layerName(l int) string { return "blk." + strconv.Itoa(l) + "." }

// spec is one tensor that a config implies. Dims[0] is the row length, as in the file.
type spec struct {
	name string
	dims []uint64
}

// perLayer is how many tensors a layer has.
const perLayer = 9

// specs lists every tensor of the model, and no other tensor may be in its file: a bias that is
// left out would give wrong answers without a word.
func (c *Config) specs() []spec {
	w, ffn, q, kv := uint64(c.Width), uint64(c.FFN), uint64(c.QWidth()), uint64(c.KVWidth())
	s := make([]spec, 0, 4+perLayer*c.Layers)
	s = append(s, spec{"token_embd.weight", []uint64{w, uint64(c.Rows)}}, spec{"output_norm.weight", []uint64{w}})
	if !c.Tied {
		s = append(s, spec{"output.weight", []uint64{w, uint64(c.Rows)}})
	}
	if c.RopeFreqs {
		s = append(s, spec{"rope_freqs.weight", []uint64{uint64(c.RopeDim / 2)}})
	}
	for l := range c.Layers {
		p := layerName(l)
		s = append(s,
			spec{p + "attn_norm.weight", []uint64{w}},
			spec{p + "attn_q.weight", []uint64{w, q}},
			spec{p + "attn_k.weight", []uint64{w, kv}},
			spec{p + "attn_v.weight", []uint64{w, kv}},
			spec{p + "attn_output.weight", []uint64{q, w}},
			spec{p + "ffn_norm.weight", []uint64{w}},
			spec{p + "ffn_gate.weight", []uint64{w, ffn}},
			spec{p + "ffn_up.weight", []uint64{w, ffn}},
			spec{p + "ffn_down.weight", []uint64{ffn, w}})
	}
	return s
}

// checkTensors compares the file's tensors with what the config implies (M4).
func checkTensors(f weights.File, c *Config) error {
	specs := c.specs()
	expected := make(map[string]bool, len(specs))
	for _, s := range specs {
		t, ok := f.Tensor(s.name)
		if !ok {
			return fmt.Errorf("model: tensor %s is missing, want shape %v: the file is incomplete or of another architecture", s.name, s.dims)
		}
		if !slices.Equal(t.Dims, s.dims) {
			return fmt.Errorf("model: tensor %s has shape %v, want %v by the file's hyper-parameters", s.name, t.Dims, s.dims)
		}
		if !t.Type.Decodable() {
			return fmt.Errorf("model: tensor %s has type %s, which cannot be read: convert the file to Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K, F16 or BF16", t.Name, t.Type)
		}
		expected[s.name] = true
	}
	for _, t := range f.Tensors() {
		if !expected[t.Name] {
			return fmt.Errorf("model: tensor %s is not part of a llama model as supported here: leaving it out would give wrong answers", t.Name)
		}
	}
	return nil
}

// vector reads a one-dimensional tensor as float32.
func vector(f weights.File, name string) []float32 {
	t, _ := f.Tensor(name)
	v := make([]float32, t.Cols())
	mustDequant(v, t.Type, t.Data)
	return v
}
