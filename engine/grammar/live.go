package grammar

import (
	"encoding/binary"
	"fmt"
)

// Bounds of what a grammar keeps and of the work of one step.
const (
	// keptMost bounds the states, stacks and masks that a grammar keeps, in bytes. A schema walks
	// through hundreds of states of about 1 KiB; a mask over 151,936 tokens takes 19 KiB. Beyond, all
	// are forgotten and found again (G4). The search for one mask may pass it by what its work
	// allows (maskWorkMost).
	keptMost = 8 << 20
	// placesMost bounds the places of the automaton that one state is at. Beyond, the later
	// alternatives are given up: what comes out still fits the Spec, but not everything that
	// fits can come out. It is twice propertiesMost, all of which may come next; alternatives that
	// look alike for long get there, in hostile schemas.
	placesMost = 2 * propertiesMost
	// visitsMost bounds in the same way the nodes that one step goes through.
	visitsMost = 4 * placesMost
)

// frame is where a rule goes on when the one that it called has ended. Frames are interned, so
// equal stacks are one pointer.
type frame struct {
	parent *frame
	node   int32
	count  int32 // of a repetition: how often, this time included
	depth  int32 // levels of the document, this frame included
	id     int32
}

type frameKey struct {
	parent             *frame
	node, count, depth int32
}

// place is a node with bytes, and the stack there.
type place struct {
	node int32
	at   *frame
}

// live is a state of the determinised automaton: all places at which a text may be.
type live struct {
	places []place
	accept bool     // the text may end here
	next   []*live  // by class of bytes; nil not known, &dead none
	cost   []int32  // by class: what the step is worth in the work for a mask
	met    []uint32 // by class: the last search for a mask that took the step, see matcher.walk
	age    int      // of the machine in which it is interned

	mask []uint64 // tokens that may follow, end tokens not included; nil not known
	few  []int32  // instead of mask, if they are few
	has  bool     // mask or few is known
}

var dead live

// What a state and a frame take besides their lists, with their place in a map.
const (
	liveBytes  = 320
	frameBytes = 136
)

// machine determinises a net lazily. It is not safe for several goroutines.
type machine struct {
	*net
	need  []int32
	class [256]uint8 // bytes that no edge tells apart
	first [256]uint8 // by class, one byte of it
	width int        // classes

	age    int
	lives  map[string]*live
	frames map[frameKey]*frame
	kept   int // bytes of states, stacks and masks, about

	// working memory of a step
	places []place
	accept bool
	visits int
	seen   map[visit]struct{}
	trail  []visit
	key    []byte
}

type visit struct {
	node, count int32
	at          *frame
}

// settle prunes what cannot be finished with the bytes of has, and returns the machine.
func (n *net) settle(has *[256]bool) (*machine, error) {
	m := &machine{net: n, need: n.needs(has), seen: map[visit]struct{}{}}
	if m.need[n.rules[0].start] > depthMost {
		return nil, errNothing
	}
	m.sortBytes(has)
	m.forget()
	return m, nil
}

var errNothing = fmt.Errorf("no text fits: it contradicts itself, has no end, or nests deeper than %d levels at least", depthMost)

// sortBytes finds the classes of bytes. Class 0 is those that lead nowhere.
func (m *machine) sortBytes(has *[256]bool) {
	var cut [257]bool
	var open [257]int
	for i := range m.edges {
		e := &m.edges[i]
		cut[e.lo], cut[int(e.hi)+1] = true, true
		open[e.lo]++
		open[int(e.hi)+1]--
	}
	m.width = 1
	fresh, used := true, 0
	for b := range 256 {
		used += open[b]
		fresh = fresh || cut[b]
		if used == 0 || !has[b] {
			continue
		}
		if fresh { // UTF-8 never has 13 of the bytes, marks are 8, so the classes fit into a byte
			m.first[m.width], fresh = uint8(b), false
			m.width++
		}
		m.class[b] = uint8(m.width - 1)
	}
}

// forget drops all states and stacks. Those that are still held stay valid; what follows from
// them is found again: none of them holds what was met from it, or a room that waits would hold all
// that is forgotten.
func (m *machine) forget() {
	for _, l := range m.lives {
		clear(l.next)
	}
	m.age++
	m.lives, m.frames, m.kept = map[string]*live{}, map[frameKey]*frame{}, 0
}

// tidy keeps the bounds. It is called between steps.
func (m *machine) tidy() {
	if m.kept >= keptMost {
		m.forget()
	}
}

// begin returns the state before any byte.
func (m *machine) begin() *live {
	m.start()
	m.arrive(m.rules[0].start, 0, nil)
	return m.intern()
}

// adopt returns the state of the present age that is the same as l.
func (m *machine) adopt(l *live) *live {
	if l.age == m.age || l == &dead {
		return l
	}
	m.start()
	for _, p := range l.places {
		m.places = append(m.places, place{p.node, m.adoptFrame(p.at)})
	}
	m.accept = l.accept
	return m.intern()
}

func (m *machine) adoptFrame(f *frame) *frame {
	if f == nil {
		return nil
	}
	return m.push(m.adoptFrame(f.parent), f.node, f.count, f.depth)
}

// step returns the state after a byte of class c; l is of the present age.
func (m *machine) step(l *live, c uint8) *live {
	if n := l.next[c]; n != nil {
		return n
	}
	b := m.first[c]
	m.start()
	looked := 0
	for _, p := range l.places {
		looked += int(m.nodes[p.node].n)
		for _, e := range m.edgesOf(&m.nodes[p.node]) {
			if e.lo <= b && b <= e.hi {
				m.arrive(e.to, 0, p.at)
			}
		}
	}
	l.cost[c] = int32(workPerStep + (len(l.places)+looked)/8 + m.visits + len(m.places)/2)
	n := &dead
	if c != 0 && (len(m.places) > 0 || m.accept) {
		n = m.intern()
	}
	l.next[c] = n
	return n
}

func (m *machine) start() {
	m.places, m.accept, m.trail, m.visits = m.places[:0], false, m.trail[:0], 0
	clear(m.seen)
}

// arrive adds the places that are reached from node without a byte, with at as the stack.
func (m *machine) arrive(node, count int32, at *frame) {
	for {
		depth := int32(0)
		if at != nil {
			depth = at.depth
		}
		if m.need[node]+depth > depthMost || m.visited(visit{node, count, at}) {
			return
		}
		x := &m.nodes[node]
		switch x.kind {
		case nodeBytes:
			if len(m.places) < placesMost || node == m.chars && len(m.places) < 2*placesMost { // see plainPlace
				m.places = append(m.places, place{node, at})
			}
			return
		case nodeEnd:
			if at == nil {
				m.accept = true
				return
			}
			node, count, at = at.node, at.count, at.parent
		case nodeSplit:
			for _, t := range m.targets(x) {
				m.arrive(t, 0, at)
			}
			return
		case nodeCall:
			if x.deep {
				depth++
			}
			if x.deep || x.to != end {
				at = m.push(at, x.to, 0, depth)
			}
			node, count = m.startOf(x.rule), 0
		case nodeRepeat:
			if x.max < 0 || count < x.max {
				n := count + 1
				if x.max < 0 && n > x.min {
					n = x.min // as good as any more
				}
				if m.need[x.to]+depth <= depthMost {
					m.arrive(m.startOf(x.rule), 0, m.push(at, node, n, depth))
				}
			}
			if count < x.min {
				return
			}
			node, count = x.to, 0
		}
	}
}

// visited notes v and says whether it was noted before, or the step has gone far enough. Few are
// searched in a list.
func (m *machine) visited(v visit) bool {
	if m.visits++; m.visits > visitsMost && (m.accept || len(m.places) > 0) {
		return true
	}
	if len(m.trail) < 24 {
		for _, t := range m.trail {
			if t == v {
				return true
			}
		}
		m.trail = append(m.trail, v)
		return false
	}
	if len(m.seen) == 0 {
		for _, t := range m.trail {
			m.seen[t] = struct{}{}
		}
	}
	if _, ok := m.seen[v]; ok {
		return true
	}
	m.seen[v] = struct{}{}
	return false
}

func (m *machine) push(parent *frame, node, count, depth int32) *frame {
	k := frameKey{parent, node, count, depth}
	f, ok := m.frames[k]
	if !ok {
		f = &frame{parent, node, count, depth, int32(len(m.frames) + 1)}
		m.frames[k] = f
		m.kept += frameBytes
	}
	return f
}

// intern returns the state of the places that were arrived at. Their order counts, so that a
// state depends on the text alone, also where placesMost cuts it.
func (m *machine) intern() *live {
	k := m.key[:0]
	for _, p := range m.places {
		k = binary.LittleEndian.AppendUint32(k, uint32(p.node))
		id := int32(0)
		if p.at != nil {
			id = p.at.id
		}
		k = binary.LittleEndian.AppendUint32(k, uint32(id))
	}
	if m.accept {
		k = append(k, 1)
	}
	m.key = k
	if l, ok := m.lives[string(k)]; ok {
		return l
	}
	l := &live{places: append([]place(nil), m.places...), accept: m.accept, next: make([]*live, m.width), cost: make([]int32, m.width), met: make([]uint32, m.width), age: m.age}
	m.lives[string(k)] = l
	m.kept += liveBytes + 16*m.width + 16*len(l.places) + len(k)
	return l
}
