package room

import "time"

// Tombstone is what a core remembers of a room that ended.
type Tombstone struct {
	Room    ID
	Lease   Lease   // the lease that ended with it, zero if there was none
	Outcome Outcome // how it ended
	Chunks  int     // prefill: chunks of a success
	Began   time.Duration
	Ended   time.Duration
}

// Tombstones remembers the last TombstonesMax rooms that ended, oldest first. The zero value
// is empty and ready.
type Tombstones struct {
	list  []Tombstone // list[head:] are remembered
	head  int
	first uint32 // number of list[head], counted over the life of the table; it may wrap
	index Index  // room -> number
}

// Len is the number of rooms remembered.
func (t *Tombstones) Len() int { return len(t.list) - t.head }

// Find returns the tombstone of id or nil. It is valid until the next Add.
func (t *Tombstones) Find(id ID) *Tombstone {
	n, ok := t.index.Find(id)
	if !ok {
		return nil
	}
	return &t.list[t.head+int(n-t.first)]
}

// At returns the i-th oldest tombstone.
func (t *Tombstones) At(i int) *Tombstone { return &t.list[t.head+i] }

// Add remembers a room that is not remembered yet. If that is one too many, the oldest goes
// and is returned.
func (t *Tombstones) Add(s Tombstone) (gone Tombstone, full bool) {
	if t.Len() == TombstonesMax {
		gone, full = t.Drop(), true
	}
	t.index.Put(s.Room, t.first+uint32(t.Len()))
	t.list = append(t.list, s)
	return gone, full
}

// Drop forgets the oldest and returns it. There must be one.
func (t *Tombstones) Drop() Tombstone {
	s := t.list[t.head]
	t.index.Delete(s.Room)
	t.head++
	t.first++
	if 2*t.head >= len(t.list) {
		t.list = t.list[:copy(t.list, t.list[t.head:])]
		t.head = 0
	}
	return s
}

// CopyTo makes dst equal to t and reuses dst's memory.
func (t *Tombstones) CopyTo(dst *Tombstones) {
	dst.list = append(dst.list[:0], t.list[t.head:]...)
	dst.head, dst.first = 0, t.first
	t.index.CopyTo(&dst.index)
}
