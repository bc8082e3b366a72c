package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
)

// family is what a model_type of config.json means.
type family struct {
	arch    string // as GGUF calls it
	class   string // of architectures
	headDim int    // where head_dim is missing; 0: width over heads
}

// families lists what readJSON knows, by model_type.
var families = map[string]family{
	"llama":       {"llama", "LlamaForCausalLM", 0},
	"qwen2":       {"qwen2", "Qwen2ForCausalLM", 0},
	"qwen3":       {"qwen3", "Qwen3ForCausalLM", 128},
	"gemma3_text": {"gemma3", "Gemma3ForCausalLM", 256},
}

// Kinds of layers in layer_types.
const (
	kindFull    = "full_attention"
	kindSliding = "sliding_attention"
)

// hfConfig is what is read of config.json. A pointer is nil where a field is missing or null.
type hfConfig struct {
	ModelType     string          `json:"model_type"`
	Architectures []string        `json:"architectures"`
	Quantisation  json.RawMessage `json:"quantization_config"`

	Layers  *int `json:"num_hidden_layers"`
	Width   *int `json:"hidden_size"`
	FFN     *int `json:"intermediate_size"`
	Heads   *int `json:"num_attention_heads"`
	KVHeads *int `json:"num_key_value_heads"`
	HeadDim *int `json:"head_dim"`
	Context *int `json:"max_position_embeddings"`
	Vocab   *int `json:"vocab_size"`

	NormEps       *float64 `json:"rms_norm_eps"`
	Tied          *bool    `json:"tie_word_embeddings"`
	Act           *string  `json:"hidden_act"`
	Activation    *string  `json:"hidden_activation"`
	AttentionBias *bool    `json:"attention_bias"`
	MLPBias       *bool    `json:"mlp_bias"`
	Bidirectional *bool    `json:"use_bidirectional_attention"`
	QueryScalar   *float64 `json:"query_pre_attn_scalar"`
	AttnCap       *float64 `json:"attn_logit_softcapping"`
	LogitCap      *float64 `json:"final_logit_softcapping"`

	RopeTheta   *float64        `json:"rope_theta"`
	RopeLocal   *float64        `json:"rope_local_base_freq"`
	RopeScaling json.RawMessage `json:"rope_scaling"`
	RopeParams  json.RawMessage `json:"rope_parameters"`
	Partial     *float64        `json:"partial_rotary_factor"`

	Window     *int     `json:"sliding_window"`
	UseWindow  *bool    `json:"use_sliding_window"`
	MaxWindow  *int     `json:"max_window_layers"`
	Pattern    *int     `json:"sliding_window_pattern"`
	PatternNew *int     `json:"_sliding_window_pattern"`
	LayerTypes []string `json:"layer_types"`
}

// fields reads checked numbers and keeps the first complaint.
type fields struct{ err error }

func (k *fields) fail(format string, a ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("model: config.json: "+format, a...)
	}
}

// count reads an integer between 1 and most; a missing one gives def, or is an error if def is 0.
func (k *fields) count(name string, v *int, most, def int) int {
	switch {
	case v == nil && def == 0:
		k.fail("%s is missing", name)
	case v == nil:
		return def
	case *v < 1 || *v > most:
		k.fail("%s is %d, want 1 to %d", name, *v, most)
	default:
		return *v
	}
	return 1
}

// float reads a float in (0, most]; a missing one gives def.
func (k *fields) float(name string, v *float64, most, def float64) float64 {
	if v == nil {
		return def
	}
	if !(*v > 0 && *v <= most) {
		k.fail("%s is %g, want more than 0 and at most %g", name, *v, most)
		return def
	}
	return *v
}

func is(b *bool) bool { return b != nil && *b }

// readJSON reads the hyper-parameters of a directory as transformers writes it.
func readJSON(d *safetensors.Dir) (Config, error) { return parseConfig(d.Config(), d) }

// parseConfig is readJSON of a config.json and the tensors beside it.
func parseConfig(b []byte, f weights.File) (Config, error) {
	var h hfConfig
	if err := json.Unmarshal(b, &h); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Config{}, fmt.Errorf("model: config.json: %s is a %s, want %s", wrong.Field, wrong.Value, wrong.Type)
		}
		return Config{}, fmt.Errorf("model: config.json: %w", err)
	}
	fam, err := h.family()
	if err != nil {
		return Config{}, err
	}
	k := &fields{}
	c := Config{
		Arch: fam.arch, RopeStyle: Half, hf: true,
		Layers:  k.count("num_hidden_layers", h.Layers, layersMax, 0),
		Width:   k.count("hidden_size", h.Width, widthMax, 0),
		FFN:     k.count("intermediate_size", h.FFN, ffnMax, 0),
		Heads:   k.count("num_attention_heads", h.Heads, headsMax, 0),
		Context: k.count("max_position_embeddings", h.Context, contextMax, 0),
		Rows:    k.count("vocab_size", h.Vocab, vocabMax, 0),
		NormEps: float32(k.float("rms_norm_eps", h.NormEps, epsMax, 1e-6)),
	}
	c.Vocab = c.Rows
	c.KVHeads = k.count("num_key_value_heads", h.KVHeads, headsMax, c.Heads)
	if fam.headDim == 0 && h.HeadDim == nil && c.Width%c.Heads != 0 {
		k.fail("hidden_size %d is not a multiple of num_attention_heads %d and head_dim is missing", c.Width, c.Heads)
	}
	if fam.headDim == 0 {
		fam.headDim = max(1, c.Width/c.Heads)
	}
	c.HeadDim = k.count("head_dim", h.HeadDim, headDimMax, fam.headDim)
	c.RopeDim = c.HeadDim
	h.optional(k, &c, f)
	h.angles(k, &c)
	h.sliding(k, &c)
	if k.err != nil {
		return c, k.err
	}
	return c, c.check(func(what string) string { return "config.json: " + hfNames[what] })
}

// hfNames are the fields of what Config.check compares.
var hfNames = map[string]string{
	"heads": "num_attention_heads", "kv heads": "num_key_value_heads", "rope dim": "head_dim", "width": "hidden_size", "ffn": "intermediate_size",
}

// family finds what kind of model it is, and refuses what only looks like one that is known.
func (h *hfConfig) family() (family, error) {
	fam, ok := families[h.ModelType]
	if !ok {
		var known []string
		for name := range families {
			known = append(known, name)
		}
		slices.Sort(known)
		return fam, fmt.Errorf("model: config.json: model_type %.40q is not supported; use a model of %s", h.ModelType, strings.Join(known, ", "))
	}
	if len(h.Architectures) > 0 && !slices.Contains(h.Architectures, fam.class) {
		return fam, fmt.Errorf("model: config.json: architectures is %.80q, want %s: other heads give no tokens", h.Architectures, fam.class)
	}
	if q := string(h.Quantisation); q != "" && q != "null" {
		return fam, errors.New("model: config.json: quantization_config is set: quantised safetensors are not read, use the model in bf16 or a GGUF file")
	}
	if is(h.Bidirectional) {
		return fam, errors.New("model: config.json: use_bidirectional_attention is true: models that see the future cannot generate")
	}
	return fam, nil
}

// optional reads what an architecture has and others have not.
func (h *hfConfig) optional(k *fields, c *Config, f weights.File) {
	act, name, want := h.Act, "hidden_act", "silu"
	if c.Arch == "gemma3" {
		act, name, want = h.Activation, "hidden_activation", "gelu_pytorch_tanh"
	}
	if act != nil && *act != want {
		k.fail("%s is %.40q, want %s", name, *act, want)
	}
	_, head := f.Tensor("lm_head.weight")
	c.Tied = !head
	if c.Arch == "gemma3" {
		c.Tied = true
	}
	if h.Tied != nil {
		c.Tied = *h.Tied
	}
	c.QKNorm = c.Arch == "qwen3" || c.Arch == "gemma3"
	c.QKVBias = c.Arch == "qwen2" || is(h.AttentionBias)
	c.OutBias = is(h.AttentionBias) && c.Arch != "qwen2"
	c.MLPBias = is(h.MLPBias) && c.Arch == "llama"
	if c.Arch != "gemma3" {
		return
	}
	c.GELU, c.PostNorms, c.NormShift = true, true, 1
	c.EmbedScale = float32(math.Sqrt(float64(c.Width)))
	// transformers keeps the constant in the type of the weights, and training did.
	if t, ok := f.Tensor("model.embed_tokens.weight"); ok {
		c.EmbedScale = roundedTo(t.Type, c.EmbedScale)
	}
	c.AttnScale = float32(1 / math.Sqrt(k.float("query_pre_attn_scalar", h.QueryScalar, capMax, 256)))
	c.AttnCap = float32(k.float("attn_logit_softcapping", h.AttnCap, capMax, 0))
	c.LogitCap = float32(k.float("final_logit_softcapping", h.LogitCap, capMax, 0))
}

// roundedTo rounds v to what type t can hold.
func roundedTo(t gguf.Type, v float32) float32 {
	switch t {
	case gguf.BF16:
		b := math.Float32bits(v)
		return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
	case gguf.F16:
		return fromF16(toF16(v))
	}
	return v
}

// hfRope is what is read of rope_scaling and rope_parameters.
type hfRope struct {
	Type      *string  `json:"rope_type"`
	OldType   *string  `json:"type"`
	Theta     *float64 `json:"rope_theta"`
	Factor    *float64 `json:"factor"`
	Original  *int     `json:"original_max_position_embeddings"`
	Low       *float64 `json:"low_freq_factor"`
	High      *float64 `json:"high_freq_factor"`
	Fast      *float64 `json:"beta_fast"`
	Slow      *float64 `json:"beta_slow"`
	Attention *float64 `json:"attention_factor"`
	MScale    *float64 `json:"mscale"`
	MScaleAll *float64 `json:"mscale_all_dim"`
	Truncate  *bool    `json:"truncate"`
	Partial   *float64 `json:"partial_rotary_factor"`
}

// angles reads how positions become angles: rope_parameters as transformers 5 writes it, for
// Gemma one per kind of layer, or rope_theta and rope_scaling as all before it.
func (h *hfConfig) angles(k *fields, c *Config) {
	theta := k.float("rope_theta", h.RopeTheta, thetaMax, 10000)
	if c.Arch == "gemma3" && h.RopeTheta == nil {
		theta = 1e6
	}
	c.Local = Angles{Base: k.float("rope_local_base_freq", h.RopeLocal, thetaMax, 10000), Scale: 1}
	if h.Partial != nil && *h.Partial != 1 {
		k.fail("partial_rotary_factor is %g, only 1 is supported", *h.Partial)
	}
	name, raw := "rope_scaling", h.RopeScaling
	if s := string(h.RopeParams); s != "" && s != "null" {
		name, raw = "rope_parameters", h.RopeParams
	}
	if s := string(raw); s == "" || s == "null" {
		c.Angles = Angles{Base: theta, Scale: 1}
	} else {
		var byKind map[string]json.RawMessage
		if json.Unmarshal(raw, &byKind) == nil && byKind[kindFull] != nil {
			c.Angles = k.rope(name+"."+kindFull, byKind[kindFull], theta, c)
			if l := byKind[kindSliding]; l != nil {
				c.Local = k.rope(name+"."+kindSliding, l, c.Local.Base, c)
			}
		} else {
			c.Angles = k.rope(name, raw, theta, c)
		}
	}
	if c.Arch != "gemma3" {
		c.Local = c.Angles
	}
}

// rope reads one set of rope parameters.
func (k *fields) rope(name string, raw json.RawMessage, theta float64, c *Config) Angles {
	var r hfRope
	if err := json.Unmarshal(raw, &r); err != nil {
		k.fail("%s: %v", name, err)
		return Angles{Base: theta, Scale: 1}
	}
	a := Angles{Base: k.float(name+".rope_theta", r.Theta, thetaMax, theta), Scale: 1}
	if r.Partial != nil && *r.Partial != 1 {
		k.fail("%s.partial_rotary_factor is %g, only 1 is supported", name, *r.Partial)
	}
	kind := "default"
	switch {
	case r.Type != nil:
		kind = *r.Type
	case r.OldType != nil:
		kind = *r.OldType
	}
	if kind != "default" && r.Factor == nil {
		k.fail("%s.factor is missing", name)
	}
	factor := k.float(name+".factor", r.Factor, ropeScaleMax, 1)
	switch kind {
	case "default":
	case "linear":
		a.Scale = factor
	case "llama3":
		a.Llama3 = Llama3{Factor: factor,
			Low: k.float(name+".low_freq_factor", r.Low, ropeScaleMax, 1), High: k.float(name+".high_freq_factor", r.High, ropeScaleMax, 4),
			Original: k.count(name+".original_max_position_embeddings", r.Original, contextMax, 0)}
		if a.Llama3.High <= a.Llama3.Low {
			k.fail("%s.high_freq_factor is %g, want more than low_freq_factor %g", name, a.Llama3.High, a.Llama3.Low)
		}
	case "yarn":
		a.YaRN = YaRN{Factor: factor, Original: k.count(name+".original_max_position_embeddings", r.Original, contextMax, c.Context),
			Fast: k.float(name+".beta_fast", r.Fast, betaMax, yarnFast), Slow: k.float(name+".beta_slow", r.Slow, betaMax, yarnSlow),
			Exact: r.Truncate != nil && !*r.Truncate}
		def := yarnMagnitude(factor)
		if r.MScale != nil && r.MScaleAll != nil && *r.MScale != 0 && *r.MScaleAll != 0 {
			def = (1 + *r.MScale*(def-1)) / (1 + *r.MScaleAll*(def-1))
		}
		a.YaRN.Magnitude = k.float(name+".attention_factor", r.Attention, ropeScaleMax, def)
		// Models are published with their original context and the factor beside it.
		if n := float64(a.YaRN.Original) * factor; n > float64(c.Context) && n <= contextMax {
			c.Context = int(n)
		}
	default:
		k.fail("%s.rope_type %.40q is not supported, only default, linear, yarn and llama3", name, kind)
	}
	return a
}

// sliding reads which layers have a window.
func (h *hfConfig) sliding(k *fields, c *Config) {
	switch c.Arch {
	case "llama":
		return // has none, whatever it says
	case "qwen2", "qwen3":
		if !is(h.UseWindow) || h.Window == nil {
			return
		}
	}
	c.Window = k.count("sliding_window", h.Window, contextMax, 4096)
	c.Sliding = make([]bool, c.Layers)
	switch {
	case h.LayerTypes != nil:
		if len(h.LayerTypes) != c.Layers {
			k.fail("layer_types has %d items, want %d, one per layer", len(h.LayerTypes), c.Layers)
			return
		}
		for l, t := range h.LayerTypes {
			if t != kindFull && t != kindSliding {
				k.fail("layer_types[%d] is %.40q, want %s or %s", l, t, kindFull, kindSliding)
			}
			c.Sliding[l] = t == kindSliding
		}
	case c.Arch == "gemma3":
		every := k.count("sliding_window_pattern", h.PatternNew, layersMax, gemmaPattern)
		if h.Pattern != nil {
			every = k.count("sliding_window_pattern", h.Pattern, layersMax, gemmaPattern)
		}
		c.Sliding = everyOther(c.Layers, every)
	default:
		from := 0 // of which on layers slide; 0: all do
		if h.MaxWindow == nil || *h.MaxWindow != 0 {
			from = k.count("max_window_layers", h.MaxWindow, layersMax, 28)
		}
		for l := range c.Sliding {
			c.Sliding[l] = l >= from
		}
	}
	if !slices.Contains(c.Sliding, true) {
		c.Window, c.Sliding = 0, nil
	}
}
