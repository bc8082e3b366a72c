package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"baton/engine/weights"
)

// layerName is the prefix of the tensors of layer l.
func layerName(l int) string { return "blk." + strconv.Itoa(l) + "." }

// spec is one tensor that a config implies. Dims[0] is the row length, as in the file.
type spec struct {
	name string
	dims []uint64
}

// specs lists every tensor of the model by the names of GGUF files, and no other tensor may be in
// its file: a bias that is left out would give wrong answers without a word.
func (c *Config) specs() []spec {
	w, ffn, q, kv := uint64(c.Width), uint64(c.FFN), uint64(c.QWidth()), uint64(c.KVWidth())
	var s []spec
	add := func(name string, dims ...uint64) { s = append(s, spec{name, dims}) }
	add("token_embd.weight", w, uint64(c.Rows))
	add("output_norm.weight", w)
	if !c.Tied {
		add("output.weight", w, uint64(c.Rows))
	}
	if c.RopeFreqs {
		add("rope_freqs.weight", uint64(c.RopeDim/2))
	}
	for l := range c.Layers {
		p := layerName(l)
		add(p+"attn_norm.weight", w)
		add(p+"attn_q.weight", w, q)
		add(p+"attn_k.weight", w, kv)
		add(p+"attn_v.weight", w, kv)
		add(p+"attn_output.weight", q, w)
		add(p+"ffn_norm.weight", w)
		add(p+"ffn_gate.weight", w, ffn)
		add(p+"ffn_up.weight", w, ffn)
		add(p+"ffn_down.weight", ffn, w)
		if c.QKVBias {
			add(p+"attn_q.bias", q)
			add(p+"attn_k.bias", kv)
			add(p+"attn_v.bias", kv)
		}
		if c.OutBias {
			add(p+"attn_output.bias", w)
		}
		if c.MLPBias {
			add(p+"ffn_gate.bias", ffn)
			add(p+"ffn_up.bias", ffn)
			add(p+"ffn_down.bias", w)
		}
		if c.QKNorm {
			add(p+"attn_q_norm.weight", uint64(c.HeadDim))
			add(p+"attn_k_norm.weight", uint64(c.HeadDim))
		}
		if c.PostNorms {
			add(p+"post_attention_norm.weight", w)
			add(p+"post_ffw_norm.weight", w)
		}
	}
	return s
}

// hfTop and hfLayer are what transformers calls tensors, by their names in GGUF files without
// what follows the last dot. Of two norms Gemma has other names.
var (
	hfTop   = map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
	hfLayer = map[string]string{
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
		"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
		"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
	}
	hfGemma = map[string]string{
		"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
	}
)

// fileName returns what the model's file calls the tensor of that name.
func (c *Config) fileName(name string) string {
	if !c.hf {
		return name
	}
	dot := strings.LastIndexByte(name, '.')
	stem, kind := name[:dot], name[dot:]
	rest, ok := strings.CutPrefix(stem, "blk.")
	if !ok {
		return hfTop[stem] + kind
	}
	layer, stem, _ := strings.Cut(rest, ".")
	hf := hfLayer[stem]
	if g := hfGemma[stem]; c.PostNorms && g != "" {
		hf = g
	}
	return "model.layers." + layer + "." + hf + kind
}

// ignored says whether a tensor of a file may be left out although nothing asks for it: what old
// versions of transformers kept beside the weights, and a copy of tied embeddings.
func (c *Config) ignored(name string) bool {
	return c.hf && (strings.HasSuffix(name, ".rotary_emb.inv_freq") || c.Tied && name == "lm_head.weight")
}

// tensors finds a model's tensors by the names of GGUF files.
type tensors struct {
	file weights.File
	c    *Config
}

func (t tensors) get(name string) weights.Tensor {
	x, ok := t.file.Tensor(t.c.fileName(name))
	if !ok {
		panic("model: tensor " + name + " of a checked file is missing")
	}
	return x
}

// vector reads a one-dimensional tensor as float32.
func (t tensors) vector(name string) []float32 {
	x := t.get(name)
	v := make([]float32, x.Cols())
	mustDequant(v, x.Type, x.Data)
	return v
}

// norm reads the weights of a norm.
func (t tensors) norm(name string) []float32 {
	v := t.vector(name)
	if t.c.NormShift != 0 {
		for i := range v {
			v[i] += t.c.NormShift
		}
	}
	return v
}

// checkTensors compares the file's tensors with what the config implies (M4).
func checkTensors(f weights.File, c *Config) error {
	specs := c.specs()
	expected := make(map[string]bool, len(specs))
	for _, s := range specs {
		name := c.fileName(s.name)
		t, ok := f.Tensor(name)
		if !ok {
			return fmt.Errorf("model: tensor %s is missing, want shape %v (row length first): the file is incomplete or of another architecture", name, s.dims)
		}
		if !slices.Equal(t.Dims, s.dims) {
			return fmt.Errorf("model: tensor %s has shape %v, want %v (row length first) by the file's hyper-parameters", name, t.Dims, s.dims)
		}
		if !t.Type.Decodable() {
			return fmt.Errorf("model: tensor %s has type %s, which cannot be read: convert the file to Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K, F16 or BF16", t.Name, t.Type)
		}
		expected[name] = true
	}
	for _, t := range f.Tensors() {
		if !expected[t.Name] && !c.ignored(t.Name) {
			return fmt.Errorf("model: tensor %s is not part of a %s model as supported here: leaving it out would give wrong answers", t.Name, c.Arch)
		}
	}
	return nil
}
