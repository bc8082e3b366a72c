package model

import (
	"fmt"
	"slices"
	"strconv"

	"baton/engine/weights/gguf"
)

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
	s = append(s, spec{"token_embd.weight", []uint64{w, uint64(c.Vocab)}}, spec{"output_norm.weight", []uint64{w}})
	if !c.Tied {
		s = append(s, spec{"output.weight", []uint64{w, uint64(c.Vocab)}})
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
func checkTensors(f *gguf.File, c *Config) error {
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
func vector(f *gguf.File, name string) []float32 {
	t, _ := f.Tensor(name)
	v := make([]float32, t.Cols())
	mustDequant(v, t.Type, t.Data)
	return v
}
