package room

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestIndexIsAMap compares the table with a map over random work on few rooms, so that chains
// collide and holes are filled.
func TestIndexIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x Index
	model := map[ID]uint32{}
	for i := range 200_000 {
		id := ID(r.Uint64N(40) + 1)
		if i%3 == 0 {
			id = ID(r.Uint64N(40)+1) << 40 // only high bits differ
		}
		switch r.IntN(3) {
		case 0:
			x.Delete(id)
			delete(model, id)
		default:
			x.Put(id, uint32(i))
			model[id] = uint32(i)
		}
		if x.Len() != len(model) {
			t.Fatalf("%d entries, want %d", x.Len(), len(model))
		}
		probe := ID(r.Uint64N(40) + 1)
		got, ok := x.Find(probe)
		if want, there := model[probe]; ok != there || ok && got != want {
			t.Fatalf("room %d: %d %v, want %d %v", probe, got, ok, want, there)
		}
	}
	var c Index
	x.CopyTo(&c)
	for id, want := range model {
		if got, ok := c.Find(id); !ok || got != want {
			t.Fatalf("copy: room %d is %d %v, want %d", id, got, ok, want)
		}
	}
}

// TestListKeepsArrivalOrder compares the list with a slice.
func TestListKeepsArrivalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	l := NewList()
	var model []ID
	of := map[ID]int32{}
	most := 0
	for i := range 50_000 {
		if len(model) < 20 && r.IntN(2) == 0 {
			id := ID(i + 1)
			of[id] = l.Add(id)
			model = append(model, id)
			most = max(most, len(model))
		} else if len(model) > 0 {
			k := r.IntN(len(model))
			l.Remove(model[k], of[model[k]])
			model = append(model[:k:k], model[k+1:]...)
		}
		at := l.First()
		for _, id := range model {
			if at != of[id] || l.Find(id) != at || int(at) >= most {
				t.Fatalf("room %d stands in slot %d, found in %d, want %d below %d", id, at, l.Find(id), of[id], most)
			}
			at = l.Next(at)
		}
		if at != None || l.Len() != len(model) {
			t.Fatalf("list goes on after %d rooms", len(model))
		}
	}
}

// TestTombstonesForgetTheOldest fills the table twice over.
func TestTombstonesForgetTheOldest(t *testing.T) {
	var ts Tombstones
	for i := range 2 * TombstonesMax {
		gone, full := ts.Add(Tombstone{Room: ID(i + 1), Chunks: i})
		if full != (i >= TombstonesMax) || full && gone.Room != ID(i+1-TombstonesMax) {
			t.Fatalf("room %d pushes out %d, %v", i+1, gone.Room, full)
		}
	}
	for i := range 2 * TombstonesMax {
		s := ts.Find(ID(i + 1))
		if (s != nil) != (i >= TombstonesMax) || s != nil && s.Chunks != i {
			t.Fatalf("room %d: %+v", i+1, s)
		}
	}
	for ts.Len() > 0 {
		want := ts.At(0).Room
		if got := ts.Drop(); got.Room != want || ts.Find(want) != nil {
			t.Fatalf("dropped %d, want %d", got.Room, want)
		}
	}
}

// TestSoonestIsTheLeast arms, moves and disarms at random and compares with a full look.
func TestSoonestIsTheLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	armed := map[Timer]time.Duration{}
	all := func(yield func(time.Duration, Timer) bool) {
		for timer, at := range armed {
			if !yield(at, timer) {
				return
			}
		}
	}
	var s Soonest
	for range 20_000 {
		timer := Timer{DeadlineTimer, ID(r.IntN(8) + 1)}
		s.Disarmed(timer)
		delete(armed, timer)
		if r.IntN(3) > 0 {
			at := time.Duration(r.IntN(50))
			armed[timer] = at
			s.Armed(at, timer)
		}
		if r.IntN(4) > 0 {
			continue
		}
		at, got, ok := s.Get(all)
		if ok != (len(armed) > 0) || ok && armed[got] != at {
			t.Fatalf("%s at %v, %v, of %v", got, at, ok, armed)
		}
		for timer, other := range armed {
			if other < at {
				t.Fatalf("%s at %v is not sooner than %s at %v", got, at, timer, other)
			}
		}
	}
}
