package blocks

import (
	"fmt"
	"slices"
	"time"
)

// Count says where the blocks of a pool are. Total = Free + Cached + Held + Quarantined.
// Cached counts blocks that no room holds and a later one may find; Take evicts them when it
// must, so a pool is as good as empty when Free + Cached = Total. A block that is quarantined
// and still read by others counts as Held until they have released it.
type Count struct {
	Total, Free, Cached, Held, Quarantined int
}

// none ends a list.
const none = -1

// place is where a block is.
type place uint8

const (
	free place = iota
	cached
	held
	quarantined
)

var placeNames = [...]string{"free", "cached", "held", "quarantined"}

func (p place) String() string { return placeNames[p] }

// block is what the pool knows of one block.
type block struct {
	place  place
	keyed  bool          // index.keys has its key: it holds exactly that prefix's KV
	found  bool          // it is the block that Match finds under its key
	barred bool          // it was quarantined since it was given out: nobody may find it
	refs   int32         // tables that hold it
	apart  int32         // operations on it that were given up and may still be under way
	next   int32         // free: the next free block; cached: the next more recently used one of its list
	prev   int32         // cached: the next less recently used one
	at     int32         // pinned: where it stands in Pool.ends
	until  time.Duration // it is pinned as long; 0: it is not
	used   uint64        // cached: of two blocks the one that was used later has more
}

// Pool is a set of numbered blocks. The free ones form a list, the one released last first,
// because its bytes are the warmest. The cached ones form two lists in order of last use: those that
// are pinned, and the others, which go first.
type Pool struct {
	blocks  []block
	index   index
	first   int32 // free block that Take gives next, or none
	plain   list
	pinned  list
	ends    []int32 // blocks that are pinned, cached or held: a heap, the pin that ends next first
	uses    uint64
	count   Count
	evicted uint64
}

// list is one of cached blocks.
type list struct{ oldest, newest int32 } // or none

// of returns the list that a cached block is in.
func (p *Pool) of(b int32) *list {
	if p.blocks[b].until > 0 {
		return &p.pinned
	}
	return &p.plain
}

// New returns a pool of n free blocks, numbered from 0.
func New(n int) Pool {
	p := Pool{blocks: make([]block, n), first: none, plain: list{none, none}, pinned: list{none, none}, count: Count{Total: n}}
	for i := n - 1; i >= 0; i-- {
		p.free(int32(i))
	}
	return p
}

// Count counts the pool.
func (p *Pool) Count() Count { return p.count }

// Available is the number of blocks that Take could give: the free and the cached ones.
func (p *Pool) Available() int { return p.count.Free + p.count.Cached }

// Evicted is the number of cached blocks that Take has taken so far.
func (p *Pool) Evicted() uint64 { return p.evicted }

// Take gives n blocks, which must be available: free ones, then the least recently used cached
// ones, whose keys are forgotten. The table is new memory, never written again: it may be
// handed to an engine or a transport as it is.
func (p *Pool) Take(n int) []int32 {
	if n > p.Available() {
		panic(fmt.Sprintf("blocks: take of %d with %d free and %d cached", n, p.count.Free, p.count.Cached))
	}
	table := make([]int32, n)
	for i := range table {
		if p.first == none {
			p.evict()
		}
		b := p.first
		x := &p.blocks[b]
		p.first = x.next
		p.count.Free--
		*x = block{place: held, refs: 1}
		p.count.Held++
		table[i] = b
	}
	return table
}

// Release drops one reference of each block of a table and returns those that are free now:
// table itself if all are. The last reference puts a block with a key into the cache, where its
// bytes live on, any other on the free list. A table is taken from its end (B6).
func (p *Pool) Release(table []int32) (freed []int32) {
	all := true
	for _, b := range slices.Backward(table) {
		p.drop(b, "release")
		all = p.settle(b) && all
	}
	return p.freed(table, all)
}

// drop gives one reference back.
func (p *Pool) drop(b int32, verb string) {
	p.check(b, held, verb)
	x := &p.blocks[b]
	if x.refs--; x.refs < 0 {
		panic(fmt.Sprintf("blocks: %s of block %d, which nobody holds", verb, b))
	}
}

// settle finds the place of a block that has lost a reference, and says whether it is free.
func (p *Pool) settle(b int32) bool {
	x := &p.blocks[b]
	if x.refs > 0 {
		p.touch(b)
		return false
	}
	p.count.Held--
	if x.keyed && p.retain(b) {
		return false
	}
	p.index.forget(p.blocks, b)
	p.unpin(b)
	if x.apart > 0 {
		x.place = quarantined
		p.count.Quarantined++
		return false
	}
	p.free(b)
	return true
}

// Quarantine turns one reference of each block into an operation that was given up and may still
// be under way. The block is not findable from now on and, once nobody holds it, set apart. Others
// may share it: they only read, as the operation did if it touched a block with a key (B4), and
// what they read stays right. So their references go on as if nothing had happened; only the
// block is not reused before Clear.
func (p *Pool) Quarantine(table []int32) {
	for _, b := range slices.Backward(table) {
		p.drop(b, "quarantine")
		p.index.hide(p.blocks, b)
		p.unpin(b)
		p.blocks[b].apart++
		p.blocks[b].barred = true
		p.settle(b)
	}
}

// Clear takes back one Quarantine of each block, the proof has come, and returns those that are
// free now: table itself if all are. They are never findable again: the pool cannot know
// whether the operation wrote.
func (p *Pool) Clear(table []int32) (freed []int32) {
	all := true
	for _, b := range table {
		if b < 0 || int(b) >= len(p.blocks) || p.blocks[b].apart == 0 {
			p.wrong(b, "clear", quarantined)
		}
		x := &p.blocks[b]
		x.apart--
		if x.place != quarantined || x.apart > 0 {
			all = false
			continue
		}
		p.count.Quarantined--
		p.free(b)
	}
	return p.freed(table, all)
}

// freed returns the free blocks of a table: the table itself if all are.
func (p *Pool) freed(table []int32, all bool) (some []int32) {
	if all {
		return table
	}
	for _, b := range table {
		if p.blocks[b].place == free {
			some = append(some, b)
		}
	}
	return some
}

// free puts a block first on the free list.
func (p *Pool) free(b int32) {
	p.blocks[b] = block{place: free, next: p.first}
	p.first = b
	p.count.Free++
}

// check is invariant B2.
func (p *Pool) check(b int32, want place, verb string) {
	if b < 0 || int(b) >= len(p.blocks) || p.blocks[b].place != want {
		p.wrong(b, verb, want)
	}
}

func (p *Pool) wrong(b int32, verb string, want place) {
	is := "not in the pool"
	if b >= 0 && int(b) < len(p.blocks) {
		is = p.blocks[b].place.String()
	}
	panic(fmt.Sprintf("blocks: %s of block %d, which is %s and not %s (%+v)", verb, b, is, want, p.count))
}

// CopyTo makes dst equal to p and reuses dst's memory.
func (p *Pool) CopyTo(dst *Pool) {
	list, ends, index := append(dst.blocks[:0], p.blocks...), append(dst.ends[:0], p.ends...), dst.index
	p.index.copyTo(&index)
	*dst = *p
	dst.blocks, dst.ends, dst.index = list, ends, index
}
