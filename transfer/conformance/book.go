package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/room"
	"baton/transfer"
)

// patience is when a test that waits for an event gives up; it is no bound of any plane.
const patience = 60 * time.Second

// event is one call of a handler, or what a book saw itself.
type event struct {
	what     string // the handler's method, "prefill." or "decode." before it
	peer     int32
	boot     room.Boot
	conn     room.Conn
	chunk    transfer.Chunk
	prealloc room.Prealloc
	cancel   room.Cancel
	settled  room.Settled
	side     string
	err      error
}

// book keeps every event of a test in order and lets it wait for one.
type book struct {
	t      *testing.T
	mu     sync.Mutex
	more   sync.Cond
	events []event
	over   bool // patience is gone
}

func newBook(t *testing.T) *book {
	b := &book{t: t}
	b.more.L = &b.mu
	return b
}

func (b *book) add(e event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	b.more.Broadcast()
}

// await waits for n events that match and returns them.
func (b *book) await(n int, match func(event) bool) []event {
	b.t.Helper()
	late := time.AfterFunc(patience, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.over = true
		b.more.Broadcast()
	})
	defer late.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if found := b.matching(match); len(found) >= n {
			return found
		} else if b.over {
			b.t.Fatalf("%d of %d events came; all:\n%s", len(found), n, b.all())
		}
		b.more.Wait()
	}
}

func (b *book) matching(match func(event) bool) (found []event) {
	for _, e := range b.events {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// count is the number of events until now.
func (b *book) count(match func(event) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.matching(match))
}

func (b *book) all() string {
	var s strings.Builder
	for _, e := range b.events {
		fmt.Fprintf(&s, "  %s peer %d conn %d room %s chunk %d err %v\n", e.what, e.peer, e.conn, e.chunk.Room, e.chunk.Chunk, e.err)
	}
	return s.String()
}

func is(what string) func(event) bool { return func(e event) bool { return e.what == what } }

func ofChunk(what string, r room.ID, chunk int) func(event) bool {
	return func(e event) bool { return e.what == what && e.chunk.Room == r && e.chunk.Chunk == chunk }
}

// pool is memory with an owner for each block. Blocks without one hold the canary.
type pool struct {
	t     *testing.T
	bytes int
	mem   []byte
	mu    sync.Mutex
	free  []int32
}

const canary = 0xC5

func newPool(t *testing.T, blocks, blockBytes int) *pool {
	p := &pool{t: t, bytes: blockBytes, mem: bytes.Repeat([]byte{canary}, blocks*blockBytes)}
	for i := range blocks {
		p.free = append(p.free, int32(i))
	}
	return p
}

// Block makes pool a transfer.Memory.
func (p *pool) Block(i int32) []byte {
	return p.mem[int(i)*p.bytes : (int(i)+1)*p.bytes : (int(i)+1)*p.bytes]
}

// take gives n blocks away, oldest free first: a released block waits the shortest when the
// pool is nearly used up, so tests use small pools.
func (p *pool) take(n int) ([]int32, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > len(p.free) {
		return nil, false
	}
	got := append([]int32(nil), p.free[:n]...)
	p.free = p.free[n:]
	for _, i := range got {
		p.intact(i)
	}
	return got, true
}

// give takes blocks back and writes the canary into them at once.
func (p *pool) give(blocks []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range blocks {
		fill(p.Block(i), canary)
	}
	p.free = append(p.free, blocks...)
}

func (p *pool) intact(i int32) {
	for at, v := range p.Block(i) {
		if v != canary {
			p.t.Errorf("T1: block %d was written at byte %d after it was released", i, at)
			return
		}
	}
}

// verify checks that every block is free and untouched.
func (p *pool) verify() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.free {
		p.intact(i)
	}
	if total := len(p.mem) / p.bytes; len(p.free) != total {
		p.t.Errorf("T1: %d of %d blocks are free at the end", len(p.free), total)
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// stamp fills a block with bytes that no other block has.
func stamp(b []byte, seed uint64) {
	for i := range b {
		if i%8 == 0 {
			seed += 0x9e3779b97f4a7c15
		}
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		b[i] = byte(z >> (8 * (i % 8)))
	}
}
