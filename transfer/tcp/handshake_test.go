package tcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// ears hears what a dial or a link comes to, and nothing else.
type ears struct {
	failed chan error
	up     chan room.Conn
}

func newEars() ears { return ears{make(chan error, 100), make(chan room.Conn, 100)} }

func (e ears) LinkUp(_ int32, _ room.Boot, c room.Conn) { e.up <- c }
func (e ears) LinkFailed(_ int32, err error)            { e.failed <- err }
func (ears) LinkEnd(int32, room.Conn, error)            {}
func (ears) Settled(int32, room.Settled)                {}
func (ears) Arrived(Chunk) ([]int32, bool)              { return nil, false }
func (ears) Placed(Chunk, []byte)                       {}
func (ears) Off(Chunk)                                  {}
func (ears) Refused(Chunk)                              {}

// deaf is a prefill handler that hears nothing.
type deaf struct{}

func (deaf) LinkUp(room.Boot, room.Conn)               {}
func (deaf) LinkEnd(room.Boot, room.Conn, error)       {}
func (deaf) Prealloc(room.Prealloc)                    {}
func (deaf) Cancel(room.Cancel)                        {}
func (deaf) WriteDone(room.ID, room.Lease, int, error) {}

type oneBlock []byte

func (m oneBlock) Block(int32) []byte { return m }

var testSecret = []byte("sixteen bytes at the least")

func testIdentity(b room.Boot) Identity {
	return Identity{Boot: b, Secret: testSecret, Manifest: []byte("layout")}
}

func listen(t *testing.T, bounds transfer.Bounds) *Prefill {
	t.Helper()
	id := testIdentity(1)
	id.Bounds = bounds
	p, err := Listen("127.0.0.1:0", id, make(oneBlock, 64), deaf{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lastFrame reads to the end of the connection and returns the last frame.
func lastFrame(t *testing.T, c net.Conn) (last wire.Message) {
	t.Helper()
	for {
		b, err := wire.ReadFrame(c, nil, wire.FrameMax)
		if err != nil {
			return last
		}
		if last, err = wire.Parse(b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhoSaysNothingIsClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{Handshake: 50 * time.Millisecond})
	defer p.Close()
	c := dialRaw(t, p.Addr())
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); err != nil || n != 0 {
		t.Errorf("got %d bytes, %v, want a closed connection", n, err)
	}
}

func TestAControlConnectionWithoutItsDataConnectionIsClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{Handshake: 50 * time.Millisecond})
	defer p.Close()
	c := dialRaw(t, p.Addr())
	defer c.Close()
	id := testIdentity(2)
	id.Role, id.Bounds = transfer.RoleDecode, id.Bounds.WithDefaults()
	if _, err := offer(c, id, wire.PlaneControl, 1); err != nil {
		t.Fatal(err)
	}
	if e, ok := lastFrame(t, c).(wire.Err); !ok || e.Reason != transfer.ReasonSilent || !strings.Contains(e.Text, "data connection") {
		t.Errorf("the connection ended with %+v, want the missing data connection named", e)
	}
}

func TestADataConnectionNeedsItsControlConnection(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{})
	defer p.Close()
	c := dialRaw(t, p.Addr())
	defer c.Close()
	id := testIdentity(2)
	id.Role, id.Bounds = transfer.RoleDecode, id.Bounds.WithDefaults()
	_, err := offer(c, id, wire.PlaneData, 1)
	var why *transfer.Refusal
	if !errors.As(err, &why) || why.Reason != transfer.ReasonBoot {
		t.Errorf("got %v, want a refusal", err)
	}
}

// Connections that only connect are held in a bounded number, and cannot keep a worker out.
func TestHalfOpenConnectionsAreBounded(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{Handshake: time.Hour})
	defer p.Close()
	var idle []net.Conn
	for range transfer.HalfOpenMax + 10 {
		c := dialRaw(t, p.Addr())
		defer c.Close()
		idle = append(idle, c)
	}
	for _, c := range idle[:10] { // the oldest make place
		if n, err := io.Copy(io.Discard, c); n != 0 {
			t.Errorf("an idle connection got %d bytes, %v", n, err)
		}
	}
	p.mu.Lock()
	half := len(p.half)
	p.mu.Unlock()
	if half > transfer.HalfOpenMax {
		t.Errorf("%d connections are half-open, the limit is %d", half, transfer.HalfOpenMax)
	}
	e := newEars()
	d := NewDecode(testIdentity(2), make(oneBlock, 64), e)
	defer d.Close()
	d.Dial(0, p.Addr())
	select {
	case <-e.up:
	case err := <-e.failed:
		t.Errorf("a worker was kept out: %v", err)
	}
}

func TestGarbageIsRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{})
	defer p.Close()
	for _, b := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x00\x00\x00\x00\x00\x00\x00\x00",
		"\xff\xff\xff\xff\x00\x00\x00\x00",
		string(wire.Append(nil, wire.Ping{})),
	} {
		c := dialRaw(t, p.Addr())
		if _, err := io.WriteString(c, b); err != nil {
			t.Fatal(err)
		}
		if e, ok := lastFrame(t, c).(wire.Err); ok && e.Reason != transfer.ReasonProtocol {
			t.Errorf("%q was answered with %+v, want a protocol error", b, e)
		}
		_ = c.Close()
	}
	if got := p.Stats().LinksRefused; got != 4 {
		t.Errorf("%d refusals counted, want 4", got)
	}
}

func TestAnotherVersionIsNamed(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := listen(t, transfer.Bounds{})
	defer p.Close()
	c := dialRaw(t, p.Addr())
	defer c.Close()
	if _, err := send(c, wire.Hello{Version: wire.Version + 1}); err != nil {
		t.Fatal(err)
	}
	e, _ := lastFrame(t, c).(wire.Err)
	if e.Reason != transfer.ReasonVersion || !strings.Contains(e.Text, "version 2") || !strings.Contains(e.Text, "this one 1") {
		t.Errorf("got %+v, want both versions", e)
	}
}

// impostor answers one dial as a prefill worker that does not know the secret.
func impostor(t *testing.T, auth func(decodes wire.Auth) wire.Auth) error {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, _, err = receive(c); err != nil {
			return
		}
		_, _ = send(c, wire.Challenge{Version: wire.Version, Role: transfer.RolePrefill, Boot: 9, Nonce: nonce()})
		m, _, err := receive(c)
		if a, ok := m.(wire.Auth); ok && err == nil {
			_, _ = send(c, auth(a))
		}
		_, _ = io.Copy(io.Discard, c)
	}()
	e := newEars()
	d := NewDecode(testIdentity(2), make(oneBlock, 64), e)
	d.Dial(0, ln.Addr().String())
	got := <-e.failed
	_ = d.Close()
	<-served
	return got
}

func TestAnImpostorIsRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, auth := range map[string]func(wire.Auth) wire.Auth{
		"no proof":      func(wire.Auth) wire.Auth { return wire.Auth{Manifest: []byte("layout")} },
		"our own proof": func(a wire.Auth) wire.Auth { return wire.Auth{MAC: a.MAC, Manifest: []byte("layout")} },
		"proof of other text": func(wire.Auth) wire.Auth {
			return wire.Auth{MAC: proof(testSecret, labelPrefill), Manifest: []byte("layout")}
		},
	} {
		err := impostor(t, auth)
		var why *transfer.Refusal
		if !errors.As(err, &why) || why.Reason != transfer.ReasonSecret {
			t.Errorf("%s: got %v, want a refusal for the secret", name, err)
		}
	}
}

func TestDialsEndWithinTheHandshakeBoundAndAtClose(t *testing.T) {
	defer goleak.VerifyNone(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // never accepts: the system does
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	e := newEars()
	id := testIdentity(2)
	id.Bounds.Handshake = 50 * time.Millisecond
	d := NewDecode(id, make(oneBlock, 64), e)
	d.Dial(0, ln.Addr().String())
	if err := <-e.failed; !errors.Is(err, transfer.ErrSilent) {
		t.Errorf("got %v, want %v", err, transfer.ErrSilent)
	}
	_ = d.Close()
	id.Bounds.Handshake = time.Hour
	d = NewDecode(id, make(oneBlock, 64), e)
	d.Dial(0, ln.Addr().String())
	_ = d.Close()
	if err := <-e.failed; !errors.Is(err, transfer.ErrClosed) {
		t.Errorf("got %v, want %v", err, transfer.ErrClosed)
	}
}

// Whatever a stranger sends, the listening end neither panics nor lets him in.
func FuzzAnswer(f *testing.F) {
	hello := wire.Hello{Version: wire.Version, Role: transfer.RoleDecode, Plane: wire.PlaneControl, Boot: 2, Conn: 1, Window: 1, Manifest: []byte("layout")}
	f.Add(wire.Append(wire.Append(nil, hello), wire.Auth{}))
	f.Add(wire.Append(nil, wire.Err{Reason: transfer.ReasonBusy}))
	f.Add(wire.Append(nil, hello)[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, there) }()
			_, _ = there.Write(b)
			_ = there.Close()
		}()
		id := testIdentity(1)
		id.Role = transfer.RolePrefill
		if _, err := answer(here, id); err == nil {
			t.Errorf("%x was let in", b)
		}
		_ = here.Close()
		<-done
	})
}

// countLines is a log that only counts.
type countLines struct {
	slog.Handler
	n *atomic.Int64
}

func (c countLines) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

// Whoever knocks with garbage costs a line of log per reason now and then, not one per knock. The
// count of them stays exact.
func TestStrangersCannotFillTheLog(t *testing.T) {
	defer goleak.VerifyNone(t)
	const knocks = 400
	lines := countLines{slog.Default().Handler(), &atomic.Int64{}}
	id := testIdentity(1)
	id.Log = slog.New(lines)
	p, err := Listen("127.0.0.1:0", id, make(oneBlock, 64), deaf{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range knocks {
		c := dialRaw(t, p.Addr())
		if i%2 == 0 { // the others say nothing and go
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			lastFrame(t, c)
		}
		_ = c.Close()
	}
	for p.Stats().LinksRefused < knocks {
		runtime.Gosched()
	}
	_ = p.Close()
	if n := lines.n.Load(); n < 1 || n > 4 || p.Stats().LinksRefused != knocks {
		t.Errorf("%d lines and %d refusals counted for %d knocks", n, p.Stats().LinksRefused, knocks)
	}
}
