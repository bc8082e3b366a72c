package tcp

import (
	"fmt"
	"io"
	"sync"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// sender writes the data connection of a prefill end: chunks in the order of Write, never more
// payload than decode granted, pings when there is nothing.
type sender struct {
	p     *Prefill
	l     *link
	v     *vector
	wake  chan struct{} // a write was queued or credit came
	head  []byte        // header, sums and side data of the chunk
	spans [][]byte
	armed time.Time // when the write deadline was last moved
	timer *time.Timer

	mu      sync.Mutex
	queue   []Write
	closed  bool   // no write is accepted any more
	granted uint64 // payload bytes that may have been sent since the start
	sent    uint64 // payload bytes that were
}

func newSender(p *Prefill, l *link, window uint64) (*sender, error) {
	v, err := newVector(l.dat)
	if err != nil {
		return nil, err
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &sender{p: p, l: l, v: v, wake: make(chan struct{}, 1), granted: window, timer: t, spans: make([][]byte, 0, iovMax)}, nil
}

// enqueue accepts a write, or says why not; it never waits.
func (s *sender) enqueue(w Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("tcp: connection %d has ended: %w", w.Conn, transfer.ErrNoLink)
	case len(s.queue) >= transfer.WritesMax:
		return fmt.Errorf("tcp: %d writes wait on connection %d: %w", len(s.queue), w.Conn, transfer.ErrTooMany)
	}
	s.queue = append(s.queue, w)
	s.nudge()
	return nil
}

func (s *sender) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drop takes out the writes of a lease that was given up before they were begun. One that was
// begun goes on to its end, as the peer counts its bytes.
func (s *sender) drop(x room.Cancel) (out []Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := s.queue[:0]
	for _, w := range s.queue {
		if w.Room == x.Room && w.Lease == x.Lease {
			out = append(out, w)
		} else {
			keep = append(keep, w)
		}
	}
	clear(s.queue[len(keep):])
	s.queue = keep
	return out
}

// grant takes what decode says of its credit. Decode cannot have consumed what was not sent.
func (s *sender) grant(g wire.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.Conn != s.l.conn || g.Total > s.sent+transfer.WindowMax {
		return fmt.Errorf("tcp: grant of %d bytes for connection %d; %d bytes were sent on %d: %w", g.Total, g.Conn, s.sent, s.l.conn, transfer.ErrProtocol)
	}
	s.granted = max(s.granted, g.Total)
	s.nudge()
	return nil
}

// run sends until the link ends, then fails what is left. Each accepted write ends here, or in
// drop, in its one WriteDone.
func (s *sender) run() error {
	ping := wire.AppendHeader(nil, wire.Header{Ping: true})
	for {
		w, ok := s.next()
		var err error
		if ok {
			err = s.chunk(w)
			s.p.written(w, err)
		} else {
			switch s.wait(s.l.bounds.Silence / pingsPerSilence) {
			case waitEnd:
				err = s.l.cause()
			case waitTimeout:
				err = s.all([][]byte{ping})
			}
		}
		if err != nil {
			s.l.fail(named(err))
			s.close()
			return nil
		}
	}
}

func (s *sender) next() (w Write, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return w, false
	}
	w = s.queue[0]
	s.queue[0] = Write{}
	s.queue = s.queue[1:]
	return w, true
}

func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	left := s.queue
	s.queue = nil
	s.mu.Unlock()
	for _, w := range left {
		s.p.written(w, s.l.cause())
	}
}

type waited uint8

const (
	waitWoken waited = iota
	waitTimeout
	waitEnd
)

func (s *sender) wait(d time.Duration) waited {
	s.timer.Reset(d)
	defer s.timer.Stop()
	select {
	case <-s.l.done:
		return waitEnd
	case <-s.wake:
		return waitWoken
	case <-s.timer.C:
		return waitTimeout
	}
}

// credit waits until payload may be sent, and says how much of want.
func (s *sender) credit(want int) (int, error) {
	since := time.Now()
	for {
		s.mu.Lock()
		n := int(min(s.granted-s.sent, uint64(want)))
		s.mu.Unlock()
		if n > 0 || want == 0 {
			return n, nil
		}
		left := s.l.bounds.Silence - time.Since(since)
		if left <= 0 {
			return 0, fmt.Errorf("tcp: no credit came: %w", transfer.ErrSilent)
		}
		if s.wait(left) == waitEnd {
			return 0, s.l.cause()
		}
	}
}

// chunk sends one chunk. When it has returned nothing reads its blocks.
func (s *sender) chunk(w Write) error {
	blockBytes := s.begin(w)
	total := blockBytes * len(w.Blocks)
	head := s.head
	for n := 0; n < total || len(head) > 0; {
		may, err := s.credit(min(total-n, writeBytes))
		if err != nil {
			return err
		}
		s.spans = append(s.spans[:0], head)
		for at := n; at < n+may && len(s.spans) < iovMax; {
			b := s.p.mem.Block(w.Blocks[at/blockBytes])[at%blockBytes:]
			b = b[:min(len(b), n+may-at)]
			s.spans = append(s.spans, b)
			at += len(b)
		}
		put, err := s.put(s.spans)
		if err != nil {
			return err
		}
		h := min(put, len(head))
		head, put = head[h:], put-h
		n += put
		s.mu.Lock()
		s.sent += uint64(put)
		s.mu.Unlock()
		s.p.count.sentBytes.Add(int64(put))
	}
	return nil
}

// put writes some of spans.
func (s *sender) put(spans [][]byte) (int, error) {
	if now := time.Now(); now.Sub(s.armed) >= s.l.bounds.Silence/armsPerSilence {
		s.armed = now
		if err := s.l.dat.SetWriteDeadline(now.Add(s.l.bounds.Silence)); err != nil {
			return 0, err
		}
	}
	return s.v.writev(spans)
}

func (s *sender) all(spans [][]byte) error {
	for b := spans[0]; len(b) > 0; {
		n, err := s.put([][]byte{b})
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// begin builds header, sums and side data in s.head and returns the length of a block.
func (s *sender) begin(w Write) int {
	h := wire.Header{
		Chunk:      Chunk{Room: w.Room, Lease: w.Lease, Conn: w.Conn, Chunk: w.Chunk, FirstBlock: w.FirstBlock, N: len(w.Blocks), Last: w.Last},
		BlockBytes: s.p.blockBytes, SideBytes: len(w.Side),
	}
	s.head = append(s.head[:0], make([]byte, wire.HeaderBytes)...)
	for i, b := range w.Blocks {
		sum := uint64(0)
		if w.Sums != nil {
			sum = w.Sums[i]
		} else {
			sum = transfer.Sum(s.p.mem.Block(b))
		}
		s.head = appendUint64(s.head, sum)
	}
	s.head = append(s.head, w.Side...)
	h.Trailer = wire.SumCRC(s.head[wire.HeaderBytes:])
	wire.AppendHeader(s.head[:0], h)
	return s.p.blockBytes
}

// readPings is all that decode sends on the data connection.
func (s *sender) readPings() error {
	var b [wire.HeaderBytes]byte
	for {
		if err := s.l.dat.SetReadDeadline(time.Now().Add(s.l.bounds.Silence)); err != nil {
			return err
		}
		if _, err := io.ReadFull(s.l.dat, b[:]); err != nil {
			return err
		}
		h, err := wire.ParseHeader(b[:])
		if err != nil {
			return err
		}
		if !h.Ping {
			return fmt.Errorf("tcp: decode sends chunks: %w", transfer.ErrProtocol)
		}
	}
}
