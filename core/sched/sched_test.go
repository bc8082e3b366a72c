package sched

import (
	"testing"

	"baton/core/room"
)

// TestNobodyOvertakes is S1: after the first no, everybody gets a no.
func TestNobodyOvertakes(t *testing.T) {
	l := NewLine(10)
	for i, want := range []struct {
		n  int
		ok bool
	}{{6, true}, {4, true}, {1, false}, {0, false}} {
		if l.Take(want.n) != want.ok {
			t.Errorf("request %d for %d: want %v", i, want.n, want.ok)
		}
	}
	l = NewLine(10)
	if l.Take(11) || l.Take(1) || !l.Closed() {
		t.Error("a small one overtakes a large one")
	}
}

// TestChunksAreWholeBlocks is S2 and S3 for every prompt, budget and number of generating
// rooms in a small range: chunks are whole blocks or the last, stay in the budget unless they
// are the first block of the first prompt, and every prompt that is served alone gets done.
func TestChunksAreWholeBlocks(t *testing.T) {
	for total := int32(1); total <= 100; total++ {
		for budget := room.BlockTokens; budget <= 80; budget += room.BlockTokens {
			for rooms := range 40 {
				var from int32
				for steps := 0; from < total; steps++ {
					b := NewBudget(budget)
					for range rooms {
						b.Decode()
					}
					left := int32(budget - rooms)
					to := b.Chunk(from, total)
					switch {
					case to <= from || to > total:
						t.Fatalf("%d of %d with %d: chunk ends at %d", from, total, budget, to)
					case to != total && to%room.BlockTokens != 0:
						t.Fatalf("%d of %d with %d: %d is inside a block", from, total, budget, to)
					case to-from > max(left, room.BlockTokens):
						t.Fatalf("%d of %d with %d left: chunk to %d", from, total, left, to)
					}
					b.Spend(to - from)
					if next := b.Chunk(0, 100); next > max(0, left-(to-from)) {
						t.Fatalf("the second prompt gets %d of %d tokens left", next, left-(to-from))
					}
					from = to
				}
			}
		}
	}
}

// TestAFullStepIsFull: Full says so exactly when no further chunk would fit.
func TestAFullStepIsFull(t *testing.T) {
	b := NewBudget(32)
	if b.Full() {
		t.Error("an empty step is full")
	}
	b.Spend(16)
	if b.Full() || b.Chunk(0, 64) != 16 {
		t.Error("half a step is full")
	}
	b.Spend(16)
	if !b.Full() || b.Chunk(0, 64) != 0 {
		t.Error("a full step is not full")
	}
}
