package tcp

import (
	"encoding/binary"
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
