package fake

import (
	"context"
	"fmt"
	"sync"

	"baton/core/room"
	"baton/transfer"
)

// Decode is a dialling end.
type Decode struct {
	world   *World
	id      transfer.Identity
	mem     transfer.Memory
	h       transfer.DecodeHandler
	wg      sync.WaitGroup // everything but answers
	answers transfer.Answers
	names   transfer.Names

	mu     sync.Mutex
	closed bool
	last   room.Conn
	links  map[room.Conn]*link
	stats  transfer.Stats
}

// Decode makes an end without links.
func (w *World) Decode(id transfer.Identity, mem transfer.Memory, h transfer.DecodeHandler) *Decode {
	return &Decode{world: w, id: id, mem: mem, h: h, links: map[room.Conn]*link{}}
}

// Dial makes a link.
func (d *Decode) Dial(peer int32, addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.answers.Add(func() { d.h.LinkFailed(peer, transfer.ErrClosed) })
		return
	}
	d.last++
	conn := d.last
	d.wg.Go(func() {
		if err := d.link(peer, addr, conn); err != nil {
			d.h.LinkFailed(peer, fmt.Errorf("fake: %w", err))
		}
	})
}

func (d *Decode) link(peer int32, addr string, conn room.Conn) error {
	d.world.mu.Lock()
	p := d.world.ends[addr]
	d.world.mu.Unlock()
	if p == nil {
		return fmt.Errorf("nobody is there")
	}
	if err := compare(d.id, p.id); err != nil {
		return err
	}
	l := &link{
		world: d.world, conn: conn, boot: d.id.Boot, peer: peer, p: p, d: d, done: make(chan struct{}), more: make(chan struct{}, 1),
		toPrefill: make(chan any, transfer.ControlMax), toDecode: make(chan any, transfer.ControlMax), offers: make(chan *offer),
	}
	joined, told, err := d.names.Claim(context.Background(), p.id.Boot, conn, peer)
	switch {
	case err != nil:
		return err
	case joined != 0:
		d.h.LinkUp(peer, p.id.Boot, joined)
		told()
		return nil
	}
	err = d.enlist(l)
	if err == nil {
		up := make(chan struct{})
		if err = p.join(l, up); err == nil {
			<-up
		} else {
			d.forget(l)
		}
	}
	d.names.Made(p.id.Boot, err == nil)
	if err != nil {
		return err
	}
	d.h.LinkUp(peer, p.id.Boot, conn)
	var both sync.WaitGroup
	both.Go(func() { l.hear(l.toDecode, func(w any) { d.h.Settled(peer, w.(room.Settled)) }) })
	both.Go(func() { d.receive(l) })
	both.Wait()
	d.forget(l)
	for _, peer := range d.names.Ended(conn) {
		d.h.LinkEnd(peer, conn, l.cause())
	}
	return nil
}

func (d *Decode) enlist(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return transfer.ErrClosed
	}
	d.links[l.conn] = l
	return nil
}

func (d *Decode) forget(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.links, l.conn)
}

// Break ends a connection as a cut cable does.
func (d *Decode) Break(c room.Conn) {
	if l := d.find(c); l != nil {
		l.fail(fmt.Errorf("fake: the test broke connection %d", c))
	}
}

// Prealloc tells prefill of a lease.
func (d *Decode) Prealloc(c room.Conn, p room.Prealloc) {
	if l := d.find(c); l != nil {
		d.posted(l, l.post(l.toPrefill, p))
	}
}

// Cancel gives a lease up and makes its receiver leave.
func (d *Decode) Cancel(c room.Conn, x room.Cancel) {
	l := d.find(c)
	if l == nil {
		return
	}
	l.leaving.Lock()
	if l.inside && !l.leave && l.at.Room == x.Room && l.at.Lease == x.Lease {
		l.leave = true
		close(l.woken)
	}
	l.leaving.Unlock()
	d.posted(l, l.post(l.toPrefill, x))
}

func (d *Decode) find(c room.Conn) *link {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.links[c]
	if l == nil {
		d.stats.WordsDropped++
	}
	return l
}

func (d *Decode) posted(l *link, ok bool) {
	if ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.WordsDropped++
	if len(l.toPrefill) == cap(l.toPrefill) && d.stats.QueueOverflows == 0 {
		d.stats.QueueOverflows++
	}
}

// Stats counts since the start.
func (d *Decode) Stats() transfer.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Links = int64(len(d.links))
	return s
}

// Close ends every link and waits until nothing moves.
func (d *Decode) Close() error {
	d.mu.Lock()
	d.closed = true
	for _, l := range d.links {
		l.fail(transfer.ErrClosed)
	}
	d.mu.Unlock()
	d.wg.Wait()
	d.answers.Wait()
	return nil
}

func (d *Decode) receive(l *link) {
	for {
		select {
		case <-l.done:
			return
		case o := <-l.offers:
			d.chunk(l, o)
		}
	}
}

// chunk is T1 in short: ask, place piece by piece, say once how it ended.
func (d *Decode) chunk(l *link, o *offer) {
	w := o.w
	c := transfer.Chunk{Room: w.Room, Lease: w.Lease, Conn: w.Conn, Chunk: w.Chunk, FirstBlock: w.FirstBlock, N: len(w.Blocks), Last: w.Last}
	l.leaving.Lock()
	l.inside, l.leave, l.at, l.woken = true, false, c, make(chan struct{})
	l.leaving.Unlock()
	defer func() {
		l.leaving.Lock()
		l.inside = false
		l.leaving.Unlock()
	}()
	side := append([]byte(nil), w.Side...)
	blocks, ok := d.h.Arrived(c)
	if !o.begin() { // the link ended, and prefill's source is free
		if ok {
			d.h.Off(c)
		}
		return
	}
	size := len(d.mem.Block(0)) * c.N
	verdict := "scrap"
	if ok {
		verdict = d.place(l, c, w, blocks)
	}
	close(o.finished)
	d.mu.Lock()
	switch verdict {
	case "placed":
		d.stats.PlacedChunks++
		d.stats.PlacedBytes += int64(size)
	case "wrong":
		d.stats.SumErrors++
		fallthrough
	default:
		d.stats.ScrapChunks++
		d.stats.ScrapBytes += int64(size)
	}
	d.mu.Unlock()
	switch verdict {
	case "placed":
		d.h.Placed(c, side)
	case "wrong":
		d.h.Off(c)
		d.h.Refused(c)
	case "left":
		d.h.Off(c)
	}
}

func (d *Decode) place(l *link, c transfer.Chunk, w transfer.Write, blocks []int32) string {
	piece := make([]byte, pieceBytes)
	for i, b := range blocks {
		src, dst := l.p.mem.Block(w.Blocks[i]), d.mem.Block(b)
		want := transfer.Sum(src)
		if w.Sums != nil {
			want = w.Sums[i]
		}
		for off := 0; off < len(dst); {
			select {
			case <-l.done:
				return "left"
			case <-l.woken:
				return "left"
			default:
			}
			n := copy(piece, src[off:])
			if f := d.world.faults.Piece; f != nil {
				f(c, i*len(dst)+off, piece[:n])
			}
			off += copy(dst[off:], piece[:n])
		}
		if transfer.Sum(dst) != want {
			return "wrong"
		}
	}
	return "placed"
}

var _ transfer.Decode = (*Decode)(nil)
