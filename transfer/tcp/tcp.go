package tcp

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"baton/transfer"
)

// The words of package transfer, under the names that callers of this plane use.
type (
	Identity       = transfer.Identity
	Chunk          = transfer.Chunk
	Write          = transfer.Write
	PrefillHandler = transfer.PrefillHandler
	DecodeHandler  = transfer.DecodeHandler
)

var (
	leUint64     = binary.LittleEndian.Uint64
	appendUint64 = binary.LittleEndian.AppendUint64
)

// counters is transfer.Stats while it counts.
type counters struct {
	linksRefused, sentBytes, placedBytes, scrapBytes, placedChunks, scrapChunks,
	sumErrors, wordsDropped, writesFailed, queueOverflows atomic.Int64
}

func (c *counters) stats(links int) transfer.Stats {
	return transfer.Stats{
		Links: int64(links), LinksRefused: c.linksRefused.Load(),
		SentBytes: c.sentBytes.Load(), PlacedBytes: c.placedBytes.Load(), ScrapBytes: c.scrapBytes.Load(),
		PlacedChunks: c.placedChunks.Load(), ScrapChunks: c.scrapChunks.Load(), SumErrors: c.sumErrors.Load(),
		WordsDropped: c.wordsDropped.Load(), WritesFailed: c.writesFailed.Load(), QueueOverflows: c.queueOverflows.Load(),
	}
}

// posted counts a control frame that did not go out.
func (c *counters) posted(ok, overflow bool) {
	if !ok {
		c.wordsDropped.Add(1)
	}
	if overflow {
		c.queueOverflows.Add(1)
	}
}

// failures answers writes that never reached a connection, from a goroutine of its own: Write
// may be called by whoever WriteDone waits for (T7).
type failures struct {
	mu      sync.Mutex
	more    sync.Cond
	queue   []failure // as long as the caller's writes that have no answer yet
	stopped bool
	wg      sync.WaitGroup
}

type failure struct {
	w   Write
	err error
}

func (f *failures) start(done func(Write, error)) {
	f.more.L = &f.mu
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for {
			f.mu.Lock()
			for len(f.queue) == 0 && !f.stopped {
				f.more.Wait()
			}
			batch := f.queue
			f.queue = nil
			f.mu.Unlock()
			if len(batch) == 0 {
				return
			}
			for _, x := range batch {
				done(x.w, x.err)
			}
		}
	}()
}

func (f *failures) add(w Write, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, failure{w, err})
	f.more.Signal()
}

// stop answers what is queued and ends the goroutine.
func (f *failures) stop() {
	f.mu.Lock()
	f.stopped = true
	f.more.Signal()
	f.mu.Unlock()
	f.wg.Wait()
}
