package tcp

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// TestMain holds every test of this package to what it promises of Close: nothing moves any more.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzOffer is a stranger that answers a dial: whatever he sends, the dialling end neither
// panics, nor takes him for a worker of its fleet, nor proves more to him than once.
func FuzzOffer(f *testing.F) {
	challenge := wire.Append(nil, wire.Challenge{Version: wire.Version, Role: transfer.RolePrefill, Boot: 2})
	f.Add(wire.Append(challenge, wire.Auth{Manifest: []byte("layout")}))
	f.Add(wire.Append(challenge, wire.Err{Reason: transfer.ReasonManifest, Ours: []byte("a"), Theirs: []byte("b")}))
	f.Add(wire.Append(nil, wire.Challenge{Version: wire.Version, Role: transfer.RoleDecode, Boot: 2}))
	f.Add(challenge[:len(challenge)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		var said bytes.Buffer
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(&said, there) })
		wg.Go(func() {
			_, _ = there.Write(b)
			_ = here.SetReadDeadline(past) // nothing follows
		})
		id := testIdentity(1)
		id.Role, id.Bounds = transfer.RoleDecode, transfer.Bounds{}.WithDefaults()
		boot, err := offer(here, id, wire.PlaneControl, 1)
		_ = here.Close()
		wg.Wait()
		_ = there.Close()
		if err == nil {
			t.Errorf("%x was taken for a worker, boot %s", b, boot)
		}
		if bytes.Contains(said.Bytes(), testSecret) {
			t.Errorf("the secret went out to a stranger: %x", said.Bytes())
		}
		frames := 0
		for r := bytes.NewReader(said.Bytes()); r.Len() > 0; frames++ {
			if _, err := wire.ReadFrame(r, nil, wire.FrameMax); err != nil {
				t.Fatalf("what was said is no frame: %v", err)
			}
		}
		if frames > 2 {
			t.Errorf("%d frames for a stranger, want Hello and one Auth", frames)
		}
	})
}

// refit gives frames of a control connection that a fuzzer changed their lengths and checksums
// back, so that what is in them is read. Each of b's pieces begins with its length.
func refit(b []byte) (out []byte) {
	for len(b) > 1 {
		n := min(int(b[0])+1, len(b)-1)
		body := b[1 : 1+n]
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		out, b = append(out, body...), b[1+n:]
	}
	return out
}

// pieces is what refit takes, of messages.
func pieces(all ...wire.Message) (b []byte) {
	for _, m := range all {
		frame := wire.Append(nil, m)[8:]
		b = append(append(b, byte(len(frame)-1)), frame...)
	}
	return b
}

// headed is the stream of a data connection that a fuzzer changed, with the checksums of its
// first header made good.
func headed(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) >= wire.HeaderBytes {
		at := b[:wire.HeaderBytes]
		binary.LittleEndian.PutUint32(at[wire.HeaderBytes-4:], wire.SumCRC(at[:wire.HeaderBytes-4]))
	}
	return b
}

// quick are bounds of a link whose peer soon has nothing more to say.
var quick = transfer.Bounds{Handshake: 5 * time.Second, Silence: 5 * time.Second}

// strict is a decode handler with two blocks that holds the link to its promises.
type strict struct {
	t      *testing.T
	mu     sync.Mutex
	inside bool
	ended  int
	up     chan room.Conn
	over   chan error
}

func (s *strict) LinkUp(_ int32, _ room.Boot, c room.Conn) { s.up <- c }
func (s *strict) LinkFailed(_ int32, err error)            { s.over <- err }
func (s *strict) LinkEnd(_ int32, _ room.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended++; s.ended > 1 || s.inside {
		s.t.Errorf("link ended %d times, a receiver is inside: %v", s.ended, s.inside)
	}
	s.over <- err
}
func (s *strict) Settled(_ int32, w room.Settled) {
	if w.Lease.Boot != 1 || w.Room == 0 {
		s.t.Errorf("settled: %+v", w)
	}
}
func (s *strict) Arrived(c Chunk) ([]int32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside || s.ended > 0 {
		s.t.Error("a second receiver")
	}
	if c.N > 2 {
		return nil, false
	}
	s.inside = true
	return []int32{0, 1}[:c.N], true
}
func (s *strict) leaves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inside {
		s.t.Error("a receiver leaves that was not inside")
	}
	s.inside = false
}
func (s *strict) Placed(Chunk, []byte) { s.leaves() }
func (s *strict) Off(Chunk)            { s.leaves() }
func (s *strict) Refused(Chunk)        {}

// twoBlocks of 64 bytes, with a byte on each side that nobody may touch.
type twoBlocks []byte

func (m twoBlocks) Block(i int32) []byte { return m[1+64*i : 65+64*i : 65+64*i] }

// FuzzDecodeLink is a prefill worker of the fleet that has gone mad: whatever it sends over a
// link that is up, the decode end keeps its promises about receivers, ends once, and leaves
// nothing behind.
func FuzzDecodeLink(f *testing.F) {
	lease := room.Lease{Boot: 1, Seq: 3}
	chunk := Chunk{Room: 5, Lease: lease, Conn: 1, N: 2, Last: true}
	data := wire.AppendHeader(nil, wire.Header{Chunk: chunk, BlockBytes: 64, SideBytes: 4, Trailer: wire.SumCRC(make([]byte, 2*wire.SumBytes+4))})
	data = append(data, make([]byte, 2*wire.SumBytes+4+2*64)...)
	f.Add(pieces(wire.Settled{Room: 5, Lease: lease, Outcome: room.Done(), Chunks: 1}, wire.Ping{}), data)
	f.Add(pieces(wire.Grant{Conn: 1, Total: 5}), wire.AppendHeader(nil, wire.Header{Ping: true}))
	f.Add(pieces(wire.Err{Reason: transfer.ReasonClosing}), data[:len(data)-70])
	f.Add(pieces(wire.Settled{Room: 5, Lease: room.Lease{Boot: 9, Seq: 1}, Outcome: room.Fail(room.Internal)}), []byte{})
	f.Fuzz(func(t *testing.T, control, data []byte) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		s := &strict{t: t, up: make(chan room.Conn, 1), over: make(chan error, 2)}
		id, mem := testIdentity(1), make(twoBlocks, 130)
		id.Bounds = quick
		mem[0], mem[129] = 7, 7
		d := NewDecode(id, mem, s)
		d.Dial(0, ln.Addr().String())
		mad := testIdentity(2)
		mad.Role = transfer.RolePrefill
		var conns []*net.TCPConn
		for range 2 {
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			o, err := answer(c, mad)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = send(c, o.welcome)
			conns = append(conns, c.(*net.TCPConn))
		}
		select {
		case <-s.up:
		case err := <-s.over:
			t.Fatal(err)
		}
		for i, b := range [][]byte{refit(control), headed(data)} {
			_, _ = conns[i].Write(b)
			_ = conns[i].CloseWrite()
		}
		<-s.over
		_ = d.Close()
		if mem[0] != 7 || mem[129] != 7 || s.inside {
			t.Errorf("touched %d, %d; a receiver is inside: %v", mem[0], mem[129], s.inside)
		}
	})
}

// account is a prefill handler that counts answers to writes.
type account struct {
	mu   sync.Mutex
	done int
	up   chan room.Conn
	over chan error
}

func (a *account) LinkUp(_ room.Boot, c room.Conn)             { a.up <- c }
func (a *account) LinkEnd(_ room.Boot, _ room.Conn, err error) { a.over <- err }
func (a *account) Prealloc(room.Prealloc)                      {}
func (a *account) Cancel(room.Cancel)                          {}
func (a *account) WriteDone(room.ID, room.Lease, int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done++
}

// FuzzPrefillLink is a decode worker of the fleet that has gone mad: whatever it sends over a
// link that is up, the prefill end answers each write once, ends, and leaves nothing behind.
func FuzzPrefillLink(f *testing.F) {
	lease := room.Lease{Boot: 2, Seq: 3}
	ping := wire.AppendHeader(nil, wire.Header{Ping: true})
	f.Add(pieces(wire.Prealloc{Room: 5, Lease: lease, Conn: 1, Tokens: 20}, wire.Cancel{Room: 5, Lease: lease}), ping)
	f.Add(pieces(wire.Grant{Conn: 1, Total: 1 << 20}, wire.Cancel{Room: 7, Lease: lease}), append(ping, ping...))
	f.Add(pieces(wire.Grant{Conn: 1, Total: 1 << 60}), ping[:9])
	f.Add(pieces(wire.Hello{Version: wire.Version, Role: transfer.RoleDecode, Plane: wire.PlaneData, Boot: 2, Conn: 1, Window: 1}), []byte{})
	f.Fuzz(func(t *testing.T, control, data []byte) {
		a := &account{up: make(chan room.Conn, 1), over: make(chan error, 1)}
		id := testIdentity(1)
		id.Bounds = quick
		p, err := Listen("127.0.0.1:0", id, make(oneBlock, 64), a)
		if err != nil {
			t.Fatal(err)
		}
		mad := testIdentity(2)
		mad.Role, mad.Bounds = transfer.RoleDecode, quick.WithDefaults()
		mad.Bounds.Window = 100 // one block and a bit of the next
		var conns []net.Conn
		for _, plane := range []wire.Plane{wire.PlaneControl, wire.PlaneData} {
			c := dialRaw(t, p.Addr())
			defer c.Close()
			if _, err := offer(c, mad, plane, 1); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		<-a.up
		for n := range 3 { // the last two wait for credit
			p.Write(Write{Room: 7, Lease: lease, Conn: 1, Chunk: n, Blocks: []int32{0}, Last: n == 2})
		}
		for i, b := range [][]byte{refit(control), headed(data)} {
			_, _ = conns[i].Write(b)
			_ = conns[i].(*net.TCPConn).CloseWrite()
		}
		<-a.over
		_ = p.Close()
		if a.done != 3 {
			t.Errorf("3 writes have %d answers", a.done)
		}
	})
}
