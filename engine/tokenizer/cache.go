package tokenizer

import (
	"math/bits"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// Bounds of the cache: a slot per token of the vocabulary, at most as many as fill 2.5 MB. Words
// of natural text are short; what is longer, or more tokens, is merged each time.
const (
	cachedMost      = 1 << 15
	cachedBytesMost = 30
	cachedIDsMost   = 8
)

// cache remembers what pieces became: one piece per slot, the last one counts. Entries do not
// change once they are in it, so it may be used by several goroutines.
type cache struct {
	slots []atomic.Pointer[cached]
	shift int
}

// cached is 64 bytes: a cache line.
type cached struct {
	bytes, count uint8
	text         [cachedBytesMost]byte
	ids          [cachedIDsMost]int32
}

func newCache(vocab int) cache {
	width := bits.Len(uint(min(vocab, cachedMost) - 1))
	return cache{slots: make([]atomic.Pointer[cached], 1<<width), shift: 64 - width}
}

// slot returns where piece is if it is cached, nil if it is never.
func (c *cache) slot(piece string) *atomic.Pointer[cached] {
	if len(piece) > cachedBytesMost {
		return nil
	}
	return &c.slots[xxh3.HashString(piece)>>c.shift]
}

// is says whether e holds what piece became.
func (e *cached) is(piece string) bool {
	return e != nil && string(e.text[:e.bytes]) == piece
}

func (e *cached) tokens() []int32 { return e.ids[:e.count] }

// remember puts a piece that became ids into its slot, unless they are too many.
func remember(slot *atomic.Pointer[cached], piece string, ids []int32) {
	if len(ids) > cachedIDsMost {
		return
	}
	e := &cached{bytes: uint8(len(piece)), count: uint8(len(ids))}
	copy(e.text[:], piece)
	copy(e.ids[:], ids)
	slot.Store(e)
}
