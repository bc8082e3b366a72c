package blocks

import "testing"

// TestCommonCountsTheBeginning: of chains of every length, alike for every number of keys.
func TestCommonCountsTheBeginning(t *testing.T) {
	for n := range 9 {
		for m := range 9 {
			for alike := range min(n, m) + 1 {
				a, b := make([]Key, n), make([]Key, m)
				for i := range a {
					a[i] = Key{byte(i), 1}
				}
				for i := range b {
					if b[i] = (Key{byte(i), 2}); i < alike {
						b[i] = a[i]
					}
				}
				if got := Common(a, b); got != alike {
					t.Fatalf("of %d and %d keys %d are alike, Common says %d", n, m, alike, got)
				}
			}
		}
	}
}
