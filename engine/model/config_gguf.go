package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"baton/engine/weights/gguf"
)

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
			k.fail("%s is missing: this is not a complete model file", key)
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

func readGGUF(f *gguf.File) (Config, error) {
	arch, ok := f.String("general.architecture")
	if !ok {
		return Config{}, fmt.Errorf("model: general.architecture is missing: this is not a model file")
	}
	if !slices.Contains(Architectures, arch) {
		return Config{}, fmt.Errorf("model: architecture %.40q is not supported; use a model of %s", arch, strings.Join(Architectures, ", "))
	}
	k := &keys{f: f, arch: arch}
	c := Config{
		Arch: arch, RopeStyle: Half,
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
			k.fail("%s.embedding_length %d is not a multiple of %[1]s.attention.head_count %d and %[1]s.attention.key_length is missing", arch, c.Width, c.Heads)
			return Config{}, k.err
		}
		c.HeadDim = c.Width / c.Heads
	}
	if c.RopeDim == 0 {
		c.RopeDim = c.HeadDim
	}
	if value != 0 && value != c.HeadDim {
		k.fail("%s.attention.value_length is %d and key_length %d: they must be equal", arch, value, c.HeadDim)
	}
	k.refuse(&c)
	k.angles(&c)
	k.optional(&c)
	k.vocab(&c)
	if k.err != nil {
		return c, k.err
	}
	return c, c.check(func(what string) string { return arch + "." + ggufKeys[what] })
}

// ggufKeys are the keys of what Config.check compares.
var ggufKeys = map[string]string{
	"heads": "attention.head_count", "kv heads": "attention.head_count_kv", "rope dim": "rope.dimension_count",
	"width": "embedding_length", "ffn": "feed_forward_length",
}

// unsupported lists keys that would change the arithmetic in ways that are not implemented. A
// file that carries one is refused: without it, answers would be wrong silently.
var unsupported = []string{
	"attention.clamp_kqv", "attention.scale", "attention.temperature_scale",
	"embedding_scale", "logit_scale", "residual_scale",
}

// capped are unsupported but for Gemma.
var capped = []string{"attn_logit_softcapping", "final_logit_softcapping"}

func (k *keys) refuse(c *Config) {
	if n, ok := k.f.Uint(k.arch + ".expert_count"); ok && n > 0 {
		k.fail("%s.expert_count is %d: mixtures of experts are not supported, use a dense model", k.arch, n)
	}
	if causal, ok := k.f.Bool(k.arch + ".attention.causal"); ok && !causal {
		k.fail("%s.attention.causal is false: models that see the future cannot generate", k.arch)
	}
	keys := unsupported
	if c.Arch != "gemma3" {
		keys = append(slices.Clone(keys), capped...)
	}
	for _, key := range keys {
		if k.f.Kind(k.arch+"."+key) != "" {
			k.fail("%s.%s is set: it is not supported, and leaving it out would give wrong answers", k.arch, key)
		}
	}
}

// angles reads how positions become angles.
func (k *keys) angles(c *Config) {
	a := &c.Angles
	a.Base = k.float("rope.freq_base", 10000, thetaMax)
	a.Scale = k.float("rope.scale_linear", 1, ropeScaleMax) // what old files say for linear
	by := k.float("rope.scaling.attn_factor", 0, ropeScaleMax)
	t, _ := k.f.String(k.arch + ".rope.scaling.type")
	switch t {
	case "", "none", "llama3": // llama3 comes as the tensor rope_freqs.weight
	case "linear":
		a.Scale = k.float("rope.scaling.factor", 1, ropeScaleMax)
	case "yarn":
		a.Scale = 1
		a.YaRN = YaRN{
			Factor:   k.float("rope.scaling.factor", 1, ropeScaleMax),
			Original: k.count("rope.scaling.original_context_length", contextMax, true),
			Fast:     k.float("rope.scaling.yarn_beta_fast", yarnFast, betaMax), Slow: k.float("rope.scaling.yarn_beta_slow", yarnSlow, betaMax),
		}
		a.YaRN.Magnitude = yarnMagnitude(a.YaRN.Factor)
		if by != 0 {
			a.YaRN.Magnitude *= by
		}
	default:
		k.fail("%s.rope.scaling.type %q is not supported, only none, linear, yarn and llama3", k.arch, t)
	}
	if by != 0 && t != "yarn" {
		k.fail("%s.rope.scaling.attn_factor is set without yarn: it is not supported, and leaving it out would give wrong answers", k.arch)
	}
	_, c.RopeFreqs = k.f.Tensor("rope_freqs.weight")
	c.Local = *a
}

// gemmaPattern: every sixth layer of Gemma 3 sees everything, the others slide.
const gemmaPattern = 6

// optional reads what an architecture has and others have not.
func (k *keys) optional(c *Config) {
	has := func(name string) bool { _, ok := k.f.Tensor(name); return ok }
	c.Tied = !has("output.weight")
	first := layerName(0)
	c.QKVBias = c.Arch == "qwen2" || has(first+"attn_q.bias")
	c.OutBias = has(first + "attn_output.bias")
	c.MLPBias = has(first + "ffn_gate.bias")
	c.QKNorm = c.Arch == "qwen3" || c.Arch == "gemma3"
	switch c.Arch {
	case "llama":
		c.RopeStyle = Interleaved
		fallthrough
	case "qwen2", "qwen3":
		// Which layers would slide is not in the file. Within the window, sliding and full attention are the same.
		if w, ok := k.f.Uint(k.arch + ".attention.sliding_window"); ok && w > 0 && w < uint64(c.Context) {
			c.Context = int(w)
		}
	case "gemma3":
		c.GELU, c.PostNorms = true, true
		c.EmbedScale = float32(math.Sqrt(float64(c.Width)))
		if c.Layers == 62 { // 27B alone scales by its width per head, and no key says so
			c.AttnScale = float32(1 / math.Sqrt(float64(c.Width)/float64(c.Heads)))
		}
		c.AttnCap = float32(k.float("attn_logit_softcapping", 0, capMax))
		c.LogitCap = float32(k.float("final_logit_softcapping", 0, capMax))
		c.Local = Angles{Base: k.float("rope.freq_base_swa", 10000, thetaMax), Scale: 1}
		c.Window = k.count("attention.sliding_window", contextMax, true)
		k.pattern(c)
	}
}

// pattern reads which layers slide: a flag per layer, or how many layers until the next that does not.
func (k *keys) pattern(c *Config) {
	const key = "attention.sliding_window_pattern"
	if flags, ok := k.f.Ints(k.arch + "." + key); ok {
		if len(flags) != c.Layers {
			k.fail("%s.%s has %d items, want %d, one per layer", k.arch, key, len(flags), c.Layers)
			return
		}
		for _, x := range flags {
			c.Sliding = append(c.Sliding, x != 0)
		}
		return
	}
	every := k.count(key, layersMax, false)
	if every == 0 {
		every = gemmaPattern
	}
	c.Sliding = everyOther(c.Layers, every)
}

// everyOther lets all layers slide but each every-th.
func everyOther(layers, every int) []bool {
	s := make([]bool, layers)
	for l := range s {
		s[l] = (l+1)%every != 0
	}
	return s
}

// vocab takes the vocabulary's size from the embedding tensor, which exists in every file, and
// compares it with the key, which does not.
func (k *keys) vocab(c *Config) {
	t, ok := k.f.Tensor("token_embd.weight")
	if !ok {
		k.fail("tensor token_embd.weight is missing: this is not a complete model file")
		return
	}
	if len(t.Dims) != 2 || t.Dims[1] < 1 || t.Dims[1] > vocabMax {
		k.fail("tensor token_embd.weight has shape %v, want [%d vocab] with vocab from 1 to %d", t.Dims, c.Width, vocabMax)
		return
	}
	c.Vocab = int(t.Dims[1])
	c.Rows = c.Vocab
	if v := k.count("vocab_size", vocabMax, false); v != 0 && v != c.Vocab {
		k.fail("%s.vocab_size is %d but token_embd.weight has %d rows", k.arch, v, c.Vocab)
	}
	// Rows behind the last token of a vocabulary are filled up with tokens that no text has.
	kinds, _ := k.f.Ints("tokenizer.ggml.token_type")
	for n := len(kinds); n == c.Vocab && n > 1 && kinds[n-1] == tokenUnused; n = min(n-1, c.Vocab) {
		c.Vocab--
	}
}

// tokenUnused is the kind of a token that fills a vocabulary up.
const tokenUnused = 5
