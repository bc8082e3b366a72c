package fleetsim

import (
	"math/bits"

	"baton/core/room"
)

// This file is the engine. KV of a block is one number: a chain over the tokens up to its last
// one, shifted by the room that wrote it. Who reads it takes the shift of his own room off, so
// that bytes of another room, of an earlier life, or of nobody, read as another number; and
// every token depends on all blocks of its room.

// shift is what a room's KV is shifted by.
func shift(id room.ID) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

// promptBlock is the chain over block i of a prompt, behind the block before.
func promptBlock(before, prompt uint64, i, tokens int) uint64 {
	return mix(before ^ mix(prompt+uint64(i)<<8+uint64(tokens)))
}

// appendToken is the chain of a block after one more token, at place at in it.
func appendToken(block, before, token uint64, at int) uint64 {
	if at == 0 {
		block = mix(before)
	}
	return mix(block ^ token + uint64(at))
}

// sampled is token k of an output, whose sum over the blocks is read.
func sampled(read uint64, k int) uint64 { return mix(read ^ uint64(k)) }

// weigh is the part of block i in what is read.
func weigh(block uint64, i int) uint64 { return bits.RotateLeft64(block, i) }

// stops says that a token ends the output, as a stop string would.
func stops(token uint64) bool { return token%32 == 0 }

// pool is the memory of one worker's blocks, and who is inside them.
type pool struct {
	content []uint64
	inside  []uint8 // steps, writes and receivers
	held    int
}

func newPool(n int, r *rng) pool {
	p := pool{content: make([]uint64, n), inside: make([]uint8, n)}
	for i := range p.content {
		p.content[i] = r.next()
	}
	return p
}

func (p *pool) in(table []int32) {
	for _, b := range table {
		p.inside[b]++
	}
}

func (p *pool) out(table []int32) {
	for _, b := range table {
		p.inside[b]--
	}
}

// freed judges and overwrites blocks that the core says are free.
func (w *World) freed(n *node, p *pool, id room.ID, table []int32) {
	for _, b := range table {
		if p.inside[b] > 0 {
			w.fail("QUIET", w.of(id), "%s %d frees block %d with somebody inside", roleNames[n.role], n.at, b)
		}
		p.content[b] = ^p.content[b] * 3
	}
	p.held -= len(table)
}

// prefillChunk computes a prompt's tokens from, to into the blocks of a table.
func (p *pool) prefillChunk(id room.ID, prompt uint64, from, to int, table []int32, sums []uint64) {
	before := uint64(0)
	if i := from / room.BlockTokens; i > 0 {
		before = p.content[table[i-1]] - shift(id)
	}
	for i := from / room.BlockTokens; i < room.BlocksFor(to); i++ {
		before = promptBlock(before, prompt, i, min(to-i*room.BlockTokens, room.BlockTokens))
		p.content[table[i]] = before + shift(id)
		if sums != nil {
			sums[i] = p.content[table[i]]
		}
	}
}

// read is what attention over the first tokens of a table sees.
func (p *pool) read(id room.ID, tokens int, table []int32) uint64 {
	sum, s := uint64(0), shift(id)
	for i := range room.BlocksFor(tokens) {
		sum += weigh(p.content[table[i]]-s, i)
	}
	return sum
}

// decodeToken puts a token at its position and returns what is read then.
func (p *pool) decodeToken(id room.ID, token uint64, at int, table []int32) uint64 {
	i, s := at/room.BlockTokens, shift(id)
	before := uint64(0)
	if i > 0 {
		before = p.content[table[i-1]] - s
	}
	p.content[table[i]] = appendToken(p.content[table[i]]-s, before, token, at%room.BlockTokens) + s
	return p.read(id, at+1, table)
}

// text computes the right output of a prompt: the same arithmetic in memory of its own.
func text(prompt uint64, tokens, most int) []uint64 {
	var kv []uint64
	before := uint64(0)
	for i := range room.BlocksFor(tokens) {
		before = promptBlock(before, prompt, i, min(tokens-i*room.BlockTokens, room.BlockTokens))
		kv = append(kv, before)
	}
	read := func() (sum uint64) {
		for i, x := range kv {
			sum += weigh(x, i)
		}
		return sum
	}
	out := make([]uint64, 0, most)
	for k := range most {
		if k > 0 {
			at := tokens + k - 1
			i := at / room.BlockTokens
			if i == len(kv) {
				kv = append(kv, 0)
			}
			before := uint64(0)
			if i > 0 {
				before = kv[i-1]
			}
			kv[i] = appendToken(kv[i], before, out[k-1], at%room.BlockTokens)
		}
		out = append(out, sampled(read(), k))
		if stops(out[k]) {
			break
		}
	}
	return out
}
