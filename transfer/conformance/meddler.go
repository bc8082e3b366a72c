package conformance

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"baton/transfer/wire"
)

// line is one direction of one of a link's two connections.
type line uint8

const (
	controlOut line = iota // decode to prefill
	controlIn              // prefill to decode
	dataOut                // decode to prefill: pings
	dataIn                 // prefill to decode: chunks
	lines
)

func (l line) String() string {
	return [lines]string{"controlOut", "controlIn", "dataOut", "dataIn"}[l]
}

// meddler stands between two ends of a framed plane. It knows frames, so that it can meddle
// with what it wants to and with nothing else. Set the hooks before the first Dial.
type meddler struct {
	frame func(l line, b []byte, m wire.Message) [][]byte        // what to send instead of b, handshake included
	head  func(h *wire.Header, trailer []byte)                   // may change both; checksums follow
	raw   func(l line, b []byte)                                 // may change the bytes of a header
	piece func(h wire.Header, off int, b []byte, pass func(int)) // payload from off; pass forwards b up to n

	t      *testing.T
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu     sync.Mutex
	moved  sync.Cond
	conns  []net.Conn
	shut   [lines]bool  // a shut line forwards nothing
	left   [lines]int64 // bytes until the meddler cuts everything; below 0 never
	closed bool
}

func newMeddler(t *testing.T, target string) *meddler {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meddler{t: t, ln: ln, target: target, left: [lines]int64{-1, -1, -1, -1}}
	m.moved.L = &m.mu
	m.wg.Add(1)
	go m.accept()
	return m
}

func (m *meddler) addr() string { return m.ln.Addr().String() }

func (m *meddler) accept() {
	defer m.wg.Done()
	for {
		c, err := m.ln.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", m.target)
		if err != nil {
			_ = c.Close()
			continue
		}
		m.mu.Lock()
		m.conns = append(m.conns, c, s)
		if m.closed {
			_, _ = c.Close(), s.Close()
		}
		m.mu.Unlock()
		m.wg.Add(1)
		go m.join(c, s)
	}
}

// join learns from the Hello which connection this is, then pumps both ways until either ends.
func (m *meddler) join(c, s net.Conn) {
	defer m.wg.Done()
	frame, err := wire.ReadFrame(c, nil, wire.FrameMax)
	if err != nil {
		_, _ = c.Close(), s.Close()
		return
	}
	out, in, data := controlOut, controlIn, false
	if msg, err := wire.Parse(frame); err == nil {
		if h, ok := msg.(wire.Hello); ok && h.Plane == wire.PlaneData {
			out, in, data = dataOut, dataIn, true
		}
	}
	var both sync.WaitGroup
	both.Add(2)
	pump := func(f func() error) {
		defer both.Done()
		_ = f()
		_, _ = c.Close(), s.Close()
	}
	go pump(func() error {
		if err := m.pass(out, s, frame); err != nil {
			return err
		}
		if !data {
			return m.frames(out, c, s, -1)
		}
		if err := m.frames(out, c, s, 1); err != nil { // Auth
			return err
		}
		return m.bytes(out, c, s)
	})
	go pump(func() error {
		if !data {
			return m.frames(in, s, c, -1)
		}
		if err := m.frames(in, s, c, 2); err != nil { // Challenge, Auth
			return err
		}
		return m.chunks(s, c)
	})
	both.Wait()
}

// frames forwards n frames, or all.
func (m *meddler) frames(l line, from io.Reader, to io.Writer, n int) error {
	for ; n != 0; n-- {
		b, err := wire.ReadFrame(from, nil, wire.FrameMax)
		if err != nil {
			return err
		}
		if err := m.pass(l, to, b); err != nil {
			return err
		}
	}
	return nil
}

func (m *meddler) pass(l line, to io.Writer, b []byte) error {
	msg, err := wire.Parse(b)
	if err != nil {
		return err
	}
	out := [][]byte{wire.Append(nil, msg)}
	if m.frame != nil {
		out = m.frame(l, out[0], msg)
	}
	for _, f := range out {
		if err := m.forward(l, to, f); err != nil {
			return err
		}
	}
	return nil
}

func (m *meddler) bytes(l line, from io.Reader, to io.Writer) error {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return err
		}
		if err := m.forward(l, to, b[:n]); err != nil {
			return err
		}
	}
}

func (m *meddler) chunks(from io.Reader, to io.Writer) error {
	head := make([]byte, wire.HeaderBytes)
	buf := make([]byte, 1000) // many pieces even for small blocks
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return err
		}
		trailer := make([]byte, h.TrailerBytes())
		if _, err := io.ReadFull(from, trailer); err != nil {
			return err
		}
		if m.head != nil && !h.Ping {
			m.head(&h, trailer)
			head = wire.AppendHeader(head[:0], h)
		}
		sent := append(append([]byte(nil), head...), trailer...)
		if m.raw != nil && !h.Ping {
			m.raw(dataIn, sent)
		}
		if err := m.forward(dataIn, to, sent); err != nil {
			return err
		}
		for off := 0; off < h.PayloadBytes(); {
			b := buf[:min(len(buf), h.PayloadBytes()-off)]
			if _, err := io.ReadFull(from, b); err != nil {
				return err
			}
			if m.piece != nil {
				at := 0
				m.piece(h, off, b, func(n int) {
					_ = m.forward(dataIn, to, b[at:n])
					at = n
				})
				if err := m.forward(dataIn, to, b[at:]); err != nil {
					return err
				}
			} else if err := m.forward(dataIn, to, b); err != nil {
				return err
			}
			off += len(b)
		}
	}
}

var errCut = errors.New("conformance: the meddler cut the line")

// forward sends b when the line is open, up to the byte where it is to be cut.
func (m *meddler) forward(l line, to io.Writer, b []byte) error {
	m.mu.Lock()
	for m.shut[l] && !m.closed {
		m.moved.Wait()
	}
	cut := false
	if m.left[l] >= 0 {
		if int64(len(b)) >= m.left[l] {
			b, cut = b[:m.left[l]], true
		}
		m.left[l] -= int64(len(b))
	}
	m.mu.Unlock()
	_, err := to.Write(b)
	if cut {
		m.cut()
		err = errCut
	}
	return err
}

// stop keeps a line from forwarding; openAll lets all go on.
func (m *meddler) stop(l line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut[l] = true
}

func (m *meddler) openAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut = [lines]bool{}
	m.moved.Broadcast()
}

// cutAfter ends everything when n more bytes went over the line.
func (m *meddler) cutAfter(l line, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[l] = n
}

// cut ends every connection, as a peer's death does.
func (m *meddler) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
	m.conns = nil
}

func (m *meddler) close() {
	m.mu.Lock()
	m.closed = true
	m.moved.Broadcast()
	m.mu.Unlock()
	_ = m.ln.Close()
	m.cut()
	m.wg.Wait()
}
