package room

// List keeps the live rooms of a core in order of arrival and gives each a slot: a small
// number that stays its own until it is removed, by which the core finds its own record.
// Everything is O(1) and nothing has a random order. The zero List is not ready: see NewList.
type List struct {
	links      []link // by slot
	head, tail int32
	free       int32 // first unused slot; links[free].next is the second
	index      Index
}

type link struct{ prev, next int32 }

// None is no slot.
const None int32 = -1

// NewList returns an empty list.
func NewList() List { return List{head: None, tail: None, free: None} }

// Len is the number of rooms in the list.
func (l *List) Len() int { return l.index.Len() }

// Find returns the slot of id, or None.
func (l *List) Find(id ID) int32 {
	if i, ok := l.index.Find(id); ok {
		return int32(i)
	}
	return None
}

// First is the slot of the oldest room, or None.
func (l *List) First() int32 { return l.head }

// Next is the slot of the room that came after the one in slot i, or None.
func (l *List) Next(i int32) int32 { return l.links[i].next }

// Add puts a room that is not in the list at its end. Slots are dense: the result is at most
// the largest number of rooms that were ever in the list at once.
func (l *List) Add(id ID) (slot int32) {
	slot = l.free
	if slot != None {
		l.free = l.links[slot].next
	} else {
		slot = int32(len(l.links))
		l.links = append(l.links, link{})
	}
	l.links[slot] = link{prev: l.tail, next: None}
	if l.tail != None {
		l.links[l.tail].next = slot
	} else {
		l.head = slot
	}
	l.tail = slot
	l.index.Put(id, uint32(slot))
	return slot
}

// Remove takes the room in a slot out.
func (l *List) Remove(id ID, slot int32) {
	l.index.Delete(id)
	n := l.links[slot]
	if n.prev != None {
		l.links[n.prev].next = n.next
	} else {
		l.head = n.next
	}
	if n.next != None {
		l.links[n.next].prev = n.prev
	} else {
		l.tail = n.prev
	}
	l.links[slot].next = l.free
	l.free = slot
}

// CopyTo makes dst equal to l and reuses dst's memory.
func (l *List) CopyTo(dst *List) {
	links, index := append(dst.links[:0], l.links...), dst.index
	l.index.CopyTo(&index)
	*dst = *l
	dst.links, dst.index = links, index
}
