package tokenizer

import "math/bits"

// mergeTable says what a pair of tokens merges into and how early. It is built once and only
// read afterwards. A slot of the hash table holds the number of a merge + 1 in its low 22 bits
// and bits of the pair's hash above; the merges themselves stand in arrays by number, so that
// half a million of them (Gemma) take 10 MB.
type mergeTable struct {
	slots []uint32
	shift int
	pairs []uint64 // by number: left<<32 | right
	ids   []int32  // by number: what they become
	ranks []int32  // by number: of several possible merges the lowest is done first; nil: the number
}

const (
	mergesMost = 1<<22 - 1 // what fits into a slot; Gemma has 514,906
	slotMask   = 1<<22 - 1
)

// merged is one merge that is possible.
type merged struct{ rank, id int32 }

func newMergeTable(n int) mergeTable {
	width := bits.Len(uint(2*n + 1)) // at most half full
	return mergeTable{slots: make([]uint32, 1<<width), shift: 64 - width, pairs: make([]uint64, 0, n), ids: make([]int32, 0, n)}
}

// slot returns where to look first, and the upper bits that a slot of this pair has.
func (m *mergeTable) slot(pair uint64) (at uint64, tag uint32) {
	h := (pair ^ pair>>29) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h >> m.shift, uint32(h) << 22
}

// add adds a merge; of several of one pair the first counts, or the last.
func (m *mergeTable) add(left, right, id int32, last bool) {
	pair := uint64(uint32(left))<<32 | uint64(uint32(right))
	number := uint32(len(m.pairs))
	m.pairs, m.ids = append(m.pairs, pair), append(m.ids, id)
	at, tag := m.slot(pair)
	for ; m.slots[at] != 0; at = (at + 1) & uint64(len(m.slots)-1) {
		if m.pairs[m.slots[at]&slotMask-1] == pair {
			if last {
				break
			}
			return
		}
	}
	m.slots[at] = tag | (number + 1)
}

func (m *mergeTable) find(left, right int32) (merged, bool) {
	pair := uint64(uint32(left))<<32 | uint64(uint32(right))
	at, tag := m.slot(pair)
	for {
		s := m.slots[at]
		if s == 0 {
			return merged{}, false
		}
		if n := s&slotMask - 1; s&^slotMask == tag && m.pairs[n] == pair {
			if m.ranks != nil {
				return merged{m.ranks[n], m.ids[n]}, true
			}
			return merged{int32(n), m.ids[n]}, true
		}
		at = (at + 1) & uint64(len(m.slots)-1)
	}
}

// merger is the working memory of merging: reused from piece to piece of one call.
type merger struct {
	ids        []int32
	prev, next []int32 // -1 is none
	heap       []candidate
}

// candidate is a merge that was possible when it was noted; it is void if one of the two has
// changed since.
type candidate struct {
	rank        int32
	at          int32 // index of the left symbol
	left, right int32 // the pair's tokens
	id          int32 // what they become
}

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// scanMost is the length up to which looking for the best pair anew after each merge is faster
// than a heap (measured: up to 30 tokens it is). It keeps T3: the work per piece is bounded by
// a constant.
const scanMost = 24

// merge appends what the tokens in m.ids become: merged pair by pair, lowest rank first, leftmost
// first among equals.
func (m *merger) merge(dst []int32, table *mergeTable) []int32 {
	if len(m.ids) <= scanMost {
		return append(dst, m.scan(table)...)
	}
	return m.byHeap(dst, table)
}

func (m *merger) scan(table *mergeTable) []int32 {
	ids := m.ids
	var found [scanMost]merged // found[i]: merge of ids[i] and ids[i+1], id -1 if none
	look := func(i int) merged {
		if x, ok := table.find(ids[i], ids[i+1]); ok {
			return x
		}
		return merged{1<<31 - 1, -1}
	}
	for i := 0; i+1 < len(ids); i++ {
		found[i] = look(i)
	}
	for len(ids) > 1 {
		best := 0
		for i := 1; i+1 < len(ids); i++ {
			if found[i].rank < found[best].rank {
				best = i
			}
		}
		if found[best].id < 0 {
			break
		}
		ids[best] = found[best].id
		copy(ids[best+1:], ids[best+2:])
		copy(found[best:], found[best+1:len(ids)-1])
		ids = ids[:len(ids)-1]
		if best > 0 {
			found[best-1] = look(best - 1)
		}
		if best+1 < len(ids) {
			found[best] = look(best)
		}
	}
	return ids
}

func (m *merger) byHeap(dst []int32, table *mergeTable) []int32 {
	n := len(m.ids)
	m.prev, m.next, m.heap = m.prev[:0], m.next[:0], m.heap[:0]
	for i := 0; i < n; i++ {
		m.prev = append(m.prev, int32(i-1))
		m.next = append(m.next, int32(i+1))
	}
	m.next[n-1] = -1
	for i := 0; i+1 < n; i++ {
		m.note(table, int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		right := m.next[c.at]
		if m.ids[c.at] != c.left || right < 0 || m.ids[right] != c.right {
			continue // void
		}
		m.ids[c.at], m.ids[right] = c.id, -1
		m.next[c.at] = m.next[right]
		if after := m.next[right]; after >= 0 {
			m.prev[after] = c.at
			m.note(table, c.at)
		}
		if before := m.prev[c.at]; before >= 0 {
			m.note(table, before)
		}
	}
	for i := int32(0); i >= 0; i = m.next[i] {
		dst = append(dst, m.ids[i])
	}
	return dst
}

// note puts the merge of symbol at with the one after it on the heap, if there is one.
func (m *merger) note(table *mergeTable, at int32) {
	left, right := m.ids[at], m.ids[m.next[at]]
	if x, ok := table.find(left, right); ok {
		m.push(candidate{x.rank, at, left, right, x.id})
	}
}

func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	h, i := m.heap, len(m.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (m *merger) pop() candidate {
	h := m.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(h[i]) {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	m.heap = h
	return top
}
