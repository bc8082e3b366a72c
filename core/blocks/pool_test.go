package blocks

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestABlockHasOneHolder takes, releases, quarantines and clears at random: no block is ever
// given out twice, and the counts are right all the time (B1, B2).
func TestABlockHasOneHolder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := New(64)
	holder := make([]int, 64) // 0 free, 1 held, 2 quarantined
	var held, apart [][]int32
	set := func(table []int32, from, to int) {
		for _, b := range table {
			if holder[b] != from {
				t.Fatalf("block %d is %d, want %d", b, holder[b], from)
			}
			holder[b] = to
		}
	}
	pick := func(from *[][]int32) []int32 {
		k := r.IntN(len(*from))
		table := (*from)[k]
		*from = slices.Delete(*from, k, k+1)
		return table
	}
	for range 50_000 {
		switch n := r.IntN(12); {
		case n < 5 && p.Available() > 0:
			table := p.Take(r.IntN(min(p.Available(), 9)) + 1)
			set(table, 0, 1)
			held = append(held, table)
		case n < 10 && len(held) > 0:
			table := pick(&held)
			set(table, 1, 0)
			p.Release(table)
		case n < 11 && len(held) > 0:
			table := pick(&held)
			set(table, 1, 2)
			p.Quarantine(table)
			apart = append(apart, table)
		case len(apart) > 0:
			table := pick(&apart)
			set(table, 2, 0)
			p.Clear(table)
		}
		want := Count{Total: 64}
		for _, h := range holder {
			*[]*int{&want.Free, &want.Held, &want.Quarantined}[h]++
		}
		if got := p.Count(); got != want {
			t.Fatalf("counts %+v, want %+v", got, want)
		}
	}
}

// TestADoubleReleasePanics, and everything else that a ledger of blocks must not swallow.
func TestADoubleReleasePanics(t *testing.T) {
	for name, wrong := range map[string]func(p *Pool, table []int32){
		"release twice":           func(p *Pool, table []int32) { p.Release(table); p.Release(table) },
		"release of a free block": func(p *Pool, _ []int32) { p.Release([]int32{3}) },
		"release of no block":     func(p *Pool, _ []int32) { p.Release([]int32{4}) },
		"release below zero":      func(p *Pool, _ []int32) { p.Release([]int32{-1}) },
		"release in quarantine":   func(p *Pool, table []int32) { p.Quarantine(table); p.Release(table) },
		"quarantine twice":        func(p *Pool, table []int32) { p.Quarantine(table); p.Quarantine(table) },
		"clear of a held block":   func(p *Pool, table []int32) { p.Clear(table) },
		"take of too many":        func(p *Pool, _ []int32) { p.Take(3) },
		"one block twice":         func(p *Pool, table []int32) { p.Release([]int32{table[0], table[0]}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := New(4)
			table := p.Take(2)
			defer func() {
				if recover() == nil {
					t.Error("nothing happened")
				}
			}()
			wrong(&p, table)
		})
	}
}

// TestACopyOfAPoolIsIndependent.
func TestACopyOfAPoolIsIndependent(t *testing.T) {
	p := New(4)
	table := p.Take(2)
	var c Pool
	p.CopyTo(&c)
	c.Release(table)
	c.Take(4)
	if p.Available() != 2 {
		t.Errorf("%d free in the original, want 2", p.Available())
	}
	p.Release(table)
}
