package model

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"baton/engine/weights/gguf"
	"baton/engine/weights/safetensors"
)

// toGGUF writes a directory as a GGUF file, as llama.cpp's converter does: its names and keys,
// rows of queries and keys of llama permuted, 1 added to Gemma's norms, llama3's divisors
// computed. Matrices become typ, F32 or Q8_0.
func toGGUF(t testing.TB, d *safetensors.Dir, typ gguf.Type) *gguf.File {
	t.Helper()
	c, err := ReadConfig(d)
	if err != nil {
		t.Fatal(err)
	}
	w := &draft{}
	a := c.Arch + "."
	w.set("general.architecture", c.Arch)
	for key, v := range map[string]int{
		"block_count": c.Layers, "context_length": c.Context, "embedding_length": c.Width, "feed_forward_length": c.FFN,
		"attention.head_count": c.Heads, "attention.head_count_kv": c.KVHeads, "attention.key_length": c.HeadDim,
		"attention.value_length": c.HeadDim, "vocab_size": c.Rows,
	} {
		w.set(a+key, uint32(v))
	}
	w.set(a+"attention.layer_norm_rms_epsilon", c.NormEps)
	w.set(a+"rope.freq_base", float32(c.Angles.Base))
	scalingKeys(w, a, &c)
	if c.Arch == "gemma3" {
		w.set(a+"rope.freq_base_swa", float32(c.Local.Base))
		w.set(a+"attention.sliding_window", uint32(c.Window))
		w.set(a+"attention.sliding_window_pattern", c.Sliding)
		if c.LogitCap != 0 {
			w.set(a+"final_logit_softcapping", c.LogitCap)
			w.set(a+"attn_logit_softcapping", c.AttnCap)
		}
	}
	for _, s := range c.specs() {
		v := (tensors{d, &c}).vectorOf(s.name)
		heads := 0
		switch {
		case strings.Contains(s.name, ".attn_q."):
			heads = c.Heads
		case strings.Contains(s.name, ".attn_k."):
			heads = c.KVHeads
		}
		if heads > 0 && c.Arch == "llama" {
			v = permute(v, heads)
		}
		if strings.HasSuffix(s.name, "norm.weight") {
			for i := range v {
				v[i] += c.NormShift
			}
		}
		if len(s.dims) == 1 || typ == gguf.F32 {
			w.tensors = append(w.tensors, part{s.name, gguf.F32, s.dims, slices.Clone(bytesOf(v))})
			continue
		}
		b := make([]byte, len(v)/group*q8GroupBytes)
		quantQ8(b, v)
		w.tensors = append(w.tensors, part{s.name, gguf.Q8_0, s.dims, b})
	}
	if l := c.Angles.Llama3; l.Factor > 0 {
		w.tensors = append(w.tensors, part{"rope_freqs.weight", gguf.F32, []uint64{uint64(c.RopeDim / 2)}, bytesOf(llama3Divisors(&c, d))})
	}
	return w.file(t)
}

// vectorOf reads a whole tensor, of any shape, as float32.
func (t tensors) vectorOf(name string) []float32 {
	x := t.get(name)
	v := make([]float32, x.Rows()*x.Cols())
	mustDequant(v, x.Type, x.Data)
	return v
}

// permute puts row i+half*s of each head at 2i+s; a row is a matrix's or an element of a bias.
func permute(v []float32, heads int) []float32 {
	out := make([]float32, len(v))
	per := len(v) / heads
	// A head of a tensor has an even number of rows, so that it falls into halves whatever a row is.
	head := 16
	row := per / head
	for h := range heads {
		for i := range head / 2 {
			for s := range 2 {
				copy(out[h*per+(2*i+s)*row:][:row], v[h*per+(i+head/2*s)*row:][:row])
			}
		}
	}
	return out
}

func scalingKeys(w *draft, a string, c *Config) {
	switch y := c.Angles.YaRN; {
	case y.Factor > 0:
		w.set(a+"rope.scaling.type", "yarn")
		w.set(a+"rope.scaling.factor", float32(y.Factor))
		w.set(a+"rope.scaling.original_context_length", uint32(y.Original))
	case c.Angles.Scale != 1:
		w.set(a+"rope.scaling.type", "linear")
		w.set(a+"rope.scaling.factor", float32(c.Angles.Scale))
	}
}

// llama3Divisors is the converter's computation, from config.json itself.
func llama3Divisors(c *Config, d *safetensors.Dir) []float32 {
	var h struct {
		Rope struct {
			Factor   float64 `json:"factor"`
			Low      float64 `json:"low_freq_factor"`
			High     float64 `json:"high_freq_factor"`
			Original float64 `json:"original_max_position_embeddings"`
			Theta    float64 `json:"rope_theta"`
		} `json:"rope_parameters"`
	}
	if err := json.Unmarshal(d.Config(), &h); err != nil {
		panic(err)
	}
	var out []float32
	for i := 0; i < c.HeadDim; i += 2 {
		wave := 2 * math.Pi * math.Pow(h.Rope.Theta, float64(i)/float64(c.HeadDim))
		switch smooth := (h.Rope.Original/wave - h.Rope.Low) / (h.Rope.High - h.Rope.Low); {
		case wave < h.Rope.Original/h.Rope.High:
			out = append(out, 1)
		case wave > h.Rope.Original/h.Rope.Low:
			out = append(out, float32(h.Rope.Factor))
		default:
			out = append(out, float32(1/((1-smooth)/h.Rope.Factor+smooth)))
		}
	}
	return out
}
