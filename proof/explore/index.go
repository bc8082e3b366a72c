package explore

import "hash/maphash"

// digest stands for the key of a state (X4).
type digest struct{ a, b uint64 }

// index is an open-addressing set of state numbers. The digests stay in one list, so each is
// stored once, and its position is the number of its state.
type index struct {
	seedA, seedB maphash.Seed
	digests      pages[digest]
	slots        []uint64 // a power of two long: see slotOf; 0 is empty
}

func newIndex() *index {
	return &index{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed(), slots: make([]uint64, 1<<12)}
}

// slotOf is what stands for a state in slots: its number plus one, above a half of its digest
// by which most others are told apart without a look at theirs.
func slotOf(d digest, id int) uint64 { return d.b&^(1<<32-1) | uint64(id+1) }

// find returns the number of the state with this key, and whether it had one already.
func (x *index) find(key []byte) (id int32, old bool) {
	d := digest{maphash.Bytes(x.seedA, key), maphash.Bytes(x.seedB, key)}
	if x.digests.n*4 >= len(x.slots)*3 {
		x.grow()
	}
	mask := uint64(len(x.slots) - 1)
	i := d.a & mask
	for ; x.slots[i] != 0; i = (i + 1) & mask {
		if s := x.slots[i]; s>>32 == d.b>>32 && x.digests.at(int(uint32(s))-1) == d {
			return int32(uint32(s)) - 1, true
		}
	}
	x.slots[i] = slotOf(d, x.digests.n)
	x.digests.add(d)
	return int32(x.digests.n - 1), false
}

func (x *index) grow() {
	big := make([]uint64, 2*len(x.slots))
	mask := uint64(len(big) - 1)
	for id := range x.digests.n {
		d := x.digests.at(id)
		i := d.a & mask
		for big[i] != 0 {
			i = (i + 1) & mask
		}
		big[i] = slotOf(d, id)
	}
	x.slots = big
}
