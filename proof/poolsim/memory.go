package poolsim

import (
	"fmt"
	"strings"

	"baton/core/blocks"
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
}

func newMemory(blocks int) memory { return memory{make([]string, blocks), make([]bool, blocks)} }

func (m *memory) copyTo(dst *memory) {
	dst.bytes = append(dst.bytes[:0], m.bytes...)
	dst.used = append(dst.used[:0], m.used...)
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
	if !evicted || prefix == "" {
		return evicted, nil
	}
	for x, longer := range m.bytes {
		if m.used[x] && !held(int32(x)) && strings.HasPrefix(longer, prefix) {
			return true, fmt.Errorf("ORDER: block %d with %q is evicted before block %d with %q", b, prefix, x, longer)
		}
	}
	return true, nil
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
