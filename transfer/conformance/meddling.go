package conformance

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// stalledMid is a hook that forwards half of the first block of chunk 0 of room 1 and then
// waits for release.
func stalledMid(r *rig, release <-chan struct{}) {
	half := r.src.bytes / 2
	r.meddler.piece = func(h wire.Header, off int, b []byte, pass func(int)) {
		if h.Room == 1 && h.Chunk.Chunk == 0 && off <= half && half < off+len(b) {
			pass(half - off)
			<-release
		}
	}
}

// cancelStalled: the proof of quiet is local. The peer sends nothing any more, and the receiver
// leaves all the same.
func cancelStalled(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true, blockBytes: 8000})
	release := make(chan struct{})
	stalledMid(r, release)
	c := r.up()
	r.write(c, 1, 0, 0, 2)
	r.await(1, ofChunk("decode.Arrived", 1, 0))
	r.decode.Cancel(c, room.Cancel{Room: 1, Lease: lease(1)})
	r.await(1, ofChunk("decode.Off", 1, 0))
	close(release)
	r.write(c, 2, 0, 0, 2)
	r.await(1, ofChunk("decode.Placed", 2, 0))
	if r.count(is("decode.LinkEnd"))+r.count(ofChunk("decode.Placed", 1, 0))+r.count(is("decode.Refused")) != 0 {
		t.Error("a cancelled chunk did more than leave")
	}
	if got := r.decode.Stats().ScrapChunks; got != 1 {
		t.Errorf("%d chunks scrapped, want the cancelled one", got)
	}
	r.close()
}

// cancelOfAnother: a lease that was given up does not take the receiver of a later one off.
func cancelOfAnother(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true, blockBytes: 8000})
	release := make(chan struct{})
	stalledMid(r, release)
	c := r.up()
	r.write(c, 1, 0, 0, 2)
	r.await(1, ofChunk("decode.Arrived", 1, 0))
	r.decode.Cancel(c, room.Cancel{Room: 1, Lease: lease(2)})
	r.decode.Cancel(c, room.Cancel{Room: 2, Lease: lease(1)})
	close(release)
	r.await(1, ofChunk("decode.Placed", 1, 0))
	r.close()
}

func cancelDropsQueued(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true, blockBytes: 8000, bounds: transfer.Bounds{Window: 4000}})
	release := make(chan struct{})
	stalledMid(r, release)
	c := r.up()
	r.write(c, 1, 0, 0, 2) // stalls, and with it the credit
	r.await(1, ofChunk("decode.Arrived", 1, 0))
	r.write(c, 2, 0, 0, 2)
	r.write(c, 3, 0, 0, 2)
	r.decode.Cancel(c, room.Cancel{Room: 2, Lease: lease(2)})
	if e := r.await(1, ofChunk("prefill.WriteDone", 2, 0))[0]; !errors.Is(e.err, transfer.ErrCancelled) {
		t.Errorf("the queued write ended in %v, want %v", e.err, transfer.ErrCancelled)
	}
	close(release)
	r.await(1, ofChunk("decode.Placed", 3, 0))
	if r.count(ofChunk("decode.Arrived", 2, 0)) != 0 {
		t.Error("a chunk of the cancelled lease was sent")
	}
	r.close()
}

func flippedByte(t *testing.T, f Factory) {
	const size, n = 3000, 4
	r := newRig(t, f, plan{meddle: true, blockBytes: size})
	r.meddler.piece = func(h wire.Header, off int, b []byte, _ func(int)) {
		// The room's number says which byte to flip.
		if at := int(h.Room) - 1 - off; at >= 0 && at < len(b) {
			b[at] ^= 1 << (int(h.Room) % 8)
		}
	}
	c := r.up()
	var flips []uint64
	for block := range n {
		for _, at := range []int{0, 1, size / 2, size - 1} {
			flips = append(flips, uint64(block*size+at+1))
		}
	}
	for _, id := range flips {
		r.write(c, id, 0, 0, n)
		r.await(1, ofChunk("decode.Refused", room.ID(id), 0))
	}
	r.write(c, size*n+1, 0, 0, n) // flips nothing
	r.await(1, ofChunk("decode.Placed", size*n+1, 0))
	if off := r.count(is("decode.Off")); off != len(flips) || r.count(is("decode.Placed")) != 1 {
		t.Errorf("T5: %d chunks off for %d flips, %d placed", off, len(flips), r.count(is("decode.Placed")))
	}
	r.close()
}

// ends makes a link, writes one chunk that the meddler spoils, and returns why decode ended it.
func ends(t *testing.T, f Factory, spoil func(*meddler)) error {
	t.Helper()
	r := newRig(t, f, plan{meddle: true})
	defer r.close()
	spoil(r.meddler)
	c := r.up()
	r.write(c, 1, 0, 0, 2)
	e := r.await(1, is("decode.LinkEnd"))[0]
	r.await(1, is("prefill.LinkEnd"))
	if n := r.count(is("decode.Placed")); n != 0 {
		t.Errorf("%d spoiled chunks were placed", n)
	}
	return e.err
}

func flippedHeader(t *testing.T, f Factory) {
	for _, at := range []int{0, 5, 9, 40, 48, 60, wire.HeaderBytes - 1, wire.HeaderBytes, wire.HeaderBytes + 17} {
		err := ends(t, f, func(m *meddler) {
			m.raw = func(_ line, b []byte) { b[at] ^= 4 }
		})
		if !errors.Is(err, transfer.ErrProtocol) {
			t.Errorf("flipped byte %d: the link ended with %v, want %v", at, err, transfer.ErrProtocol)
		}
	}
}

func oversizedChunks(t *testing.T, f Factory) {
	le := func(b []byte, at int, v uint32) {
		for i := range 4 {
			b[at+i] = byte(v >> (8 * i))
		}
		sum := wire.SumCRC(b[:wire.HeaderBytes-4])
		for i := range 4 {
			b[wire.HeaderBytes-4+i] = byte(sum >> (8 * i))
		}
	}
	for name, at := range map[string]int{"chunk": 40, "first block": 44, "blocks": 48, "block bytes": 52, "side bytes": 56} {
		values := []uint32{1 << 31, 1<<32 - 1, 1 << 27}
		if name == "block bytes" { // within the limits, and not what the pool has
			values = append(values, 1, 4999, 5001)
		}
		for _, v := range values {
			err := ends(t, f, func(m *meddler) {
				m.raw = func(_ line, b []byte) { le(b, at, v) }
			})
			if !errors.Is(err, transfer.ErrProtocol) {
				t.Errorf("%s of %d: the link ended with %v, want %v", name, v, err, transfer.ErrProtocol)
			}
		}
	}
}

func oversizedFrames(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true})
	r.meddler.frame = func(l line, b []byte, m wire.Message) [][]byte {
		if _, ok := m.(wire.Settled); ok {
			copy(b, []byte{0xff, 0xff, 0xff, 0x7f})
		}
		return [][]byte{b}
	}
	r.up()
	r.prefill.Settle(room.Settled{Room: 1, Lease: lease(1), Outcome: room.Done()})
	if e := r.await(1, is("decode.LinkEnd"))[0]; !errors.Is(e.err, transfer.ErrProtocol) {
		t.Errorf("the link ended with %v, want %v", e.err, transfer.ErrProtocol)
	}
	r.close()
}

func oldBoot(t *testing.T, f Factory) {
	var why *transfer.Refusal
	err := ends(t, f, func(m *meddler) {
		m.head = func(h *wire.Header, _ []byte) { h.Lease.Boot = decodeBoot - 1 }
	})
	if !errors.As(err, &why) || why.Reason != transfer.ReasonBoot {
		t.Errorf("a chunk of an old boot ended the link with %v, want a refusal for boot", err)
	}
	for _, word := range []string{"Prealloc", "Cancel", "Settled"} {
		r := newRig(t, f, plan{meddle: true})
		r.meddler.frame = func(_ line, b []byte, m wire.Message) [][]byte {
			old := room.Lease{Boot: decodeBoot - 1, Seq: 1}
			switch m := m.(type) {
			case wire.Prealloc:
				m.Lease = old
				return [][]byte{wire.Append(nil, m)}
			case wire.Cancel:
				m.Lease = old
				return [][]byte{wire.Append(nil, m)}
			case wire.Settled:
				m.Lease = old
				return [][]byte{wire.Append(nil, m)}
			}
			return [][]byte{b}
		}
		c := r.up()
		switch word {
		case "Prealloc":
			r.decode.Prealloc(c, room.Prealloc{Room: 1, Lease: lease(1), Conn: c, Tokens: 1})
		case "Cancel":
			r.decode.Cancel(c, room.Cancel{Room: 1, Lease: lease(1)})
		case "Settled":
			r.prefill.Settle(room.Settled{Room: 1, Lease: lease(1), Outcome: room.Done()})
		}
		r.await(1, is("prefill.LinkEnd"))
		r.await(1, is("decode.LinkEnd"))
		if n := r.count(is("prefill.Prealloc")) + r.count(is("prefill.Cancel")) + r.count(is("decode.Settled")); n != 0 {
			t.Errorf("%s of an old boot reached the handler", word)
		}
		r.close()
	}
}

// meddledWords: whatever happens to words, the plane hands on what came, once each, and goes on.
func meddledWords(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true})
	var held []byte
	r.meddler.frame = func(l line, b []byte, m wire.Message) [][]byte {
		switch m := m.(type) {
		case wire.Prealloc:
			switch m.Room {
			case 1: // twice
				return [][]byte{b, b}
			case 2: // lost
				return nil
			case 3: // after the next one
				held = b
				return nil
			case 4:
				return [][]byte{b, held}
			}
		case wire.Grant: // lost and old grants do no harm
			return [][]byte{b, b}
		case wire.Settled:
			return [][]byte{b, b, b}
		}
		return [][]byte{b}
	}
	c := r.up()
	for i := range uint64(5) {
		r.decode.Prealloc(c, room.Prealloc{Room: room.ID(i + 1), Lease: lease(i + 1), Conn: c, Tokens: 1})
	}
	var got []room.ID
	for _, e := range r.await(5, is("prefill.Prealloc")) {
		got = append(got, e.prealloc.Room)
	}
	if want := []room.ID{1, 1, 4, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("prefill heard of rooms %v, want %v", got, want)
	}
	r.prefill.Settle(room.Settled{Room: 1, Lease: lease(1), Outcome: room.Done()})
	r.await(3, is("decode.Settled"))
	for i := range 4 {
		r.write(c, 9, i, 0, 20)
	}
	r.await(4, is("decode.Placed"))
	r.close()
}

// peerGone cuts each line after every interesting number of bytes: in each frame of the
// handshake, in headers, in blocks. Nothing may hang, be missing or come twice.
func peerGone(t *testing.T, f Factory) {
	for l := range lines {
		for _, n := range []int64{0, 1, 20, 60, 90, 100, 130, 180, 250, 300, 400, 1000, 5000, 9000, 20_000} {
			if l != dataIn && n > 1000 {
				continue
			}
			r := newRig(t, f, plan{meddle: true})
			r.meddler.cutAfter(l, n)
			r.decode.Dial(4, r.addr())
			e := r.await(1, func(e event) bool { return e.what == "decode.LinkUp" || e.what == "decode.LinkFailed" })[0]
			if e.what == "decode.LinkUp" {
				for i := range uint64(3) {
					r.decode.Prealloc(e.conn, room.Prealloc{Room: room.ID(i + 1), Lease: lease(i + 1), Conn: e.conn, Tokens: 1})
					r.write(e.conn, i+1, 0, 0, 4)
					r.prefill.Settle(room.Settled{Room: room.ID(i + 1), Lease: lease(i + 1), Outcome: room.Done()})
				}
				for _, w := range r.await(3, is("prefill.WriteDone")) {
					if w.err == nil {
						continue // sent, not said to have arrived
					}
				}
				r.meddler.cut() // where the bytes did not suffice
				r.await(1, is("decode.LinkEnd"))
				r.await(1, is("prefill.LinkEnd"))
			}
			r.close()
			if up, failed := r.count(is("decode.LinkUp")), r.count(is("decode.LinkFailed")); up+failed != 1 {
				t.Errorf("T3: %s cut after %d: %d LinkUp and %d LinkFailed for one dial", l, n, up, failed)
			}
		}
	}
}

// halfDead: each of the four lines stops alone, idle and within a chunk; both ends find out.
func halfDead(t *testing.T, f Factory) {
	for l := range lines {
		for _, busy := range []bool{false, true} {
			r := newRig(t, f, plan{meddle: true, blockBytes: 100_000, blocks: 16, bounds: transfer.Bounds{Silence: 400 * time.Millisecond, Window: 300_000, Buffer: 64 << 10}})
			c := r.up()
			if busy {
				for i := range 500 { // 800 MB: more than any buffer on the way takes
					r.write(c, 1, i, 0, 16)
				}
				// A machine that stalls may end the link on its own: that is an end as well.
				r.await(2, func(e event) bool { return e.what == "decode.Placed" || e.what == "decode.LinkEnd" })
			}
			r.meddler.stop(l)
			d := r.await(1, is("decode.LinkEnd"))[0]
			p := r.await(1, is("prefill.LinkEnd"))[0]
			if d.err == nil || p.err == nil {
				t.Errorf("%s stopped: ends without an error: %v, %v", l, d.err, p.err)
			}
			if !errors.Is(d.err, transfer.ErrSilent) && !errors.Is(p.err, transfer.ErrSilent) {
				t.Errorf("%s stopped: %v and %v, want one that noticed the silence", l, d.err, p.err)
			}
			if busy {
				r.await(500, is("prefill.WriteDone"))
			}
			r.close()
		}
	}
}

// idleStaysUp: pings cross all four lines of a link on which nobody says anything.
func idleStaysUp(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true, bounds: transfer.Bounds{Silence: 2 * time.Second}})
	r.meddler.frame = func(l line, b []byte, m wire.Message) [][]byte {
		if _, ok := m.(wire.Ping); ok {
			r.add(event{what: "ping"})
		}
		return [][]byte{b}
	}
	c := r.up()
	ended := func(e event) bool { return e.what == "decode.LinkEnd" || e.what == "prefill.LinkEnd" }
	// Six in each direction take one and a half times the silence bound.
	r.await(12, func(e event) bool { return e.what == "ping" || ended(e) })
	if r.count(ended) != 0 {
		t.Fatalf("an idle link ended: %v", r.await(1, ended)[0].err)
	}
	r.write(c, 1, 0, 0, 2)
	r.await(1, is("decode.Placed"))
	r.close()
}

// replay says again what an honest decode worker said, on a connection of its own.
func replay(t *testing.T, f Factory) {
	r := newRig(t, f, plan{meddle: true})
	var mu sync.Mutex
	var hello, proof []byte
	r.meddler.frame = func(l line, b []byte, m wire.Message) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		switch m.(type) {
		case wire.Hello:
			if l == controlOut {
				hello = b
			}
		case wire.Auth:
			if l == controlOut {
				proof = b
			}
		}
		return [][]byte{b}
	}
	r.up()
	c, err := net.Dial("tcp", r.prefill.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mu.Lock()
	_, err = c.Write(append(append([]byte(nil), hello...), proof...))
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	var last wire.Message
	for {
		b, err := wire.ReadFrame(c, nil, wire.FrameMax)
		if err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			break
		}
		if last, err = wire.Parse(b); err != nil {
			t.Fatal(err)
		}
	}
	if e, ok := last.(wire.Err); !ok || e.Reason != transfer.ReasonSecret {
		t.Errorf("the replayed proof was answered with %+v, want a refusal for the secret", last)
	}
	r.close()
}
