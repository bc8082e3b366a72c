package grammar

import "math/bits"

const (
	// maskWorkMost bounds the search for one mask: each step from a state by a class of bytes counts
	// once, for workPerStep and the nodes and edges that it looks at. Masks of usual grammars take
	// thousands; one that takes all takes about 2 ms and a walk through the vocabulary (1 to 3 ms), and
	// holds a step of the engine up for as long. Beyond, the mask is cut: what was found is allowed,
	// and single bytes. A step counts the same whether it was taken in an earlier search or not, so
	// that a mask depends on the text alone (G4).
	maskWorkMost = 1 << 15
	workPerStep  = 16
)

// matcher is a machine over a vocabulary.
type matcher struct {
	*machine
	*vocabulary
	marks  []int32 // by byte from markByte: the control token, -1 if there is none
	walked []*live // of a walk, by depth
	search uint32  // counts the searches for masks
	work   int     // that is left to the present one; below 0 it was cut
	some   bool    // the present one has found a token
	cuts   int     // how many were cut
	found  bitmap  // working memory
}

// masked returns l, or the same state of the present age, with its mask known.
func (m *matcher) masked(l *live) *live {
	l = m.adopt(l)
	if l.has {
		return l
	}
	clear(m.found)
	m.search, m.work, m.some = m.search+1, maskWorkMost, false
	plainly, others := m.plainly(l)
	if plainly > 0 {
		m.found.merge(m.upTo[plainly])
		m.some = true
	}
	for i, id := range m.marks {
		if id >= 0 && m.take(l, m.class[markByte+i]) != &dead {
			m.found.add(id)
			m.some = true
		}
	}
	m.singles(&m.other, l)
	if others != nil {
		m.singles(&m.plain, others)
	}
	m.walk(&m.other, l)
	if others != nil {
		m.walk(&m.plain, others)
	}
	if m.work < 0 {
		m.cuts++
	}
	m.keep(l)
	return l
}

// take is step with its work counted.
func (m *matcher) take(at *live, c uint8) *live {
	next := at.next[c]
	if next == nil {
		next = m.step(at, c)
	}
	if at.met[c] != m.search {
		at.met[c] = m.search
		m.work -= int(at.cost[c])
	}
	return next
}

// singles adds the tokens of one byte of t that may come at l: all of them, or until the work is
// done and there is one. So a mask that is cut is no dead end (G1).
func (m *matcher) singles(t *tree, l *live) {
	for i := int32(0); int(i) < len(t.nodes) && (m.work >= 0 || !m.some); i = t.nodes[i].skip {
		x := &t.nodes[i]
		if x.n > 0 && m.take(l, m.class[x.b]) != &dead {
			m.add(t, x)
			m.some = true
		}
	}
}

// add adds the tokens that end at x.
func (m *matcher) add(t *tree, x *treeNode) {
	for _, id := range t.ids[x.first : int(x.first)+int(x.n)] {
		m.found.add(id)
	}
}

// keep stores what was found: as ids if that is smaller than a mask.
func (m *matcher) keep(l *live) {
	n := 0
	for _, w := range m.found {
		n += bits.OnesCount64(w)
	}
	l.has = true
	if 4*n < 8*len(m.found) {
		l.few = make([]int32, 0, n)
		for i, w := range m.found {
			for ; w != 0; w &= w - 1 {
				l.few = append(l.few, int32(i<<6+bits.TrailingZeros64(w)))
			}
		}
		m.kept += 4 * n
		return
	}
	l.mask = append([]uint64(nil), m.found...)
	m.kept += 8 * len(m.found)
}

// plainly returns up to how many characters a plain token may have because a place of l is in a
// string where any character may come, and the state of the other places, nil if there is none.
func (m *matcher) plainly(l *live) (chars int, others *live) {
	for _, p := range l.places {
		chars = max(chars, m.plainPlace(p))
	}
	if chars == 0 {
		return 0, l
	}
	m.start()
	for _, p := range l.places {
		if m.plainPlace(p) == 0 {
			m.places = append(m.places, p)
		}
	}
	if len(m.places) == 0 {
		return chars, nil
	}
	return chars, m.intern()
}

// plainPlace returns how many plain characters may come at p, at most plainMost, 0 if p is
// not where a character of a string begins.
func (m *matcher) plainPlace(p place) int {
	if p.node != m.chars || p.at == nil {
		return 0
	}
	x := &m.nodes[p.at.node]
	switch {
	case x.kind != nodeRepeat || m.startOf(x.rule) != m.chars:
		return 0
	case x.max < 0:
		return plainMost
	}
	return min(plainMost, int(x.max-p.at.count)+1)
}

// walk adds the tokens of t that may come at l, which is of the present age, until the work is
// done. Nothing is forgotten meanwhile.
func (m *matcher) walk(t *tree, l *live) {
	m.walked = append(m.walked[:0], l)
	for i := int32(0); int(i) < len(t.nodes) && m.work >= 0; {
		x := &t.nodes[i]
		next := m.take(m.walked[x.depth], m.class[x.b])
		if next == &dead {
			i = x.skip
			continue
		}
		m.add(t, x)
		m.walked = append(m.walked[:x.depth+1], next)
		i++
	}
}
