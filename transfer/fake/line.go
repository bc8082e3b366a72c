package fake

import (
	"bytes"
	"fmt"
	"sync"

	"baton/core/room"
	"baton/transfer"
)

// pieceBytes is how much lands between two looks at whether the receiver has to leave.
const pieceBytes = 4 << 10

// Faults are chosen before the first Dial. Each function may block: that is how a test makes
// something late.
type Faults struct {
	// Word says how many times a room.Prealloc, room.Cancel or room.Settled arrives.
	Word func(w any) int
	// Piece is called with bytes [off, off+len(b)) of the chunk's payload, which it may change,
	// before they land.
	Piece func(c transfer.Chunk, off int, b []byte)
}

// World is where ends find each other by address.
type World struct {
	faults Faults
	mu     sync.Mutex
	ends   map[string]*Prefill
	last   int
}

// New makes a world without ends.
func New(f Faults) *World { return &World{faults: f, ends: map[string]*Prefill{}} }

// link joins two ends. Its end has two steps: fail (first cause stays, done closes), and that
// each end's goroutines of it came home.
type link struct {
	world *World
	conn  room.Conn
	boot  room.Boot // of decode
	peer  int32
	p     *Prefill
	d     *Decode
	done  chan struct{}

	toPrefill, toDecode chan any    // words
	offers              chan *offer // the chunk that prefill sends now

	mu    sync.Mutex
	err   error
	queue []transfer.Write // not offered yet
	more  chan struct{}
	shut  bool // no write is accepted any more

	leaving sync.Mutex // guards the three below
	inside  bool
	leave   bool
	at      transfer.Chunk
	woken   chan struct{} // closed to make the receiver leave
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// post never waits; a full queue ends the link.
func (l *link) post(to chan any, w any) bool {
	n := 1
	if f := l.world.faults.Word; f != nil {
		n = f(w)
	}
	for range n {
		select {
		case <-l.done:
			return false
		case to <- w:
		default:
			l.fail(fmt.Errorf("fake: %d words wait: %w", cap(to), transfer.ErrOverflow))
			return false
		}
	}
	return true
}

// hear hands words to f until the link ends.
func (l *link) hear(from chan any, f func(any)) {
	for {
		select {
		case <-l.done:
			return
		case w := <-from:
			f(w)
		}
	}
}

// offer is one chunk under way. Its source is read only between begin and finish.
type offer struct {
	w        transfer.Write
	mu       sync.Mutex
	reading  bool
	dead     bool
	finished chan struct{}
}

// begin says whether the source may be read.
func (o *offer) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading = !o.dead
	return o.reading
}

// withdraw ends an offer whose source is not being read; false when it is.
func (o *offer) withdraw() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = !o.reading
	return o.dead
}

// compare is the handshake.
func compare(d, p transfer.Identity) error {
	refuse := func(r transfer.Reason, text string) error { return &transfer.Refusal{Reason: r, Text: text} }
	switch {
	case len(d.Secret) < transfer.SecretMin:
		return fmt.Errorf("fake: secret of %d bytes, want %d at least", len(d.Secret), transfer.SecretMin)
	case d.Role == transfer.RolePrefill:
		return refuse(transfer.ReasonRole, "a prefill worker dials")
	case !bytes.Equal(d.Secret, p.Secret):
		return refuse(transfer.ReasonSecret, "the secrets differ")
	case d.Boot == p.Boot:
		return refuse(transfer.ReasonBoot, "a worker dials itself")
	case !bytes.Equal(d.Manifest, p.Manifest):
		return &transfer.Refusal{Reason: transfer.ReasonManifest, Text: "the block layouts differ", Ours: d.Manifest, Theirs: p.Manifest}
	}
	return nil
}
