package blocks

import (
	"slices"
	"testing"
	"time"
)

// fill takes blocks for a prompt, without looking for any, and publishes them.
func fill(p *Pool, prompt string) []int32 {
	table := p.Take(len(prompt))
	p.Publish(table, keysOf(prompt))
	return table
}

// TestASecondCopyStaysPrivate: two rooms fill the same prefix at the same time. The first copy
// is found; the release of the second is a use of the first.
func TestASecondCopyStaysPrivate(t *testing.T) {
	p := New(8)
	first, second, other := fill(&p, "ab"), fill(&p, "ab"), fill(&p, "c")
	p.Release(first)
	p.Release(other)
	if freed := p.Release(second); !slices.Equal(freed, second) {
		t.Errorf("of the second copy %v are free, want %v", freed, second)
	}
	p.Take(6) // five are free
	if n, _ := p.Find(keysOf("c")); n != 0 {
		t.Error("what was used last is evicted first")
	}
	if got := p.Match(keysOf("ab")); !slices.Equal(got, first) {
		t.Errorf("finds %v, want %v", got, first)
	}
}

// TestASecondCopyStepsIn: when the first copy is evicted while the second is held, the second is
// found after its release, and what stands behind it in the chain with it.
func TestASecondCopyStepsIn(t *testing.T) {
	p := New(3)
	first := fill(&p, "a")
	second := fill(&p, "ab")
	p.Release(first)
	p.Take(1)
	if n, _ := p.Find(keysOf("ab")); n != 0 {
		t.Errorf("finds %d blocks of a chain without its beginning", n)
	}
	if freed := p.Release(second); freed != nil {
		t.Errorf("%v are free, want none: they are cached", freed)
	}
	if got := p.Match(keysOf("abc")); !slices.Equal(got, second) {
		t.Errorf("finds %v, want %v", got, second)
	}
}

// TestWhatIsSharedAndQuarantined goes on for the others and is not reused before the proof.
func TestWhatIsSharedAndQuarantined(t *testing.T) {
	p := New(2)
	table := fill(&p, "ab")
	shared := p.Match(keysOf("a"))
	p.Quarantine(table)
	if n, _ := p.Find(keysOf("ab")); n != 0 || p.Available() != 0 {
		t.Errorf("%d blocks are found, %d free; want none", n, p.Available())
	}
	if freed := p.Release(shared); freed != nil || p.Count() != (Count{Total: 2, Quarantined: 2}) {
		t.Errorf("the last reader leaves %+v, and %v free", p.Count(), freed)
	}
	if freed := p.Clear(table); !slices.Equal(freed, table) || p.Count() != (Count{Total: 2, Free: 2}) {
		t.Errorf("the proof leaves %+v, and %v free", p.Count(), freed)
	}
}

// TestAPoisonedBlockPanics: what a ledger of shared blocks must not swallow.
func TestAPoisonedBlockPanics(t *testing.T) {
	for name, wrong := range map[string]func(p *Pool, table []int32){
		"write to a block with a key":   func(p *Pool, table []int32) { p.Own(table[:1]) },
		"write to a free block":         func(p *Pool, _ []int32) { p.Own([]int32{3}) },
		"write to a shared block":       func(p *Pool, _ []int32) { p.Own(p.Match(keysOf("a"))) },
		"publish of a free block":       func(p *Pool, _ []int32) { p.Publish([]int32{3}, keysOf("c")) },
		"publish under another key":     func(p *Pool, table []int32) { p.Publish(table[:1], keysOf("c")) },
		"publish without keys":          func(p *Pool, table []int32) { p.Publish(table, nil) },
		"a reference twice":             func(p *Pool, table []int32) { p.Release(table[:1]); p.Release(table[:1]) },
		"release of a cached block":     func(p *Pool, table []int32) { p.Release(table); p.Release(table) },
		"quarantine of a cached block":  func(p *Pool, table []int32) { p.Release(table); p.Quarantine(table) },
		"clear of a block that is held": func(p *Pool, table []int32) { p.Clear(table) },
	} {
		t.Run(name, func(t *testing.T) {
			p := New(4)
			table := fill(&p, "ab")
			defer func() {
				if recover() == nil {
					t.Error("nothing happened")
				}
			}()
			wrong(&p, table)
		})
	}
}

// TestKeysOfOneChain: keys whose first bits agree are told apart, and forgetting one leaves the
// others.
func TestKeysOfOneChain(t *testing.T) {
	p := New(3)
	keys := []Key{{8: 1}, {8: 2}, {8: 3}}
	table := p.Take(3)
	p.Publish(table, keys)
	p.Release(table[1:2])
	p.Take(1)
	for i, want := range []int{1, 0, 1} {
		if n, _ := p.Find(keys[i : i+1]); n != want {
			t.Errorf("key %d finds %d blocks, want %d", i, n, want)
		}
	}
}

// TestNothingAllocates: what a core asks in every round costs no memory.
func TestNothingAllocates(t *testing.T) {
	p := New(64)
	keys := keysOf("abcdefgh")
	p.Release(fill(&p, "abcdefgh"))
	table := p.Match(keys)
	if n := testing.AllocsPerRun(100, func() {
		p.Find(keys)
		p.Publish(table, keys)
		p.Available()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAPinOfACopyPinsTheFirst: of one prompt that two rooms filled the copy that is found is kept, and
// the end of its pin, not of the pool, is what ending costs.
func TestAPinOfACopyPinsTheFirst(t *testing.T) {
	p := New(8)
	first, second := fill(&p, "ab"), fill(&p, "ab")
	p.Release(first)
	p.Pin(second, time.Minute, 4)
	p.Release(second)
	p.Release(fill(&p, "cdefgh"))
	p.Take(6)
	if got := p.Match(keysOf("ab")); p.Pinned() != 2 || !slices.Equal(got, first) {
		t.Errorf("%d blocks are pinned and %v found, want 2 and %v", p.Pinned(), got, first)
	}
	p.Expire(time.Minute - 1)
	if p.Pinned() != 2 || p.PinnedAt(time.Minute) != 0 {
		t.Errorf("%d pins before the end and %d at it, want 2 and 0", p.Pinned(), p.PinnedAt(time.Minute))
	}
	if p.Expire(time.Minute); p.Pinned() != 0 {
		t.Errorf("%d pins after the end", p.Pinned())
	}
}

// BenchmarkExpire is one pin and its end in a pool of a million blocks.
func BenchmarkExpire(b *testing.B) {
	p := New(1 << 20)
	table := fill(&p, "abcd")
	now := time.Duration(0)
	for b.Loop() {
		p.Pin(table, now+1, 1<<18)
		now++
		p.Expire(now)
		p.PinnedAt(now)
	}
}
