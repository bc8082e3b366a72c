package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"baton/engine/kernel"
)

// BlockTokens is the number of tokens in a KV block. It is fixed by the kernels, whose pages of
// keys are weight panels.
const BlockTokens = kernel.PageTokens

// blocksMax bounds a pool: block numbers are int32.
const blocksMax = math.MaxInt32

// KV is a pool of KV blocks in one contiguous area. It is memory and nothing else: who owns a
// block is decided elsewhere, and several goroutines may use different blocks at once.
type KV struct {
	layout kernel.KVLayout
	bytes  int // of a block
	blocks int
	area   []byte // [blocks][bytes]
}

// NewKV makes a pool of zeroed blocks. An error says how many blocks are allowed.
func (m *Model) NewKV(blocks int) (*KV, error) {
	size := m.layout.BlockBytes()
	if most := min(blocksMax, math.MaxInt/size); blocks < 1 || blocks > most {
		return nil, fmt.Errorf("model: a KV pool of %d blocks, want 1 to %d", blocks, most)
	}
	return &KV{layout: m.layout, bytes: size, blocks: blocks, area: kernel.Alloc(blocks * size)}, nil
}

// Block returns the memory of block i: [layer][kv head]{keys, values}, see kernel.KVLayout.
func (k *KV) Block(i int32) []byte {
	return k.area[int(i)*k.bytes : (int(i)+1)*k.bytes : (int(i)+1)*k.bytes]
}

// BlockBytes returns the size of a block of KV of this model, before anything of it is loaded.
func (c *Config) BlockBytes(t DType) int {
	return kernel.KVLayout{Layers: c.Layers, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Type: t}.BlockBytes()
}

// Blocks returns the number of blocks.
func (k *KV) Blocks() int { return k.blocks }

// BlockBytes returns the size of a block.
func (k *KV) BlockBytes() int { return k.bytes }

// Area returns the whole pool, for transports that register memory once.
func (k *KV) Area() []byte { return k.area }

// Close gives the memory back. No block may be in use.
func (k *KV) Close() {
	kernel.Free(k.area)
	k.area = nil
}

// manifestVersion changes when the meaning of a block's bytes changes without any other field
// of the manifest saying so.
const manifestVersion = 1

// manifestBytesMax bounds what ParseManifest reads: a manifest is about 500 bytes.
const manifestBytesMax = 64 << 10

// Manifest says what the bytes of a KV block mean. Two workers exchange KV only if their
// manifests are equal (M5). It is compared and shown as JSON.
type Manifest struct {
	Version     int    `json:"version"`
	Pools       []Pool `json:"pools"`
	BlockTokens int    `json:"block_tokens"` // tokens in a block
	BlockBytes  int    `json:"block_bytes"`  // bytes of a block over all pools and layers
	Rope        Rope   `json:"rope"`
	Model       string `json:"model"`     // xxh3 of the model file, 16 hexadecimal digits
	Tokenizer   string `json:"tokenizer"` // digest of the tokenizer, 16 hexadecimal digits
	// Kernels is the family of kernels that wrote the bytes, if both ends must have the same
	// (Options.Deterministic); "" if any will do.
	Kernels string `json:"kernels,omitempty"`
}

// Pool is one kind of cached value.
type Pool struct {
	Name     string `json:"name"` // "k" or "v"
	Kind     string `json:"kind"` // "paged": rows by position, all of them kept
	Layers   int    `json:"layers"`
	Heads    int    `json:"heads"` // key-value heads
	HeadDim  int    `json:"head_dim"`
	Rows     int    `json:"rows"`      // per block
	RowBytes int    `json:"row_bytes"` // of one token in one layer
	DType    string `json:"dtype"`
}

// Bytes returns the canonical JSON, the same for equal manifests.
func (m Manifest) Bytes() []byte {
	b, err := json.Marshal(m)
	if err != nil { // a struct of numbers and strings always marshals
		panic("model: manifest does not marshal: " + err.Error())
	}
	return b
}

// ParseManifest reads what Bytes wrote; it is for bytes that came from a peer.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if len(b) > manifestBytesMax {
		return m, fmt.Errorf("model: manifest of %d bytes, at most %d are read", len(b), manifestBytesMax)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("model: manifest: %w", err)
	}
	return m, nil
}

// Equal says whether KV written under m can be read under o.
func (m Manifest) Equal(o Manifest) bool { return m.Diff(o) == "" }

// Diff names every field that differs, ours first, or returns "".
func (m Manifest) Diff(o Manifest) string {
	var d []string
	cmp := func(name string, a, b any) {
		if a != b {
			d = append(d, fmt.Sprintf("%s: %v here, %v there", name, a, b))
		}
	}
	cmp("version", m.Version, o.Version)
	cmp("model", m.Model, o.Model)
	cmp("tokenizer", m.Tokenizer, o.Tokenizer)
	cmp("kernels", m.Kernels, o.Kernels)
	cmp("rope", m.Rope, o.Rope)
	cmp("block_tokens", m.BlockTokens, o.BlockTokens)
	cmp("block_bytes", m.BlockBytes, o.BlockBytes)
	cmp("pools", len(m.Pools), len(o.Pools))
	for i := range min(len(m.Pools), len(o.Pools)) {
		a, b, p := m.Pools[i], o.Pools[i], fmt.Sprintf("pools[%d].", i)
		cmp(p+"name", a.Name, b.Name)
		cmp(p+"kind", a.Kind, b.Kind)
		cmp(p+"layers", a.Layers, b.Layers)
		cmp(p+"heads", a.Heads, b.Heads)
		cmp(p+"head_dim", a.HeadDim, b.HeadDim)
		cmp(p+"rows", a.Rows, b.Rows)
		cmp(p+"row_bytes", a.RowBytes, b.RowBytes)
		cmp(p+"dtype", a.DType, b.DType)
	}
	return strings.Join(d, "; ")
}
