package blocks

import "encoding/binary"

// index finds blocks by key: chains of blocks, one for each value of the key's first bits. It is
// no map because the explorer copies a pool for every state, and has no memory before the first
// Publish because most pools that it copies have no keys. Keys are digests with a salt that no
// client knows, so nobody can make one chain long.
type index struct {
	keys []Key   // [blocks] of those that are keyed
	next []int32 // [blocks] the next block of its chain, or none
	head []int32 // [a power of two] the first block of a chain, or none
}

// grow gives the index its memory.
func (x *index) grow(blocks int) {
	if x.keys != nil {
		return
	}
	size := 1
	for size < blocks {
		size *= 2
	}
	x.keys, x.next, x.head = make([]Key, blocks), make([]int32, blocks), make([]int32, size)
	for i := range x.head {
		x.head[i] = none
	}
}

func (x *index) chain(k Key) *int32 {
	return &x.head[binary.LittleEndian.Uint64(k[:8])&uint64(len(x.head)-1)]
}

// find returns the block that is found under k, or none.
func (x *index) find(k Key) int32 {
	if x.keys == nil {
		return none
	}
	b := *x.chain(k)
	for b != none && x.keys[b] != k {
		b = x.next[b]
	}
	return b
}

// add makes a keyed block the one that is found.
func (x *index) add(blocks []block, b int32) {
	head := x.chain(x.keys[b])
	x.next[b], *head = *head, b
	blocks[b].found = true
}

// hide makes a block one that is not found; it keeps its key.
func (x *index) hide(blocks []block, b int32) {
	if !blocks[b].found {
		return
	}
	blocks[b].found = false
	at := x.chain(x.keys[b])
	for *at != b {
		at = &x.next[*at]
	}
	*at = x.next[b]
}

// forget takes the key of a block away, if it has one.
func (x *index) forget(blocks []block, b int32) {
	x.hide(blocks, b)
	if blocks[b].keyed {
		x.keys[b], blocks[b].keyed = Key{}, false
	}
}

// copyTo makes dst equal to x and reuses dst's memory.
func (x *index) copyTo(dst *index) {
	if x.keys == nil {
		*dst = index{}
		return
	}
	dst.keys = append(dst.keys[:0], x.keys...)
	dst.next = append(dst.next[:0], x.next...)
	dst.head = append(dst.head[:0], x.head...)
}
