package poolsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	pins  []uint8  // [blocks] pinned until then, by no clock but an order; 0: not; nil: nobody pins
	going []int32  // that are held behind the event at hand: if two were evicted in it, their order is not known
}

func newMemory(blocks int) memory {
	return memory{bytes: make([]string, blocks), used: make([]bool, blocks)}
}

// newPins is a memory in which pins are counted, if a room asks for one.
func newPins(blocks int, pins []uint8) memory {
	m := newMemory(blocks)
	if pins != nil {
		m.pins = make([]uint8, blocks)
	}
	return m
}

// pinOf is what a room asks for.
func pinOf(pins []uint8, id room.ID) time.Duration {
	if pins == nil {
		return 0
	}
	return time.Duration(pins[id-1])
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
	if m.pins != nil && evicted && m.pins[b] > 0 {
		for x := range m.used {
			if m.used[x] && !held(int32(x)) && m.pins[x] == 0 && m.bytes[x] != "" && !slices.Contains(m.going, int32(x)) {
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
		m.pins[b] = 0
	}
}

// pin notes that the beginning of a word is pinned until then: the blocks that are found under its
// keys, as far as the bound lets it. Whoever asks has filled the first of its table.
func (m *memory) pin(word string, table []int32, until uint8, most int, first func(prefix string, b int32) int32) (seen uint64) {
	for n := range min(len(word), len(table)) {
		if until == 0 {
			return 0
		}
		if m.bytes[table[n]] != word[:n+1] {
			return seen
		}
		b := first(word[:n+1], table[n])
		if m.pins[b] == 0 && m.pinned() == most {
			return seen
		}
		m.pins[b] = max(m.pins[b], until)
		if seen |= 1 << isPinned; b != table[n] {
			seen |= 1 << otherPinned
		}
	}
	return seen
}

// first finds the block that a key finds before an event, and what it finds first in it.
func (m *memory) first(before map[string]int32, found func(blocks.Key) (int32, bool)) func(prefix string, b int32) int32 {
	return func(prefix string, b int32) int32 {
		x, ok := before[prefix]
		if !ok {
			if x, ok = found(keyOf(prefix)); !ok || m.bytes[x] != prefix {
				x = b // it is the first, and may be evicted since
			}
			before[prefix] = x
		}
		return x
	}
}

// found lists what can be found of some words.
func (m *memory) found(words []string, found func(blocks.Key) (int32, bool)) map[string]int32 {
	if m.pins == nil {
		return nil
	}
	all := map[string]int32{}
	for _, word := range words {
		for n := range word {
			if b, ok := found(keyOf(word[:n+1])); ok {
				all[word[:n+1]] = b
			}
		}
	}
	return all
}

// pinned counts the pins.
func (m *memory) pinned() (n int) {
	for _, until := range m.pins {
		n += int(flag(until > 0))
	}
	return n
}

// over ends the pins that end then, or before, and says whether there was one.
func (m *memory) over(then uint8) (seen uint64) {
	for b, until := range m.pins {
		if until > 0 && until <= then {
			m.pins[b], seen = 0, 1<<pinOver
		}
	}
	return seen
}

// pinsEnd is the latest end of the pins of a world with rooms.
const pinsEnd = 2

// ends lists when pins could be found to be over.
func (m *memory) ends(dst []Event) []Event {
	for then := range uint8(pinsEnd) {
		if slices.Contains(m.pins, then+1) {
			dst = append(dst, Event{Kind: Over, Chunk: int32(then + 1)})
		}
	}
	return dst
}

// checkedPins compares the pool's count of pins with the world's.
func (m *memory) checkedPins(n int) error {
	if n != m.pinned() {
		return fmt.Errorf("PIN: the pool says that %d blocks are pinned, %d are", n, m.pinned())
	}
	return nil
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
