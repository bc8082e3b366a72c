package sched

import (
	"testing"

	"baton/core/room"
)

// TestARoomIsLetInWithBlocksAhead is S6's measure: never beyond the output, all of it for 0.
func TestARoomIsLetInWithBlocksAhead(t *testing.T) {
	for _, c := range []struct{ tokens, made, most, ahead, want int }{
		{15, 0, 100, 1, 1}, {16, 0, 100, 1, 2}, {15, 0, 100, 0, 8}, {15, 0, 100, 1000, 8}, {15, 0, 100, 17, 2},
		{15, 1, 100, 1, 2}, {15, 99, 100, 64, 8}, {15, 100, 100, 1, 8}, {1, 0, 1, 1, 1},
	} {
		if got := Blocks(c.tokens, c.made, c.most, c.ahead); got != c.want {
			t.Errorf("%d tokens, %d of %d made, %d ahead: %d blocks, want %d", c.tokens, c.made, c.most, c.ahead, got, c.want)
		}
	}
}

// TestOnlyYoungerOnesYield is S7 and S8 for every line of up to five rooms, of which each can give
// its blocks back, cannot now, or leaves, and each that can once needs a block.
func TestOnlyYoungerOnesYield(t *testing.T) {
	const can, cannot, leaves, kinds = 0, 1, 2, 3
	for n, lines := 1, kinds; n <= 5; n, lines = n+1, lines*kinds {
		for line := range lines {
			var kind [5]int
			for i, x := 0, line; i < n; i, x = i+1, x/kinds {
				kind[i] = x % kinds
			}
			for of := range n {
				if kind[of] != can { // whoever needs a block generates
					continue
				}
				y := NewYield(int32(of))
				younger, soon, older := room.None, false, false
				for i := range n {
					if kind[i] == leaves {
						y.Leaves()
					} else {
						y.Holds(int32(i), kind[i] == can)
					}
					switch {
					case i > of && kind[i] == can:
						younger = int32(i)
					case kind[i] == leaves || i > of:
						soon = true
					case i < of:
						older = older || kind[i] == can
					}
				}
				want := younger
				if younger == room.None && older && !soon {
					want = int32(of)
				}
				if got := y.Slot(); got != want {
					t.Fatalf("room %d of %v needs a block: %d yields, want %d", of, kind[:n], got, want)
				}
			}
		}
	}
}
