package tcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// pingsPerSilence is how many pings fit into the silence bound: three may be late or lost to a
// stalled scheduler before a healthy link is taken for dead.
const pingsPerSilence = 4

// farewell is how long the last frame of a link may take; it is a courtesy.
const farewell = 250 * time.Millisecond

// controlBuffer holds some sixty frames of a burst, so that they cost one system call.
const controlBuffer = 4 << 10

// link is a control and a data connection that live and die together. The half that differs
// by end is in prefill.go, send.go (prefill) and decode.go, receive.go (decode).
//
// fail is the only way to its end: the first cause stays, both connections stop, every
// goroutine of the link notices, and its owner, who waits for them, tells the handler.
type link struct {
	conn   room.Conn
	boot   room.Boot // of the peer
	bounds transfer.Bounds
	ctl    *net.TCPConn
	dat    *net.TCPConn
	done   chan struct{} // closed by fail
	wake   chan struct{} // something for the control writer
	wg     sync.WaitGroup

	mu      sync.Mutex
	err     error  // first cause
	out     []byte // encoded frames that wait for the control writer
	queued  int    // frames in out
	granted uint64 // decode: total that prefill may have sent
	told    uint64 // decode: what the last Grant said
}

func newLink(conn room.Conn, boot room.Boot, b transfer.Bounds, ctl, dat *net.TCPConn) *link {
	for _, c := range []*net.TCPConn{ctl, dat} {
		_ = c.SetDeadline(time.Time{}) // the handshake's
	}
	return &link{
		conn: conn, boot: boot, bounds: b, ctl: ctl, dat: dat,
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		granted: uint64(b.Window), told: uint64(b.Window),
	}
}

// fail ends the link. The data connection closes at once; the control connection is closed by
// its writer after a last word.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	close(l.done)
	_ = l.dat.Close()
	_ = l.ctl.SetReadDeadline(past)
	_ = l.ctl.SetWriteDeadline(time.Now().Add(farewell))
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// own runs f as one of the link's goroutines; its error ends the link.
func (l *link) own(f func() error) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		if err := f(); err != nil {
			l.fail(named(err))
		}
	}()
}

// named gives errors of the network the names of package transfer, and leaves the addresses out:
// whoever hears of a link knows whose it is, and says so once.
func named(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("tcp: %w", transfer.ErrSilent)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("tcp: peer closed the connection")
	case errors.As(err, &op):
		return fmt.Errorf("tcp: %s: %w", op.Op, op.Err)
	}
	return err
}

// post queues a frame; it never waits. False means that the link has ended.
func (l *link) post(m wire.Message) (ok, overflow bool) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return false, false
	}
	if l.queued >= transfer.ControlMax {
		l.mu.Unlock()
		l.fail(fmt.Errorf("tcp: %d frames wait: %w", transfer.ControlMax, transfer.ErrOverflow))
		return false, true
	}
	l.out = wire.Append(l.out, m)
	l.queued++
	l.mu.Unlock()
	l.nudge()
	return true, false
}

func (l *link) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// consumed gives prefill credit for n payload bytes that left the data connection. Grants are
// sent by the quarter window and folded into one, so they need no place in the queue.
func (l *link) consumed(n int) {
	l.mu.Lock()
	l.granted += uint64(n)
	due := l.granted-l.told >= uint64(l.bounds.Window)/4
	l.mu.Unlock()
	if due {
		l.nudge()
	}
}

// writeControl sends what is queued, and pings: always, as a ping costs nothing and a rule
// without a condition needs no proof.
func (l *link) writeControl() error {
	defer l.ctl.Close()
	ping := time.NewTicker(l.bounds.Silence / pingsPerSilence)
	defer ping.Stop()
	var spare []byte
	for {
		b := l.take(spare[:0])
		if len(b) > 0 {
			if _, err := l.ctl.Write(b); err != nil {
				return err
			}
		}
		spare = b
		select {
		case <-l.done:
			return l.lastWord(spare[:0])
		case <-l.wake:
		case <-ping.C:
			l.post(wire.Ping{})
		}
	}
}

// take moves the queue into b and sets the deadline for writing it.
func (l *link) take(b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return b
	}
	b, l.out, l.queued = l.out, b, 0
	if l.granted-l.told >= uint64(l.bounds.Window)/4 {
		b = wire.Append(b, wire.Grant{Conn: l.conn, Total: l.granted})
		l.told = l.granted
	}
	if len(b) > 0 {
		_ = l.ctl.SetWriteDeadline(time.Now().Add(l.bounds.Silence))
	}
	return b
}

// lastWord sends what was queued before the end, and why it ended.
func (l *link) lastWord(b []byte) error {
	l.mu.Lock()
	b = append(b, l.out...)
	m := toErr(l.err)
	l.mu.Unlock()
	if m != nil {
		b = wire.Append(b, m)
	}
	_, _ = l.ctl.Write(b)
	return nil
}

// readControl calls f for each frame until the link ends.
func (l *link) readControl(f func(wire.Message) error) error {
	var buf []byte
	in := bufio.NewReaderSize(l.ctl, controlBuffer)
	for {
		if !l.armControl() {
			return nil
		}
		var err error
		if buf, err = wire.ReadFrame(in, buf, wire.FrameMax); err != nil {
			return err
		}
		m, err := wire.Parse(buf)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case wire.Ping:
		case wire.Err:
			return fromErr(m)
		default:
			if err := f(m); err != nil {
				return err
			}
		}
	}
}

func (l *link) armControl() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	_ = l.ctl.SetReadDeadline(time.Now().Add(l.bounds.Silence))
	return true
}

// unexpected is the error for a frame that has no place on an established link.
func unexpected(m wire.Message) error {
	return fmt.Errorf("tcp: %T on an established link: %w", m, transfer.ErrProtocol)
}
