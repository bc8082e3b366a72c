package fleetsim

import (
	"encoding/binary"
	"math/bits"

	"baton/core/blocks"
	"baton/core/room"
)

// This file is the engine. KV of a block is one number: a chain over the tokens up to its last
// one, so that bytes of another prompt or of nobody are another number; and every token depends on
// all blocks of its room. Rooms whose prompts begin alike may share blocks, and a block with the
// wrong number in it poisons all of them.

// prompt says what the tokens of a prompt are.
type prompt struct {
	own, kin uint64
	alike    int   // tokens that all of the same kin begin with
	turn     *turn // what came before in its conversation; nil: nothing
}

// turn is a prompt and the answer to it, with which the next prompt of a conversation begins.
type turn struct {
	prompt prompt
	tokens int
	said   []uint64
}

// block is the chain over block i of a prompt of so many tokens and of what was said behind it, as far
// as token to.
func (x prompt) block(before uint64, tokens int, said []uint64, i, to int) (block uint64) {
	at := i * room.BlockTokens
	if n := min(to, tokens, at+room.BlockTokens) - at; n > 0 {
		block = promptBlock(before, x, i, n)
	}
	for k := max(at, tokens); k < min(to, at+room.BlockTokens); k++ {
		block = appendToken(block, before, said[k-tokens], k-at)
	}
	return block
}

// key names a complete block that ends with output.
func (x prompt) key(tokens int, said []uint64, to int) (k blocks.Key) {
	before := uint64(0)
	for i := range to / room.BlockTokens {
		before = x.block(before, tokens, said, i, to)
	}
	binary.LittleEndian.PutUint64(k[:], before)
	return k
}

// part is what block i, of so many tokens, adds to the chain.
func (x prompt) part(i, tokens int) uint64 {
	from := i * room.BlockTokens
	y := x.own + uint64(i)<<8 + uint64(tokens)
	if n := min(x.alike-from, tokens); n > 0 {
		y = mix(x.kin+uint64(i)<<8+uint64(n)) + x.own*min(uint64(tokens-n), 1) + uint64(tokens)
	}
	return mix(y)
}

// keys names the complete blocks of a prompt.
func (x prompt) keys(tokens int) (list []blocks.Key) {
	before := uint64(0)
	for i := range tokens / room.BlockTokens {
		before = promptBlock(before, x, i, room.BlockTokens)
		var k blocks.Key
		binary.LittleEndian.PutUint64(k[:], before)
		list = append(list, k)
	}
	return list
}

// promptBlock is the chain over block i of a prompt, behind the block before.
func promptBlock(before uint64, x prompt, i, tokens int) uint64 {
	if t, to := x.turn, i*room.BlockTokens+tokens; t != nil && to <= t.tokens+len(t.said) {
		return t.prompt.block(before, t.tokens, t.said, i, to)
	}
	return mix(before ^ x.part(i, tokens))
}

// appendToken is the chain of a block after one more token, at place at in it.
func appendToken(block, before, token uint64, at int) uint64 {
	if at == 0 {
		block = mix(before)
	}
	return mix(block ^ token + uint64(at))
}

// sampled is token k of an output of a prompt, whose sum over the blocks is read.
func sampled(read uint64, k, branch int) uint64 { return mix(read ^ uint64(k) ^ uint64(branch)<<32) }

// weigh is the part of block i in what is read.
func weigh(block uint64, i int) uint64 { return bits.RotateLeft64(block, i) }

// stops says that a token ends the output, as a stop string would.
func stops(token uint64) bool { return token%32 == 0 }

// pool is the memory of one worker's blocks, who is inside them, and whose they are.
type pool struct {
	content []uint64
	sums    []uint64 // prefill: of the content, when it was computed
	inside  []uint8  // steps, writes and receivers
	rooms   []uint8  // that have it in their tables
	cached  []bool   // in nobody's table, and not freed
	held    int      // blocks in somebody's table
	kept    int      // blocks that are cached
}

func newPool(n int, r *rng) pool {
	p := pool{content: make([]uint64, n), sums: make([]uint64, n), inside: make([]uint8, n), rooms: make([]uint8, n), cached: make([]bool, n)}
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

// hold gives a room a table of which the first found blocks come from the prefix cache. The others
// are its alone.
func (w *World) hold(n *node, p *pool, id room.ID, table []int32, found int) {
	for i, b := range table {
		switch {
		case p.inside[b] > 0 && i >= found:
			w.fail("QUIET", w.of(id), "%s %d gives out block %d with somebody inside", roleNames[n.role], n.at, b)
		case p.rooms[b] > 0 && i >= found:
			w.fail("OWN", w.of(id), "%s %d gives out block %d, which %d rooms have", roleNames[n.role], n.at, b, p.rooms[b])
		case i < found && p.rooms[b] == 0 && !p.cached[b]:
			w.fail("OWN", w.of(id), "%s %d finds block %d in its prefix cache, which holds nothing", roleNames[n.role], n.at, b)
		}
		if i < found && p.rooms[b] > 0 {
			w.sights.see(prefixShared)
		}
		switch {
		case i >= found:
			w.evict(p, table[i:i+1])
		case p.cached[b]:
			p.cached[b] = false
			p.kept--
		}
		if p.rooms[b]++; p.rooms[b] == 1 {
			p.held++
		}
	}
}

// evict takes blocks out of the prefix cache that somebody gets to fill.
func (w *World) evict(p *pool, table []int32) {
	for _, b := range table {
		if p.cached[b] {
			w.sights.see(prefixEvicted)
			p.cached[b] = false
			p.kept--
			p.content[b] = ^p.content[b] * 3
		}
	}
}

// drop takes a table from a room. What nobody has then is cached, but for what is freed.
func (p *pool) drop(table []int32) {
	for _, b := range table {
		if p.rooms[b]--; p.rooms[b] == 0 {
			p.held--
			p.kept++
			p.cached[b] = true
		}
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
}

// freedToo takes blocks that are freed out of the prefix cache, where drop put them.
func (w *World) freedToo(n *node, p *pool, id room.ID, table []int32) {
	for _, b := range table {
		if !p.cached[b] {
			w.fail("OWN", w.of(id), "%s %d frees block %d, which %d rooms have", roleNames[n.role], n.at, b, p.rooms[b])
			return
		}
		p.cached[b] = false
		p.kept--
	}
}

// spoil is what a step that fails leaves in the blocks that it was to fill.
func (p *pool) spoil(from, to int, table []int32) {
	for i := from / room.BlockTokens; i < room.BlocksFor(to); i++ {
		p.content[table[i]] = ^p.content[table[i]] * 5
	}
}

// prefillChunk computes tokens from, to of a prompt and what was said behind it into the blocks of
// a table.
func (p *pool) prefillChunk(x prompt, tokens int, said []uint64, from, to int, table []int32) {
	before := uint64(0)
	if i := from / room.BlockTokens; i > 0 {
		before = p.content[table[i-1]]
	}
	for i := from / room.BlockTokens; i < room.BlocksFor(to); i++ {
		before = x.block(before, tokens, said, i, to)
		p.content[table[i]] = before
		p.sums[table[i]] = p.content[table[i]]
	}
}

// read is what attention over the first tokens of a table sees.
func (p *pool) read(tokens int, table []int32) uint64 {
	sum := uint64(0)
	for i := range room.BlocksFor(tokens) {
		sum += weigh(p.content[table[i]], i)
	}
	return sum
}

// decodeToken puts a token at its position and returns what is read then.
func (p *pool) decodeToken(token uint64, at int, table []int32) uint64 {
	i := at / room.BlockTokens
	before := uint64(0)
	if i > 0 {
		before = p.content[table[i-1]]
	}
	p.content[table[i]] = appendToken(p.content[table[i]], before, token, at%room.BlockTokens)
	return p.read(at+1, table)
}

// text computes a right output of a prompt: the same arithmetic in memory of its own.
func text(x prompt, tokens, most, branch int) []uint64 {
	var kv []uint64
	before := uint64(0)
	for i := range room.BlocksFor(tokens) {
		before = promptBlock(before, x, i, min(tokens-i*room.BlockTokens, room.BlockTokens))
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
		out = append(out, sampled(read(), k, branch))
		if stops(out[k]) {
			break
		}
	}
	return out
}
