package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"baton/core/room"
	"baton/engine/model"
)

// Bounds of a pool whose size nobody chose.
const (
	// memoryShare of what is available, for each worker on the machine: its weights, and what
	// else runs here, must fit beside its pool.
	memoryShare = 2
	// poolBytesMax keeps a default from taking a large machine; who wants more says so.
	poolBytesMax = 8 << 30
	// poolBytesUnknown is the default where the system does not say what is available.
	poolBytesUnknown = 1 << 30
	// pinnedShare of the pool at most is pinned at a time: what a few requests ask to be kept leaves
	// three quarters of the cache to all others.
	pinnedShare = 4
	// canaryBytesMax: with canaries the whole pool is written at the start, read at the end.
	canaryBytesMax = 256 << 20
)

// poolBlocks returns how many blocks the pool gets, of the bytes that are available (0: the
// system does not say). What is not there is refused here: the system would promise it, and kill
// somebody when it is used, or Go would die of it with a stack.
func poolBlocks(c Config, blockBytes, context int, available int64) (int, error) {
	s := c.Sizes
	if s.KVTokens > 0 {
		n := room.BlocksFor(s.KVTokens)
		if most := available / int64(blockBytes); available > 0 && int64(n) > most {
			return 0, fmt.Errorf("worker: --kv-tokens %d needs %s, %s are available; lower it to %d at most, or leave it out for a size that fits",
				s.KVTokens, gib(float64(n)*float64(blockBytes)), gib(float64(available)), most*room.BlockTokens)
		}
		return n, nil
	}
	bytes := min(available/memoryShare/int64(s.Workers), poolBytesMax)
	if available == 0 {
		bytes = poolBytesUnknown
	}
	if c.Canary {
		bytes = min(bytes, canaryBytesMax)
	}
	// More than every running room at full length, and as many waiting, is of no use.
	most := 2 * s.MaxRunning * room.BlocksFor(context)
	n := min(int(bytes/int64(blockBytes)), most, KVTokensMax/room.BlockTokens)
	if n < 1 {
		return 0, fmt.Errorf("worker: kv tokens: %d bytes of memory are available, half of it for %d workers holds no block of %d; free memory or choose a size",
			available, s.Workers, blockBytes)
	}
	return n, nil
}

// Together says whether n pools of s.KVTokens fit beside each other into what is available now,
// before a worker is started. Each worker looks at its own pool alone: the memory of another one
// is not taken before it is used.
func Together(n int, s Sizes, c *model.Config) error {
	return together(n, s, c.BlockBytes(kvType(s.KV)), availableBytes())
}

func together(n int, s Sizes, blockBytes int, available int64) error {
	if s.KVTokens == 0 || available == 0 || n < 2 {
		return nil
	}
	need := float64(n) * float64(room.BlocksFor(s.KVTokens)) * float64(blockBytes)
	if need <= float64(available) {
		return nil
	}
	return fmt.Errorf("worker: --kv-tokens %d for each of %d workers needs %s, %s are available; lower it to %d at most, or start fewer workers",
		s.KVTokens, n, gib(need), gib(float64(available)), available/int64(n)/int64(blockBytes)*room.BlockTokens)
}

func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }

// availableBytes is what this process may still allocate, 0 if the system does not say.
func availableBytes() int64 {
	free := int64(0)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
				kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				free = kib << 10
			}
		}
	}
	limit, errLimit := readInt("/sys/fs/cgroup/memory.max") // "max" when there is none
	used, errUsed := readInt("/sys/fs/cgroup/memory.current")
	if errLimit == nil && errUsed == nil {
		if left := max(limit-used, 0); free == 0 || left < free {
			free = left
		}
	}
	return free
}

func readInt(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// ErrCanary is returned by Close when a block changed while it was free.
var ErrCanary = errors.New("worker: a free block was written to")

// canaryByte fills free blocks: not zero, as unused rows are, and an odd pattern as floats.
const canaryByte = 0xA5

// canary watches the free blocks of a pool (W7). The loop owns it; nil watches nothing.
type canary struct {
	engine Engine
	want   []byte // one block of the pattern
	free   []bool // [blocks] holds the pattern
	hit    func(block int32, offset int)
	hits   int
}

func newCanary(e Engine, hit func(block int32, offset int)) *canary {
	c := &canary{engine: e, free: make([]bool, e.Blocks()), hit: hit}
	c.want = bytes.Repeat([]byte{canaryByte}, len(e.Block(0)))
	for i := range c.free {
		c.fill(int32(i))
	}
	return c
}

func (c *canary) fill(b int32) {
	copy(c.engine.Block(b), c.want)
	c.free[b] = true
}

// freed fills blocks that have just become free. One that was given out and never used must
// still hold its pattern.
func (c *canary) freed(blocks []int32) {
	if c == nil {
		return
	}
	for _, b := range blocks {
		c.check(b)
		c.fill(b)
	}
}

// used checks the blocks of a table at their first use.
func (c *canary) used(blocks []int32) {
	if c == nil {
		return
	}
	for _, b := range blocks {
		c.check(b)
		c.free[b] = false
	}
}

func (c *canary) check(b int32) {
	if !c.free[b] {
		return
	}
	if got := c.engine.Block(b); !bytes.Equal(got, c.want) {
		c.hits++
		at := 0
		for got[at] == canaryByte {
			at++
		}
		c.hit(b, at)
	}
}

// last checks every block that is free, at the end.
func (c *canary) last() error {
	if c == nil {
		return nil
	}
	for b := range c.free {
		c.check(int32(b))
	}
	if c.hits > 0 {
		return fmt.Errorf("%w: %d times", ErrCanary, c.hits)
	}
	return nil
}
