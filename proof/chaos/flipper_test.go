package chaos

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"baton/core/room"
	"baton/transfer/wire"
)

// flipper stands on the link between two workers and flips bits of one payload byte of a room:
// what a bad cable, a bad switch or bad memory on the way does behind TCP's own weak sum. All
// else it passes on as it is.
type flipper struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	room  room.ID // whose byte; the rest counts for this room
	at    int     // of the room's KV, all blocks in a row
	mask  byte
	done  int // bytes flipped since it was armed
	ended bool
}

func newFlipper(t *testing.T, target string) *flipper {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flipper{ln: ln, target: target}
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		f.mu.Lock()
		f.ended = true
		for _, c := range f.conns {
			c.Close()
		}
		f.mu.Unlock()
		ln.Close()
		f.wg.Wait()
	})
	return f
}

func (f *flipper) addr() string { return f.ln.Addr().String() }

// arm chooses the next byte to flip.
func (f *flipper) arm(id room.ID, at int, mask byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room, f.at, f.mask, f.done = id, at, mask, 0
}

func (f *flipper) flipped() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

func (f *flipper) accept() {
	for {
		decode, err := f.ln.Accept()
		if err != nil {
			return
		}
		prefill, err := net.Dial("tcp", f.target)
		if err != nil {
			decode.Close()
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, decode, prefill)
		if f.ended {
			decode.Close()
			prefill.Close()
		}
		f.mu.Unlock()
		f.wg.Go(func() { f.join(decode, prefill) })
	}
}

// join passes both ways until either end closes.
func (f *flipper) join(decode, prefill net.Conn) {
	hang := func() { decode.Close(); prefill.Close() }
	defer hang()
	hello, err := passFrame(prefill, decode)
	if err != nil {
		return
	}
	f.wg.Go(func() { io.Copy(prefill, decode); hang() })
	if h, ok := hello.(wire.Hello); ok && h.Plane == wire.PlaneData {
		for range 2 { // Challenge, Auth
			if _, err := passFrame(decode, prefill); err != nil {
				return
			}
		}
		f.passChunks(decode, prefill)
		return
	}
	io.Copy(decode, prefill)
}

func passFrame(to io.Writer, from io.Reader) (wire.Message, error) {
	b, err := wire.ReadFrame(from, nil, wire.FrameMax)
	if err != nil {
		return nil, err
	}
	m, err := wire.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("chaos: on the link: %w", err)
	}
	_, err = to.Write(wire.Append(nil, m))
	return m, err
}

// passChunks passes chunks until an end closes; an error is that end.
func (f *flipper) passChunks(to io.Writer, from io.Reader) error {
	head, buf := make([]byte, wire.HeaderBytes), make([]byte, 16<<10)
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return err
		}
		if _, err := to.Write(head); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, int64(h.TrailerBytes())); err != nil {
			return err
		}
		for off := 0; off < h.PayloadBytes(); {
			b := buf[:min(len(buf), h.PayloadBytes()-off)]
			if _, err := io.ReadFull(from, b); err != nil {
				return err
			}
			f.flip(h, off, b)
			if _, err := to.Write(b); err != nil {
				return err
			}
			off += len(b)
		}
	}
}

// flip flips the armed byte when b, which stands at off of the chunk's payload, holds it.
func (f *flipper) flip(h wire.Header, off int, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.at - h.FirstBlock*h.BlockBytes - off; h.Room == f.room && at >= 0 && at < len(b) {
		b[at] ^= f.mask
		f.done++
	}
}
