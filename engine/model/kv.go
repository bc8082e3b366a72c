package model

import (
	"fmt"
	"math"

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
