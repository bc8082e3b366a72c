package tcp

import (
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// TestAWriteThatDoesNotMoveEndsItsLink: a decode worker that lives, and whose data connection is
// not read any more. It pings on both connections, and there is credit for all of the chunk, so
// that neither silence nor credit ends the link: the write does, which reads blocks (T6), and its
// WriteDone says that nothing reads them now.
func TestAWriteThatDoesNotMoveEndsItsLink(t *testing.T) {
	defer goleak.VerifyNone(t)
	const (
		silence   = time.Second
		pings     = 50                 // within it: no stall of this machine is taken for silence
		patience  = 3 * pings          // pings after which the write is said to hang
		blockSize = 1 << 20            // bytes
		blocks    = 64                 // more than both sockets hold
		all       = blocks * blockSize // bytes of payload
		window    = all + blockSize    // credit does not run out
	)
	a := &account{up: make(chan room.Conn, 1), over: make(chan error, 1)}
	id := testIdentity(1)
	id.Bounds = transfer.Bounds{Silence: silence, Buffer: 64 << 10}
	p, err := Listen("127.0.0.1:0", id, make(oneBlock, blockSize), a)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	peer := testIdentity(2)
	peer.Role, peer.Bounds = transfer.RoleDecode, transfer.Bounds{Window: window}.WithDefaults()
	var conns []net.Conn
	for _, plane := range []wire.Plane{wire.PlaneControl, wire.PlaneData} {
		c := dialRaw(t, p.Addr())
		defer c.Close()
		if _, err := offer(c, peer, plane, 1); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	<-a.up
	p.Write(Write{Room: 7, Lease: room.Lease{Boot: 2, Seq: 3}, Conn: 1, Blocks: make([]int32, blocks), Sums: make([]uint64, blocks), Last: true})
	says := [][]byte{wire.Append(nil, wire.Ping{}), wire.AppendHeader(nil, wire.Header{Ping: true})}
	again := time.NewTicker(silence / pings)
	defer again.Stop()
	for n := 0; n < patience; n++ {
		select {
		case err := <-a.over:
			if sent := p.Stats().SentBytes; !errors.Is(err, transfer.ErrSilent) || a.done != 1 || p.Stats().WritesFailed != 1 || sent == 0 || sent == all {
				t.Errorf("the link ended with %v, the write after %d bytes of %d with %d answers, %d of them failures; want %v, some, 1 and 1",
					err, sent, all, a.done, p.Stats().WritesFailed, transfer.ErrSilent)
			}
			return
		case <-again.C:
			for i, b := range says {
				_, _ = conns[i].Write(b) // the link ends between two of them
			}
		}
	}
	t.Errorf("the write hangs: after %d bytes of %d nothing moved for %v, and its link is up", p.Stats().SentBytes, all, patience*silence/pings)
}
