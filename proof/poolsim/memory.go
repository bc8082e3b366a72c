package poolsim

import (
	"fmt"
	"slices"
	"strings"

	"baton/core/blocks"
	"baton/core/room"
)

// keyOf is the key of a prefix: its letters, so that charts can be read and no two are equal.
func keyOf(prefix string) (k blocks.Key) {
	copy(k[:], prefix)
	return k
}

func keysOf(prompt string) []blocks.Key {
	keys := make([]blocks.Key, len(prompt))
	for i := range keys {
		keys[i] = keyOf(prompt[:i+1])
	}
	return keys
}

// memory is what the blocks of a pool hold, and what the world knows of their use.
type memory struct {
	bytes []string // [blocks] the prefix computed into it, "" for nothing known
	used  []bool   // [blocks] held or cached: given out, and not free or quarantined since
	pins  []bool   // [blocks] pinned; nil: nobody pins
	going []int32  // that are held behind the event at hand: if two were evicted in it, their order is not known
}

func newMemory(blocks int) memory {
	return memory{bytes: make([]string, blocks), used: make([]bool, blocks)}
}

func (m *memory) copyTo(dst *memory) {
	dst.bytes = append(dst.bytes[:0], m.bytes...)
	dst.used = append(dst.used[:0], m.used...)
	dst.pins = append(dst.pins[:0], m.pins...)
}

// holds says whether the first n blocks of a table hold a prompt.
func (m *memory) holds(prompt string, table []int32, n int) error {
	for i, b := range table[:n] {
		if want := prompt[:i+1]; m.bytes[b] != want {
			return fmt.Errorf("POISON: block %d is read as %q and holds %q", b, want, m.bytes[b])
		}
	}
	return nil
}

// lacks says that a table of a prompt does not hold all yet that another prompt begins with, too.
func (m *memory) lacks(prompt string, table []int32, other string) bool {
	for n := 0; n < min(len(prompt), len(other)) && prompt[n] == other[n]; n++ {
		if n >= len(table) || m.bytes[table[n]] != prompt[:n+1] {
			return true
		}
	}
	return false
}

// appendHolds appends for each block of a table whether it holds the prompt.
func (m *memory) appendHolds(b []byte, prompt string, table []int32) []byte {
	b = append(b, byte(len(table)))
	for n, x := range table {
		b = append(b, flag(n < len(prompt) && m.bytes[x] == prompt[:min(n+1, len(prompt))]))
	}
	return b
}

// begin begins a room's part of a step: what it writes to holds nothing known until it is home.
func (m *memory) begin(id room.ID, list []int32, users func(b int32) int, busy func(b int32) bool) error {
	for _, b := range list {
		if users(b) != 1 || busy(b) {
			return fmt.Errorf("OWN: room %d writes to block %d, which others use", id, b)
		}
		m.bytes[b] = ""
	}
	return nil
}

// compute is what a step leaves in the blocks that it filled, from one token of a table to
// another, and says whether it made a second copy of what can be found.
func (m *memory) compute(prompt string, table []int32, from, to int32, found func(blocks.Key) (int32, bool)) (private bool) {
	for n := int(from) / room.BlockTokens; n < min(int(to)/room.BlockTokens, len(prompt)); n++ {
		m.fill(prompt, table, n)
		if b, ok := found(keyOf(prompt[:n+1])); ok && b != table[n] {
			private = true
		}
	}
	return private
}

// fill is what a computation leaves in block n of a table: the prefix, if what it read was the
// prefix before it.
func (m *memory) fill(prompt string, table []int32, n int) {
	m.bytes[table[n]] = prompt[:n+1]
	if m.holds(prompt, table, n) != nil {
		m.bytes[table[n]] = ""
	}
}

// give notes that a fresh block was given out. If it was cached until now, nothing cached may
// stand behind it in a chain.
func (m *memory) give(b int32, held func(b int32) bool) (evicted bool, err error) {
	evicted = m.used[b]
	prefix := m.bytes[b]
	m.used[b], m.bytes[b] = true, ""
	if m.pins != nil && evicted && m.pins[b] {
		for x := range m.used {
			if m.used[x] && !held(int32(x)) && !m.pins[x] {
				return true, fmt.Errorf("PIN: block %d is pinned and evicted, and block %d is cached and is not", b, x)
			}
		}
	}
	m.free(b)
	if !evicted || prefix == "" {
		return evicted, nil
	}
	for x, longer := range m.bytes {
		if m.used[x] && !held(int32(x)) && !slices.Contains(m.going, int32(x)) && strings.HasPrefix(longer, prefix) {
			return true, fmt.Errorf("ORDER: block %d with %q is evicted before block %d with %q", b, prefix, x, longer)
		}
	}
	return true, nil
}

// free notes that what was in a block is gone, and its pin.
func (m *memory) free(b int32) {
	if m.pins != nil {
		m.pins[b] = false
	}
}

// enters notes the blocks that a room gets behind the old ones of its table: found ones were there
// before, the others are fresh, and nobody may be busy in them. It returns what that shows.
func (m *memory) enters(id room.ID, table []int32, old, found int, held, busy func(b int32) bool) (seen uint64, err error) {
	for i, b := range table[old:] {
		if old+i < found {
			if !m.used[b] {
				return 0, fmt.Errorf("QUIET: room %d finds block %d, which is free", id, b)
			}
			if seen |= 1 << hit; held(b) {
				seen |= 1 << shared
			}
			continue
		}
		if held(b) || busy(b) {
			return 0, fmt.Errorf("QUIET: block %d is given to room %d while somebody uses it", b, id)
		}
		evicted, err := m.give(b, held)
		if err != nil {
			return 0, err
		}
		if evicted {
			seen |= 1 << wasEvicted
		}
	}
	return seen, nil
}

// checked compares what can be found with what is there, and the pool's count with the world's.
func (m *memory) checked(prompts []string, n blocks.Count, found func(blocks.Key) (int32, bool), held func(b int32) bool) error {
	holding, cached := 0, 0
	for b := range m.used {
		switch {
		case held(int32(b)):
			holding++
		case m.used[b]:
			cached++
		}
	}
	if n.Held != holding || n.Cached != cached || n.Total != n.Free+n.Cached+n.Held+n.Quarantined {
		return fmt.Errorf("RELEASE: the pool counts %+v; %d blocks are held and %d cached", n, holding, cached)
	}
	for _, p := range prompts {
		for i := range p {
			b, ok := found(keyOf(p[:i+1]))
			switch {
			case ok && m.bytes[b] != p[:i+1]:
				return fmt.Errorf("POISON: block %d is found as %q and holds %q", b, p[:i+1], m.bytes[b])
			case ok && !m.used[b]:
				return fmt.Errorf("QUIET: block %d is found as %q and is not in use", b, p[:i+1])
			}
		}
	}
	return nil
}
