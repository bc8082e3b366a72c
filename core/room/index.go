package room

// Index finds a small number by a room. It is an open-addressing table without a map's
// random order and with a copy that costs one memmove. The zero Index is empty and ready.
//
// Rooms are random numbers, so the table multiplies them only once to guard against a peer
// that does not choose them so.
type Index struct {
	slots []indexSlot // length is a power of two, or 0
	n     int
}

type indexSlot struct {
	id  ID // 0: empty
	pos uint32
}

// indexFirst is the first size of a table: it holds three rooms. The explorer copies millions
// of tables that hold two; a worker's grows in a few steps and stays grown.
const indexFirst = 4

func (x *Index) home(id ID) int {
	return int(uint64(id) * 0x9e3779b97f4a7c15 >> 32 & uint64(len(x.slots)-1))
}

// Find returns the number of id.
func (x *Index) Find(id ID) (pos uint32, ok bool) {
	if x.n == 0 {
		return 0, false
	}
	for i := x.home(id); x.slots[i].id != 0; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].id == id {
			return x.slots[i].pos, true
		}
	}
	return 0, false
}

// Put sets the number of id, which must not be 0.
func (x *Index) Put(id ID, pos uint32) {
	if 4*(x.n+1) > 3*len(x.slots) {
		x.grow()
	}
	i := x.home(id)
	for ; x.slots[i].id != 0; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].id == id {
			x.slots[i].pos = pos
			return
		}
	}
	x.slots[i] = indexSlot{id, pos}
	x.n++
}

func (x *Index) grow() {
	old := x.slots
	x.slots = make([]indexSlot, max(indexFirst, 2*len(old)))
	x.n = 0
	for _, s := range old {
		if s.id != 0 {
			x.Put(s.id, s.pos)
		}
	}
}

// Delete forgets id, and moves later entries up so that no chain has a hole.
func (x *Index) Delete(id ID) {
	if x.n == 0 {
		return
	}
	mask := len(x.slots) - 1
	i := x.home(id)
	for ; x.slots[i].id != id; i = (i + 1) & mask {
		if x.slots[i].id == 0 {
			return
		}
	}
	x.n--
	for j := i; ; {
		j = (j + 1) & mask
		s := x.slots[j]
		if s.id == 0 {
			x.slots[i] = indexSlot{}
			return
		}
		// s may move to i only if its home does not lie behind i on the way to j.
		if h := x.home(s.id); (j-h)&mask >= (j-i)&mask {
			x.slots[i] = s
			i = j
		}
	}
}

// Len is the number of entries.
func (x *Index) Len() int { return x.n }

// CopyTo makes dst equal to x and reuses dst's memory.
func (x *Index) CopyTo(dst *Index) {
	dst.slots = append(dst.slots[:0], x.slots...)
	dst.n = x.n
}
