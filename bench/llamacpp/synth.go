package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"baton/engine/weights/gguf"
)

// shape is that of a well-known model.
type shape struct {
	layers, width, heads, kvHeads, headDim, ffn, vocab int
	ropeBase                                           float32
}

var shapes = map[string]shape{
	"smol":    {30, 576, 9, 3, 64, 1536, 49152, 1e5},    // SmolLM2-135M
	"llama1b": {16, 2048, 32, 8, 64, 8192, 128256, 5e5}, // Llama-3.2-1B
}

// formats of synthetic weights.
var synthFormats = map[string]gguf.Type{"bf16": gguf.BF16, "q8_0": gguf.Q8_0, "q4_0": gguf.Q4_0}

// synthTensor is one tensor of a synthetic file.
type synthTensor struct {
	name string
	dims []int
	kind gguf.Type
}

func (t synthTensor) bytes() int {
	rows := 1
	for _, d := range t.dims[1:] {
		rows *= d
	}
	return rows * t.kind.RowBytes(t.dims[0])
}

// tensors lists the tensors of a Llama with tied embeddings. With Q4_0 the embeddings stay in Q8_0, as llama.cpp's own
// quantiser keeps them larger.
func (s shape) tensors(kind gguf.Type) []synthTensor {
	table := kind
	if kind == gguf.Q4_0 {
		table = gguf.Q8_0
	}
	list := []synthTensor{
		{"token_embd.weight", []int{s.width, s.vocab}, table},
		{"output_norm.weight", []int{s.width}, gguf.F32},
	}
	q, k := s.heads*s.headDim, s.kvHeads*s.headDim
	for i := range s.layers {
		add := func(name string, t gguf.Type, dims ...int) {
			list = append(list, synthTensor{fmt.Sprintf("blk.%d.%s.weight", i, name), dims, t})
		}
		add("attn_norm", gguf.F32, s.width)
		add("attn_q", kind, s.width, q)
		add("attn_k", kind, s.width, k)
		add("attn_v", kind, s.width, k)
		add("attn_output", kind, q, s.width)
		add("ffn_norm", gguf.F32, s.width)
		add("ffn_gate", kind, s.width, s.ffn)
		add("ffn_up", kind, s.width, s.ffn)
		add("ffn_down", kind, s.ffn, s.width)
	}
	return list
}

// synthAlign is the alignment of tensors in a GGUF file.
const synthAlign = 32

// synthesise writes a model file of that shape with random weights. They come from one pool for each format, so that
// files are made at the speed of the disk, and are so small that the activations stay finite.
func synthesise(path string, s shape, kind gguf.Type) (err error) {
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("llamacpp: %w", err)
	}
	defer os.Remove(part) // after the rename there is none
	w := &counter{w: bufio.NewWriterSize(f, 1<<20)}
	tensors := s.tensors(kind)
	w.header(s, tensors)
	pools := map[gguf.Type][]byte{}
	turn := 0
	for _, t := range tensors {
		pool := pools[t.kind]
		if pool == nil {
			pool = randomBlocks(t.kind)
			pools[t.kind] = pool
		}
		turn += 7919 // every tensor begins elsewhere in the pool
		at := turn * blockBytes(t.kind) % len(pool)
		for left := t.bytes(); left > 0; {
			n := min(left, len(pool)-at)
			w.write(pool[at : at+n])
			left, at = left-n, (at+n)%len(pool)
		}
		w.pad()
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if e := f.Close(); w.err == nil {
		w.err = e
	}
	if w.err == nil {
		w.err = os.Rename(part, path)
	}
	if w.err != nil {
		return fmt.Errorf("llamacpp: writing %s: %w", path, w.err)
	}
	return nil
}

// counter writes little-endian values, knows its position and remembers the first error.
type counter struct {
	w   *bufio.Writer
	n   int
	err error
}

func (c *counter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
	c.n += len(b)
}

func (c *counter) u32(v uint32)    { c.write(binary.LittleEndian.AppendUint32(nil, v)) }
func (c *counter) u64(v uint64)    { c.write(binary.LittleEndian.AppendUint64(nil, v)) }
func (c *counter) text(s string)   { c.u64(uint64(len(s))); c.write([]byte(s)) }
func (c *counter) pad()            { c.write(make([]byte, -c.n&(synthAlign-1))) }
func (c *counter) number(n int)    { c.u32(4); c.u32(uint32(n)) }
func (c *counter) real(x float32)  { c.u32(6); c.u32(math.Float32bits(x)) }
func (c *counter) string(s string) { c.u32(8); c.text(s) }

func (c *counter) array(kind uint32, n int, item func(i int)) {
	c.u32(9)
	c.u32(kind)
	c.u64(uint64(n))
	for i := range n {
		item(i)
	}
}

// header writes everything in front of the weights.
func (c *counter) header(s shape, tensors []synthTensor) {
	words := vocabulary(s.vocab)
	merges := []string{"t h", "th e"}
	type entry struct {
		key   string
		value func()
	}
	number := func(key string, n int) entry { return entry{key, func() { c.number(n) }} }
	text := func(key, v string) entry { return entry{key, func() { c.string(v) }} }
	entries := []entry{
		text("general.architecture", "llama"), text("general.name", "synthetic"),
		number("llama.context_length", 8192), number("llama.embedding_length", s.width), number("llama.block_count", s.layers),
		number("llama.feed_forward_length", s.ffn), number("llama.attention.head_count", s.heads),
		number("llama.attention.head_count_kv", s.kvHeads), number("llama.rope.dimension_count", s.headDim), number("llama.vocab_size", s.vocab),
		{"llama.attention.layer_norm_rms_epsilon", func() { c.real(1e-5) }}, {"llama.rope.freq_base", func() { c.real(s.ropeBase) }},
		text("tokenizer.ggml.model", "gpt2"), text("tokenizer.ggml.pre", "default"),
		{"tokenizer.ggml.tokens", func() { c.array(8, len(words), func(i int) { c.text(words[i]) }) }},
		{"tokenizer.ggml.token_type", func() {
			c.array(5, len(words), func(i int) { c.u32(map[bool]uint32{true: 3, false: 1}[i < controls]) })
		}},
		{"tokenizer.ggml.merges", func() { c.array(8, len(merges), func(i int) { c.text(merges[i]) }) }},
		number("tokenizer.ggml.bos_token_id", 1), number("tokenizer.ggml.eos_token_id", 2),
	}
	c.write([]byte("GGUF"))
	c.u32(3)
	c.u64(uint64(len(tensors)))
	c.u64(uint64(len(entries)))
	for _, e := range entries {
		c.text(e.key)
		e.value()
	}
	at := 0
	for _, t := range tensors {
		c.text(t.name)
		c.u32(uint32(len(t.dims)))
		for _, d := range t.dims {
			c.u64(uint64(d))
		}
		c.u32(uint32(t.kind))
		c.u64(uint64(at))
		at += (t.bytes() + synthAlign - 1) / synthAlign * synthAlign
	}
	c.pad()
}

// controls is the number of control tokens at the start of the vocabulary.
const controls = 3

// vocabulary is three control tokens, the 256 characters that stand for bytes, two merges, and words to fill it.
func vocabulary(n int) []string {
	v := strings.Fields("<|pad|> <|bos|> <|eos|>")
	other := rune(256)
	for b := range rune(256) {
		if b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174 {
			v = append(v, string(b))
			continue
		}
		v = append(v, string(other))
		other++
	}
	v = append(v, "th", "the")
	for i := len(v); i < n; i++ {
		v = append(v, fmt.Sprintf("tok%d", i))
	}
	return v
}

// blockBytes is the size of what randomBlocks repeats.
func blockBytes(kind gguf.Type) int {
	if kind == gguf.F32 || kind == gguf.BF16 {
		return kind.RowBytes(32) / 32
	}
	return kind.RowBytes(32)
}

// randomBlocks makes a few MB of weights with a standard deviation of 0.03; norms are ones.
func randomBlocks(kind gguf.Type) []byte {
	const deviation, blocks = 0.03, 1 << 17
	r := rand.New(rand.NewPCG(1, uint64(kind)))
	var p []byte
	le := binary.LittleEndian
	for range blocks {
		spread := float32(deviation * (0.8 + 0.4*r.Float64()))
		switch kind {
		case gguf.F32:
			p = le.AppendUint32(p, math.Float32bits(1))
		case gguf.BF16:
			for range 16 {
				p = le.AppendUint16(p, uint16(math.Float32bits(float32(deviation*(r.Float64()*3.4-1.7)))>>16))
			}
		case gguf.Q8_0:
			p = le.AppendUint16(p, half(spread/73))
			for range 32 {
				p = append(p, byte(int8(r.IntN(255)-127)))
			}
		case gguf.Q4_0:
			p = le.AppendUint16(p, half(spread/4.6))
			for range 16 {
				p = append(p, byte(r.IntN(256)))
			}
		}
	}
	return p
}

// half is the binary16 of a number in its normal range, cut off.
func half(f float32) uint16 {
	b := math.Float32bits(f)
	return uint16(b>>16&0x8000) | uint16((int(b>>23&0xff)-112)<<10) | uint16(b>>13&0x3ff)
}
