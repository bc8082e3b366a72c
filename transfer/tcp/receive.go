package tcp

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// armsPerSilence is how often within the silence bound a busy reader or writer moves its
// deadline: setting it for each piece would cost as much as the system call.
const armsPerSilence = 8

// errLeave says that the receiver has to leave the blocks that it is in.
var errLeave = errors.New("tcp: the receiver was told to leave")

// errWrongSum says that a block is not what prefill sent.
var errWrongSum = errors.New("tcp: block with a wrong sum")

// receiver reads the data connection of a decode end. It is the only one that ever writes into
// blocks (T1), one piece at a time, and it can be told at any moment to leave them: revoke sets
// leave and wakes it when it waits for the socket. While it waits it is in no system call, so
// it leaves at once, also when the peer sends nothing.
type receiver struct {
	d          *Decode
	l          *link
	v          *vector
	blockBytes int
	head       [wire.HeaderBytes]byte
	trail      []byte // sums and side data of the chunk
	scratch    []byte // for what nobody wants
	spans      [][]byte
	armed      time.Time // when the read deadline was last moved
	leave      atomic.Bool

	mu     sync.Mutex // guards the deadline against revoke, and:
	inside bool       // between Arrived and Placed or Off
	room   room.ID
	lease  room.Lease
}

func newReceiver(d *Decode, l *link) (*receiver, error) {
	v, err := newVector(l.dat)
	if err != nil {
		return nil, err
	}
	return &receiver{d: d, l: l, v: v, blockBytes: len(d.mem.Block(0)), scratch: make([]byte, pieceBytes), spans: make([][]byte, 0, iovMax)}, nil
}

// run reads chunks until the connection ends. No block is touched after it returned.
func (r *receiver) run() error {
	for {
		if err := r.fill(r.head[:]); err != nil {
			return err
		}
		h, err := wire.ParseHeader(r.head[:])
		if err != nil {
			return err
		}
		if h.Ping {
			continue
		}
		if err := r.check(h); err != nil {
			return err
		}
		// Bounded by the header's limits: 96 KiB at most (T9).
		if n := h.TrailerBytes(); cap(r.trail) < n {
			r.trail = make([]byte, n)
		}
		r.trail = r.trail[:h.TrailerBytes()]
		if err := r.fill(r.trail); err != nil {
			return err
		}
		if got := wire.SumCRC(r.trail); got != h.Trailer {
			return fmt.Errorf("tcp: sums and side data have checksum %08x, header says %08x: %w", got, h.Trailer, transfer.ErrProtocol)
		}
		if err := r.chunk(h); err != nil {
			return err
		}
	}
}

func (r *receiver) check(h wire.Header) error {
	switch {
	case h.Conn != r.l.conn:
		return fmt.Errorf("tcp: chunk for connection %d came over %d: %w", h.Conn, r.l.conn, transfer.ErrProtocol)
	case h.Lease.Boot != r.d.id.Boot:
		return refuse(transfer.ReasonBoot, "chunk under lease %s, this is boot %s", h.Lease, r.d.id.Boot)
	case h.BlockBytes != r.blockBytes:
		return fmt.Errorf("tcp: blocks of %d bytes, want %d: %w", h.BlockBytes, r.blockBytes, transfer.ErrProtocol)
	}
	return nil
}

// chunk asks where one chunk goes and puts it there, or throws it away.
func (r *receiver) chunk(h wire.Header) error {
	c := h.Chunk
	r.enter(c)
	defer r.exit()
	n := 0
	blocks, ok := r.d.h.Arrived(c)
	if ok {
		if len(blocks) != c.N {
			panic(fmt.Sprintf("assertion: %d blocks for chunk %d of room %s, which has %d", len(blocks), c.Chunk, c.Room, c.N))
		}
		var err error
		n, err = r.place(h, blocks)
		switch {
		case err == nil:
			r.d.count.placedChunks.Add(1)
			r.d.count.placedBytes.Add(int64(n))
			r.d.h.Placed(c, r.trail[wire.SumBytes*c.N:])
			return nil
		case errors.Is(err, errWrongSum):
			r.d.count.sumErrors.Add(1)
			r.d.h.Off(c)
			r.d.h.Refused(c)
		case errors.Is(err, errLeave):
			r.d.h.Off(c)
		default:
			r.d.h.Off(c)
			return err
		}
	}
	r.exit() // nobody needs to wake the reading of scrap
	r.d.count.scrapChunks.Add(1)
	r.d.count.scrapBytes.Add(int64(h.PayloadBytes()))
	return r.scrap(h.PayloadBytes() - n)
}

// enter is called before Arrived, so that a Cancel that follows the answer finds the receiver.
func (r *receiver) enter(c Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside, r.room, r.lease = true, c.Room, c.Lease
	r.armed = time.Time{}
}

// exit forgets a revoke; the next arm sets the deadline anew.
func (r *receiver) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = false
	r.leave.Store(false)
	r.armed = time.Time{}
}

// revoke makes the receiver leave blocks of this room and lease, if it is in any.
func (r *receiver) revoke(x room.Cancel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside && r.room == x.Room && r.lease == x.Lease {
		r.leave.Store(true)
		_ = r.l.dat.SetReadDeadline(past)
	}
}

// arm moves the read deadline when it is time; errLeave when the receiver has to leave.
func (r *receiver) arm() error {
	if r.leave.Load() {
		return errLeave
	}
	now := time.Now()
	if now.Sub(r.armed) < r.l.bounds.Silence/armsPerSilence {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leave.Load() {
		return errLeave
	}
	r.armed = now
	return r.l.dat.SetReadDeadline(now.Add(r.l.bounds.Silence))
}

// place reads the payload into blocks and checks each block when its last byte is there, while
// it is in the cache. It returns how many bytes it read; when it has returned it is off.
func (r *receiver) place(h wire.Header, blocks []int32) (n int, err error) {
	total := h.PayloadBytes()
	verified := 0
	for n < total {
		if err := r.arm(); err != nil {
			return n, err
		}
		got, err := r.v.readv(r.piece(blocks, n, total))
		if err != nil {
			if r.leave.Load() {
				err = errLeave // it was woken, the connection is well
			}
			return n, err
		}
		n += got
		r.l.consumed(got)
		for ; (verified+1)*r.blockBytes <= n && !r.d.blind; verified++ {
			want := leUint64(r.trail[wire.SumBytes*verified:])
			if transfer.Sum(r.d.mem.Block(blocks[verified])) != want {
				return n, errWrongSum
			}
		}
	}
	return n, nil
}

// piece gives the spans of the next pieceBytes at most from byte n of the payload.
func (r *receiver) piece(blocks []int32, n, total int) [][]byte {
	r.spans = r.spans[:0]
	for left := min(pieceBytes, total-n); left > 0 && len(r.spans) < iovMax; {
		b := r.d.mem.Block(blocks[n/r.blockBytes])[n%r.blockBytes:]
		b = b[:min(len(b), left)]
		r.spans = append(r.spans, b)
		n, left = n+len(b), left-len(b)
	}
	return r.spans
}

// scrap reads n payload bytes that nobody wants.
func (r *receiver) scrap(n int) error {
	for n > 0 {
		if err := r.arm(); err != nil {
			return err
		}
		r.spans = append(r.spans[:0], r.scratch[:min(n, len(r.scratch))])
		got, err := r.v.readv(r.spans)
		if err != nil {
			return err
		}
		n -= got
		r.l.consumed(got)
	}
	return nil
}

// fill reads all of b, which is no block.
func (r *receiver) fill(b []byte) error {
	for n := 0; n < len(b); {
		if err := r.arm(); err != nil {
			return err
		}
		r.spans = append(r.spans[:0], b[n:])
		got, err := r.v.readv(r.spans)
		if err == io.EOF && n > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		n += got
	}
	return nil
}
