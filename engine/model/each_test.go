package model

import (
	"sync/atomic"
	"testing"

	"baton/engine/recall"
)

// TestEachCallsForAll: once for each, with threads that no two calls have at a time, and without
// memory of its own.
func TestEachCallsForAll(t *testing.T) {
	file := recall.Open()
	m, err := Open(file, Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	kv, err := m.NewKV(1)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	r := m.NewRunner(kv)
	var calls [100]atomic.Int32
	var busy [3]atomic.Bool
	f := func(i, thread int) {
		if busy[thread].Swap(true) {
			t.Error("two calls have one thread at a time")
		}
		calls[i].Add(1)
		busy[thread].Store(false)
	}
	r.Each(0, f)
	r.Each(1, f)
	r.Each(len(calls), f)
	if n := testing.AllocsPerRun(20, func() { r.Each(len(calls), f) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	r.Close()
	r.Each(2, f)
	for i := range calls {
		want := int32(22)
		if i < 2 {
			want++
		}
		if i == 0 {
			want++
		}
		if got := calls[i].Load(); got != want {
			t.Fatalf("%d was called %d times, want %d", i, got, want)
		}
	}
}
