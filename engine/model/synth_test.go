package model

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"baton/engine/weights/gguf"
)

// shape describes a tiny random model for tests.
type shape struct {
	layers, width, ffn, heads, kvHeads, headDim, vocab int
	ropeDim                                            int     // 0: the key is left out
	ropeScale                                          float32 // 0: no key
	tied, ropeFreqs                                    bool
	types                                              map[string]gguf.Type // by suffix of the tensor name; default F32
	fallback                                           gguf.Type
}

// odd is the shape that catches most confusions: head widths that do not multiply to the
// embedding width, a vocabulary that is no multiple of a panel, three query heads per key head.
var odd = shape{layers: 3, width: 64, ffn: 160, heads: 6, kvHeads: 2, headDim: 32, vocab: 203, tied: true}

// encode writes random values of deviation about dev in type t; the values themselves are
// whatever the bytes decode to, as the oracle reads the same bytes.
func encode(r *rand.Rand, t gguf.Type, n int, dev float32) []byte {
	numbers, size := t.Block()
	b := make([]byte, n/numbers*size)
	le := binary.LittleEndian
	h := func(at int, v float32) { le.PutUint16(b[at:], toF16(v)) }
	for i := 0; i < n/numbers; i++ {
		at := i * size
		for j := range size {
			b[at+j] = byte(r.Uint32())
		}
		scale := dev * (0.7 + 0.6*r.Float32())
		switch t {
		case gguf.F32:
			le.PutUint32(b[at:], math.Float32bits(dev*float32(r.NormFloat64())))
		case gguf.F16:
			h(at, dev*float32(r.NormFloat64()))
		case gguf.BF16:
			le.PutUint16(b[at:], uint16(math.Float32bits(dev*float32(r.NormFloat64()))>>16))
		case gguf.Q8_0:
			h(at, scale/74)
			for j := range 32 {
				if int8(b[at+2+j]) == -128 {
					b[at+2+j] = 1
				}
			}
		case gguf.Q4_0:
			h(at, scale/4.6)
		case gguf.Q4_1:
			h(at, scale/4.6)
			h(at+2, -scale*7.5/4.6)
		case gguf.Q5_0:
			h(at, scale/9.2)
		case gguf.Q5_1:
			h(at, scale/9.2)
			h(at+2, -scale*15.5/9.2)
		case gguf.Q4_K:
			h(at, scale/4.6/32)
			h(at+2, scale*7.5/4.6/32)
		case gguf.Q5_K:
			h(at, scale/9.2/32)
			h(at+2, scale*15.5/9.2/32)
		case gguf.Q6_K:
			h(at+208, scale/18/74)
		}
	}
	return b
}

// build makes the file of a shape. Tests that damage a file edit it through edit.
func (s shape) build(t testing.TB, seed uint64, edit func(*draft)) *gguf.File {
	t.Helper()
	d := &draft{r: rand.New(rand.NewPCG(seed, 1))}
	s.parameters(d)
	s.weights(d)
	if edit != nil {
		edit(d)
	}
	return d.file(t)
}

// parameters sets the hyper-parameters of a shape.
func (s shape) parameters(d *draft) {
	d.set("general.architecture", "llama")
	d.set("general.name", "synthetic")
	d.set("llama.block_count", uint32(s.layers))
	d.set("llama.context_length", uint32(512))
	d.set("llama.embedding_length", uint32(s.width))
	d.set("llama.feed_forward_length", uint32(s.ffn))
	d.set("llama.attention.head_count", uint32(s.heads))
	d.set("llama.attention.head_count_kv", uint32(s.kvHeads))
	d.set("llama.attention.key_length", uint32(s.headDim))
	d.set("llama.attention.value_length", uint32(s.headDim))
	d.set("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	d.set("llama.rope.freq_base", float32(10000))
	if s.ropeScale != 0 {
		d.set("llama.rope.scaling.type", "linear")
		d.set("llama.rope.scaling.factor", s.ropeScale)
	}
	if s.ropeDim != 0 {
		d.set("llama.rope.dimension_count", uint32(s.ropeDim))
	}
}

// weights adds the tensors of a shape with random values.
func (s shape) weights(d *draft) {
	add := func(name, suffix string, cols, rows int, dev float32) {
		typ, ok := s.types[suffix]
		if !ok {
			typ = s.fallback
		}
		d.tensors = append(d.tensors, part{name, typ, []uint64{uint64(cols), uint64(rows)}, encode(d.r, typ, rows*cols, dev)})
	}
	norm := func(name string, n int) {
		b := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(1+0.2*d.r.Float32()))
		}
		d.tensors = append(d.tensors, part{name, gguf.F32, []uint64{uint64(n)}, b})
	}
	w := func(n int) float32 { return float32(1.5 / math.Sqrt(float64(n))) }
	q, kv := s.heads*s.headDim, s.kvHeads*s.headDim
	add("token_embd.weight", "token_embd", s.width, s.vocab, 1)
	if !s.tied {
		add("output.weight", "output", s.width, s.vocab, w(s.width))
	}
	norm("output_norm.weight", s.width)
	if s.ropeFreqs {
		rot := s.ropeDim
		if rot == 0 {
			rot = s.headDim
		}
		norm("rope_freqs.weight", rot/2)
	}
	for l := range s.layers {
		p := layerName(l)
		norm(p+"attn_norm.weight", s.width)
		add(p+"attn_q.weight", "attn_q", s.width, q, w(s.width))
		add(p+"attn_k.weight", "attn_k", s.width, kv, w(s.width))
		add(p+"attn_v.weight", "attn_v", s.width, kv, w(s.width))
		add(p+"attn_output.weight", "attn_output", q, s.width, w(q))
		norm(p+"ffn_norm.weight", s.width)
		add(p+"ffn_gate.weight", "ffn_gate", s.width, s.ffn, w(s.width))
		add(p+"ffn_up.weight", "ffn_up", s.width, s.ffn, w(s.width))
		add(p+"ffn_down.weight", "ffn_down", s.ffn, s.width, w(s.ffn))
	}
}

// part is one tensor of a draft.
type part struct {
	name string
	typ  gguf.Type
	dims []uint64
	data []byte
}

// draft is a file that may still be changed.
type draft struct {
	keys    []string
	values  map[string]any
	tensors []part
	r       *rand.Rand
}

func (d *draft) set(key string, v any) {
	if d.values == nil {
		d.values = map[string]any{}
	}
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

func (d *draft) file(t testing.TB) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(d.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (d *draft) bytes(t testing.TB) []byte {
	t.Helper()
	w := &gguf.Writer{}
	for _, k := range d.keys {
		if d.values[k] != nil { // set to nil: left out
			w.Set(k, d.values[k])
		}
	}
	for _, p := range d.tensors {
		w.Add(p.name, p.typ, p.dims, p.data)
	}
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tokens returns n random token ids.
func tokens(r *rand.Rand, n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(vocab))
	}
	return ids
}
