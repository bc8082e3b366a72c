package blocks

import (
	"encoding/binary"
	"fmt"
)

// Key names what a completely filled block holds: a digest of a salt and of all tokens from the
// beginning of the prompt to the end of the block. The driver computes it, so that no core sees
// a token, with a function under which nobody can make two prompts meet. The keys of a prompt
// form a chain: equal keys at one place mean equal keys before it.
type Key [16]byte

// Common is how many keys two chains begin with alike.
func Common(a, b []Key) int {
	n := min(len(a), len(b))
	if n == 0 || a[0] != b[0] {
		return 0 // mostly
	}
	alike := 1
	for alike < n { // equal keys mean equal keys before them
		if mid := (alike + n) / 2; a[mid] == b[mid] {
			alike = mid + 1
		} else {
			n = mid
		}
	}
	return alike
}

// Find says how many blocks Match(keys) would give, and how many of them are cached: those it
// would take away from those available.
func (p *Pool) Find(keys []Key) (n, cachedOnly int) {
	for i := range keys {
		b := p.index.find(keys[i])
		if b == none {
			break
		}
		n++
		if p.blocks[b].place == cached {
			cachedOnly++
		}
	}
	return n, cachedOnly
}

// Found is the block that is found under one key, wherever it stands in a chain: for who checks
// a pool from outside.
func (p *Pool) Found(k Key) (b int32, ok bool) {
	b = p.index.find(k)
	return b, b != none
}

// Holders is how many tables hold a block.
func (p *Pool) Holders(b int32) int { return int(p.blocks[b].refs) }

// Match gives the blocks of the longest chain that can be found from the first key on, with a
// reference taken on each. They may be read and not written to.
func (p *Pool) Match(keys []Key) []int32 {
	var table []int32
	for i := range keys {
		b := p.index.find(keys[i])
		if b == none {
			break
		}
		if x := &p.blocks[b]; x.place == cached {
			p.unlink(b)
			x.place = held
			p.count.Held++
		}
		p.blocks[b].refs++
		table = append(table, b)
	}
	return table
}

// Publish makes held blocks findable, table[i] under keys[i]: they are completely filled and
// nobody writes to them any more (B7). The first block under a key is the one that is found; a
// second copy stays private. Publishing again what has its key already changes nothing, nor does
// publishing a block that is quarantined meanwhile.
func (p *Pool) Publish(table []int32, keys []Key) {
	if len(table) != len(keys) {
		panic(fmt.Sprintf("blocks: publish of %d blocks under %d keys", len(table), len(keys)))
	}
	for i, b := range table {
		p.check(b, held, "publish")
		x := &p.blocks[b]
		switch {
		case x.barred:
			continue
		case x.keyed:
			if p.index.keys[b] != keys[i] {
				panic(fmt.Sprintf("blocks: block %d has a key and is published under another", b))
			}
			continue
		case x.refs != 1:
			panic(fmt.Sprintf("blocks: block %d is published with %d holders", b, x.refs))
		}
		p.index.grow(len(p.blocks))
		x.keyed = true
		p.index.keys[b] = keys[i]
		if p.index.find(keys[i]) == none {
			p.index.add(p.blocks, b)
		}
	}
}

// Own asserts that a room may write to these blocks: it alone holds them, and nobody can find
// them (B4).
func (p *Pool) Own(table []int32) {
	for _, b := range table {
		p.check(b, held, "write")
		if x := &p.blocks[b]; x.refs != 1 || x.keyed || x.barred {
			panic(fmt.Sprintf("blocks: write to block %d, which has %d holders, a key, or was quarantined", b, x.refs))
		}
	}
}

// retain keeps a block with a key that nobody holds any more, if it is the one that Match finds
// or can become that; another copy is not kept, but it counts as a use of the first.
func (p *Pool) retain(b int32) bool {
	if x := &p.blocks[b]; !x.found {
		if p.touch(b) || x.barred {
			return false
		}
		p.index.add(p.blocks, b)
	}
	p.blocks[b].place = cached
	p.link(b)
	return true
}

// touch counts the use of a copy as one of the block that is found under the same key, and says
// whether there is another one.
func (p *Pool) touch(b int32) bool {
	if x := &p.blocks[b]; !x.keyed || x.found {
		return false
	}
	first := p.index.find(p.index.keys[b])
	if first != none && p.blocks[first].place == cached {
		p.unlink(first)
		p.link(first)
	}
	return first != none
}

// link puts a block at the recently used end of the cache.
func (p *Pool) link(b int32) {
	x, l := &p.blocks[b], p.of(b)
	p.uses++
	x.prev, x.next, x.used = l.newest, none, p.uses
	if l.newest == none {
		l.oldest = b
	} else {
		p.blocks[l.newest].next = b
	}
	l.newest = b
	p.count.Cached++
}

// unlink takes a block out of the cache.
func (p *Pool) unlink(b int32) {
	x, l := &p.blocks[b], p.of(b)
	if x.prev == none {
		l.oldest = x.next
	} else {
		p.blocks[x.prev].next = x.next
	}
	if x.next == none {
		l.newest = x.prev
	} else {
		p.blocks[x.next].prev = x.prev
	}
	p.count.Cached--
}

// evict frees the cached block that was used least recently, of those that are pinned only if there
// is no other (B5, B9).
func (p *Pool) evict() {
	b := p.plain.oldest
	if b == none {
		b = p.pinned.oldest
	}
	p.check(b, cached, "eviction")
	if x := &p.blocks[b]; x.refs != 0 || x.apart != 0 {
		panic(fmt.Sprintf("blocks: eviction of block %d, which has %d holders", b, x.refs))
	}
	p.unlink(b)
	p.unpin(b)
	p.index.forget(p.blocks, b)
	p.free(b)
	p.evicted++
}

// AppendState appends a canonical form of what is findable and not held: the keys of the cache,
// the least recently used first and the pinned ones last, each with the end of its pin, after the
// counts. Numbers of blocks are left out; AppendBlock says the same of the blocks that a table holds.
func (p *Pool) AppendState(b []byte) []byte {
	n := p.count
	for _, x := range [...]int{n.Free, n.Cached, n.Quarantined} {
		b = binary.AppendUvarint(b, uint64(x))
	}
	for _, first := range [...]int32{p.plain.oldest, p.pinned.oldest} {
		for i := first; i != none; i = p.blocks[i].next {
			b = append(b, p.index.keys[i][:]...)
			b = binary.AppendUvarint(b, uint64(p.blocks[i].until))
		}
	}
	return binary.AppendUvarint(b, uint64(len(p.ends)))
}

// AppendTable appends the keys of a room and, if it has any, what the pool knows of its blocks.
func (p *Pool) AppendTable(b []byte, keys []Key, table []int32) []byte {
	n := len(keys)
	b = binary.AppendUvarint(b, uint64(n))
	if n > 0 { // the last key names them all
		b = append(b, keys[n-1][:]...)
		for _, block := range table {
			b = p.AppendBlock(b, block)
		}
	}
	return b
}

// AppendBlock appends what the pool knows of one block of a table: its holders, its key, whether it
// can be found, and the end of its pin. Of a block without key and with one holder, nothing but that.
func (p *Pool) AppendBlock(b []byte, i int32) []byte {
	x := &p.blocks[i]
	flags := byte(0)
	if x.keyed {
		flags |= 1
	}
	if x.found {
		flags |= 2
	}
	if x.barred {
		flags |= 4
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(x.until))
	b = binary.AppendUvarint(b, uint64(x.refs))
	b = binary.AppendUvarint(b, uint64(x.apart))
	if x.keyed {
		b = append(b, p.index.keys[i][:]...)
	}
	return b
}
