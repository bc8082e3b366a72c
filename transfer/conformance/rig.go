package conformance

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"baton/core/room"
	"baton/transfer"
)

// rig is two ends, their pools and the book of what both handlers heard.
type rig struct {
	*book
	f        Factory
	src, dst *pool
	prefill  transfer.Prefill
	decode   transfer.Decode
	meddler  *meddler

	mu       sync.Mutex
	accept   func(transfer.Chunk) bool  // nil: always
	arrive   func(transfer.Chunk)       // called in Arrived before the answer
	hook     func(what string)          // called in every callback
	inside   map[transfer.Chunk][]int32 // accepted, neither Placed nor Off yet
	upConns  map[upConn]int             // decode: 1 up, 2 ended
	accepted int
	ended    int
	closed   bool // by close
}

// upConn is a link as one peer of it hears of it.
type upConn struct {
	peer int32
	conn room.Conn
}

// plan says how a rig is made. Zero fields take what most cases want.
type plan struct {
	blocks, blockBytes int
	srcBlocks          int
	bounds             transfer.Bounds
	meddle             bool
	prefillID          func(*transfer.Identity)
	decodeID           func(*transfer.Identity)
	hook               func(what string)
}

const (
	prefillBoot room.Boot = 0xA1
	decodeBoot  room.Boot = 0xD1
)

var secret = []byte("sixteen bytes at the least")

func newRig(t *testing.T, f Factory, p plan) *rig {
	t.Helper()
	if p.blocks == 0 {
		p.blocks = 32
	}
	if p.blockBytes == 0 {
		p.blockBytes = 5000 // no power of two, less than a piece
	}
	if p.srcBlocks == 0 {
		p.srcBlocks = 32
	}
	r := &rig{book: newBook(t), f: f, hook: p.hook, inside: map[transfer.Chunk][]int32{}, upConns: map[upConn]int{}}
	r.src, r.dst = newPool(t, p.srcBlocks, p.blockBytes), newPool(t, p.blocks, p.blockBytes)
	for i := range p.srcBlocks {
		stamp(r.src.Block(int32(i)), uint64(i)+1)
	}
	pid := transfer.Identity{Boot: prefillBoot, Role: transfer.RolePrefill, Secret: secret, Manifest: []byte("layout"), Bounds: p.bounds}
	did := transfer.Identity{Boot: decodeBoot, Role: transfer.RoleDecode, Secret: secret, Manifest: []byte("layout"), Bounds: p.bounds}
	if p.prefillID != nil {
		p.prefillID(&pid)
	}
	if p.decodeID != nil {
		p.decodeID(&did)
	}
	var err error
	if r.prefill, err = f.Listen(pid, r.src, prefillSide{r}); err != nil {
		t.Fatal(err)
	}
	r.decode = f.Decode(did, r.dst, decodeSide{r})
	if p.meddle {
		r.meddler = newMeddler(t, r.prefill.Addr())
	}
	t.Cleanup(r.abandon)
	return r
}

// addr is where decode dials: the prefill end, or the meddler before it.
func (r *rig) addr() string {
	if r.meddler != nil {
		return r.meddler.addr()
	}
	return r.prefill.Addr()
}

// up makes a link and returns its connection when both ends know it.
func (r *rig) up() room.Conn {
	r.t.Helper()
	n := r.count(is("decode.LinkUp"))
	r.decode.Dial(4, r.addr())
	e := r.await(n+1, is("decode.LinkUp"))[n]
	r.await(1, func(p event) bool { return p.what == "prefill.LinkUp" && p.conn == e.conn })
	return e.conn
}

// abandon ends what a failed case left behind, so that the next one is judged for itself. It
// waits for nothing, as what failed may be that a Close does not return.
func (r *rig) abandon() {
	if r.closed {
		return
	}
	go func() { _ = r.decode.Close() }()
	go func() { _ = r.prefill.Close() }()
	if r.meddler != nil {
		go r.meddler.close()
	}
}

// close closes everything and checks what must hold at every end.
func (r *rig) close() {
	r.t.Helper()
	r.closed = true
	if r.meddler != nil {
		r.meddler.openAll()
	}
	if err := r.decode.Close(); err != nil {
		r.t.Errorf("decode end: %v", err)
	}
	if err := r.prefill.Close(); err != nil {
		r.t.Errorf("prefill end: %v", err)
	}
	if r.meddler != nil {
		r.meddler.close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.inside) != 0 || r.accepted != r.ended {
		r.t.Errorf("T1: %d chunks were accepted, %d ended in Placed or Off", r.accepted, r.ended)
	}
	for c, state := range r.upConns {
		if state != 2 {
			r.t.Errorf("T2: connection %d was up for peer %d and has no LinkEnd", c.conn, c.peer)
		}
	}
	if ups, ends := r.count(is("prefill.LinkUp")), r.count(is("prefill.LinkEnd")); ups != ends {
		r.t.Errorf("T2: prefill heard %d LinkUp and %d LinkEnd", ups, ends)
	}
	r.dst.verify()
	if d, p := r.decode.Stats(), r.prefill.Stats(); d.Links != 0 || p.Links != 0 {
		r.t.Errorf("%d and %d links are counted after Close", d.Links, p.Links)
	}
}

func lease(seq uint64) room.Lease { return room.Lease{Boot: decodeBoot, Seq: seq} }

// write sends blocks [first, first+n) of the source as one chunk of room and lease id.
func (r *rig) write(c room.Conn, id uint64, chunk, first, n int) transfer.Write {
	w := transfer.Write{
		Room: room.ID(id), Lease: lease(id), Conn: c, Chunk: chunk, FirstBlock: first, Last: chunk == 99,
		Side: fmt.Appendf(nil, "side %d/%d", id, chunk),
	}
	for i := range n {
		b := int32((first + i) % (len(r.src.mem) / r.src.bytes))
		w.Blocks = append(w.Blocks, b)
		w.Sums = append(w.Sums, transfer.Sum(r.src.Block(b)))
	}
	r.prefill.Write(w)
	return w
}

// prefillSide and decodeSide are the handlers; they hold the invariants that can be checked
// while things happen.
type prefillSide struct{ *rig }

func (s prefillSide) on(e event) {
	e.what = "prefill." + e.what
	s.add(e)
	if s.hook != nil {
		s.hook(e.what)
	}
}

func (s prefillSide) LinkUp(b room.Boot, c room.Conn) { s.on(event{what: "LinkUp", boot: b, conn: c}) }
func (s prefillSide) LinkEnd(b room.Boot, c room.Conn, err error) {
	s.on(event{what: "LinkEnd", boot: b, conn: c, err: err})
}
func (s prefillSide) Prealloc(p room.Prealloc) { s.on(event{what: "Prealloc", prealloc: p}) }
func (s prefillSide) Cancel(c room.Cancel)     { s.on(event{what: "Cancel", cancel: c}) }
func (s prefillSide) WriteDone(r room.ID, l room.Lease, chunk int, err error) {
	s.on(event{what: "WriteDone", chunk: transfer.Chunk{Room: r, Lease: l, Chunk: chunk}, err: err})
}

type decodeSide struct{ *rig }

func (s decodeSide) on(e event) {
	e.what = "decode." + e.what
	s.add(e)
	if s.hook != nil {
		s.hook(e.what)
	}
}

func (s decodeSide) LinkUp(peer int32, b room.Boot, c room.Conn) {
	s.mu.Lock()
	k := upConn{peer, c}
	if s.upConns[k]++; s.upConns[k] != 1 {
		s.t.Errorf("T3: connection %d is up twice for peer %d", c, peer)
	}
	s.mu.Unlock()
	s.on(event{what: "LinkUp", peer: peer, boot: b, conn: c})
}

func (s decodeSide) LinkFailed(peer int32, err error) {
	s.on(event{what: "LinkFailed", peer: peer, err: err})
}

func (s decodeSide) LinkEnd(peer int32, c room.Conn, err error) {
	s.mu.Lock()
	k := upConn{peer, c}
	if s.upConns[k]++; s.upConns[k] != 2 {
		s.t.Errorf("T2: LinkEnd of connection %d for peer %d without one LinkUp", c, peer)
	}
	for x := range s.inside {
		if x.Conn == c {
			s.t.Errorf("T2: LinkEnd of connection %d while a receiver is in chunk %d of room %s", c, x.Chunk, x.Room)
		}
	}
	s.mu.Unlock()
	s.on(event{what: "LinkEnd", peer: peer, conn: c, err: err})
}

func (s decodeSide) Settled(peer int32, w room.Settled) {
	s.on(event{what: "Settled", peer: peer, settled: w})
}

func (s decodeSide) Arrived(c transfer.Chunk) ([]int32, bool) {
	s.on(event{what: "Arrived", conn: c.Conn, chunk: c})
	s.mu.Lock()
	arrive, accept := s.arrive, s.accept
	s.mu.Unlock()
	if arrive != nil {
		arrive(c)
	}
	if accept != nil && !accept(c) {
		return nil, false
	}
	blocks, ok := s.dst.take(c.N)
	if ok {
		s.mu.Lock()
		s.inside[c] = blocks
		s.accepted++
		s.mu.Unlock()
	}
	return blocks, ok
}

// left takes the blocks of a chunk that has ended; they are reassigned at once.
func (s decodeSide) left(what string, c transfer.Chunk, whole bool) {
	s.mu.Lock()
	blocks, ok := s.inside[c]
	delete(s.inside, c)
	s.ended++
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("T1: %s of chunk %d of room %s, which no receiver is in", what, c.Chunk, c.Room)
	}
	if whole {
		for i, b := range blocks {
			if want := s.src.Block(int32((c.FirstBlock + i) % (len(s.src.mem) / s.src.bytes))); !bytes.Equal(s.dst.Block(b), want) {
				s.t.Errorf("T5: block %d of chunk %d of room %s is not what was sent", i, c.Chunk, c.Room)
			}
		}
	}
	s.dst.give(blocks)
}

func (s decodeSide) Placed(c transfer.Chunk, side []byte) {
	s.left("Placed", c, true)
	s.on(event{what: "Placed", conn: c.Conn, chunk: c, side: string(side)})
}

func (s decodeSide) Off(c transfer.Chunk) {
	s.left("Off", c, false)
	s.on(event{what: "Off", conn: c.Conn, chunk: c})
}

func (s decodeSide) Refused(c transfer.Chunk) {
	s.on(event{what: "Refused", conn: c.Conn, chunk: c})
}
