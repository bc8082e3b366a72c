package blocks

import "fmt"

// Count says where the blocks of a pool are. Total = Free + Cached + Held + Quarantined.
// Cached counts blocks that only a prefix cache holds; there is none yet.
type Count struct {
	Total, Free, Cached, Held, Quarantined int
}

// What link says of a block that is not free.
const (
	last        = -1 // free, and the end of the free list
	held        = -2
	quarantined = -3
)

// Pool is a set of numbered blocks. The free ones form a list through link, the one released
// last first, because its bytes are the warmest.
type Pool struct {
	link        []int32 // next free block, or one of the above; one per block
	head        int32   // first free block, or last
	free        int
	quarantined int
}

// New returns a pool of n free blocks, numbered from 0.
func New(n int) Pool {
	p := Pool{link: make([]int32, n), head: last, free: n}
	for i := n - 1; i >= 0; i-- {
		p.link[i], p.head = p.head, int32(i)
	}
	return p
}

// Count counts the pool.
func (p *Pool) Count() Count {
	return Count{
		Total:       len(p.link),
		Free:        p.free,
		Held:        len(p.link) - p.free - p.quarantined,
		Quarantined: p.quarantined,
	}
}

// Free is the number of blocks that Take could give.
func (p *Pool) Free() int { return p.free }

// Take gives n blocks, which must be free. The table is new memory, never written again: it
// may be handed to an engine or a transport as it is.
func (p *Pool) Take(n int) []int32 {
	if n > p.free {
		panic(fmt.Sprintf("blocks: take of %d with %d free", n, p.free))
	}
	table := make([]int32, n)
	for i := range table {
		b := p.head
		table[i], p.head, p.link[b] = b, p.link[b], held
	}
	p.free -= n
	return table
}

// Release takes held blocks back into the free list.
func (p *Pool) Release(table []int32) {
	for i := len(table) - 1; i >= 0; i-- {
		b := table[i]
		p.check(b, held, "release")
		p.link[b], p.head = p.head, b
	}
	p.free += len(table)
}

// Quarantine sets held blocks apart: an operation on them ended without proof of its end.
func (p *Pool) Quarantine(table []int32) {
	for _, b := range table {
		p.check(b, held, "quarantine")
		p.link[b] = quarantined
	}
	p.quarantined += len(table)
}

// Clear frees quarantined blocks: the proof has come.
func (p *Pool) Clear(table []int32) {
	for _, b := range table {
		p.check(b, quarantined, "clear")
		p.link[b], p.head = p.head, b
	}
	p.quarantined -= len(table)
	p.free += len(table)
}

// check is invariant B2.
func (p *Pool) check(b, want int32, verb string) {
	if b < 0 || int(b) >= len(p.link) || p.link[b] != want {
		panic(fmt.Sprintf("blocks: %s of block %d, which is not in that state (free %d, quarantined %d of %d)",
			verb, b, p.free, p.quarantined, len(p.link)))
	}
}

// CopyTo makes dst equal to p and reuses dst's memory.
func (p *Pool) CopyTo(dst *Pool) {
	link := append(dst.link[:0], p.link...)
	*dst = *p
	dst.link = link
}
