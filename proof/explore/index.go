package explore

import "hash/maphash"

// digest stands for the key of a state (X4).
type digest struct{ a, b uint64 }

// index is an open-addressing set of state numbers. The digests stay in one slice, so each is
// stored once, and its position is the number of its state.
type index struct {
	seedA, seedB maphash.Seed
	digests      []digest
	slots        []int32 // state number plus one, 0 is empty; a power of two long
}

func newIndex() *index {
	return &index{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed(), slots: make([]int32, 1<<12)}
}

// find returns the number of the state with this key, and whether it had one already.
func (x *index) find(key []byte) (id int32, old bool) {
	d := digest{maphash.Bytes(x.seedA, key), maphash.Bytes(x.seedB, key)}
	if len(x.digests)*2 >= len(x.slots) {
		x.grow()
	}
	mask := uint64(len(x.slots) - 1)
	i := d.a & mask
	for ; x.slots[i] != 0; i = (i + 1) & mask {
		if id := x.slots[i] - 1; x.digests[id] == d {
			return id, true
		}
	}
	x.digests = append(x.digests, d)
	x.slots[i] = int32(len(x.digests))
	return int32(len(x.digests) - 1), false
}

func (x *index) grow() {
	big := make([]int32, 2*len(x.slots))
	mask := uint64(len(big) - 1)
	for id, d := range x.digests {
		i := d.a & mask
		for big[i] != 0 {
			i = (i + 1) & mask
		}
		big[i] = int32(id + 1)
	}
	x.slots = big
}
