package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// Decode is the dialling end of links.
type Decode struct {
	id      Identity
	mem     transfer.Memory
	h       DecodeHandler
	ctx     context.Context // ends dials at Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // everything but answers
	answers transfer.Answers
	count   counters
	names   transfer.Names
	blind   bool // benchmarks only: take blocks as they come

	mu     sync.Mutex
	closed bool
	last   room.Conn
	links  map[room.Conn]*decodeLink
}

type decodeLink struct {
	*link
	*receiver
}

// NewDecode makes an end without links. A bad identity shows as the error of each Dial.
func NewDecode(id Identity, mem transfer.Memory, h DecodeHandler) *Decode {
	if id.Role == 0 {
		id.Role = transfer.RoleDecode
	}
	id.Bounds = id.Bounds.WithDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Decode{id: id, mem: mem, h: h, ctx: ctx, cancel: cancel, links: map[room.Conn]*decodeLink{}}
}

// Dial makes a link to the prefill worker at addr; exactly one of LinkUp and LinkFailed follows.
func (d *Decode) Dial(peer int32, addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.answers.Add(func() { d.h.LinkFailed(peer, transfer.ErrClosed) })
		return
	}
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		err := d.link(peer, addr)
		if overtaken(err) {
			err = d.link(peer, addr)
		}
		if err != nil {
			d.h.LinkFailed(peer, err)
		}
	}()
}

// overtaken says that prefill has a newer link of ours: while we dialled another dial of the
// same worker, by another name, was faster. Its link can be joined.
func overtaken(err error) bool {
	var r *transfer.Refusal
	return errors.As(err, &r) && r.Remote && r.Reason == transfer.ReasonBoot
}

// next numbers a connection.
func (d *Decode) next() room.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	return d.last
}

// Prealloc tells prefill of a lease. On a connection that has ended it is dropped and counted:
// LinkEnd has told or will tell what the caller needs to know.
func (d *Decode) Prealloc(c room.Conn, p room.Prealloc) {
	if p.Conn != c {
		panic(fmt.Sprintf("assertion: Prealloc of lease %s names connection %d and goes over %d", p.Lease, p.Conn, c))
	}
	if l := d.find(c); l != nil {
		d.count.posted(l.post(wire.Prealloc(p)))
	}
}

// Cancel tells prefill that a lease is given up, and makes the receiver leave its blocks.
func (d *Decode) Cancel(c room.Conn, x room.Cancel) {
	if l := d.find(c); l != nil {
		l.revoke(x)
		d.count.posted(l.post(wire.Cancel(x)))
	}
}

func (d *Decode) find(c room.Conn) *decodeLink {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.links[c]
	if l == nil {
		d.count.wordsDropped.Add(1)
	}
	return l
}

// Stats counts since the start.
func (d *Decode) Stats() transfer.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count.stats(len(d.links))
}

// Close ends every dial and link and waits until nothing moves.
func (d *Decode) Close() error {
	d.mu.Lock()
	d.closed = true
	d.cancel()
	for _, l := range d.links {
		l.fail(transfer.ErrClosed)
	}
	d.mu.Unlock()
	d.wg.Wait()
	d.answers.Wait()
	return nil
}

// link is the life of one link; an error means that it never was up.
func (d *Decode) link(peer int32, addr string) error {
	if err := checkIdentity(d.id, transfer.RoleDecode); err != nil {
		return err
	}
	conn := d.next()
	ctx, cancel := context.WithTimeout(d.ctx, d.id.Bounds.Handshake)
	defer cancel()
	ctl, boot, err := d.connect(ctx, addr, wire.PlaneControl, conn)
	if err != nil {
		return d.closing(err)
	}
	joined, told, err := d.names.Claim(ctx, boot, conn, peer)
	if err != nil || joined != 0 {
		_ = ctl.Close()
	}
	switch {
	case err != nil:
		return d.closing(err)
	case joined != 0:
		d.h.LinkUp(peer, boot, joined)
		told()
		return nil
	}
	l, r, err := d.complete(ctx, addr, ctl, boot, conn)
	d.names.Made(boot, err == nil)
	if err != nil {
		_ = ctl.Close()
		return d.closing(err)
	}
	d.run(l, r, peer)
	return nil
}

// complete makes a link of a control connection, with a data connection.
func (d *Decode) complete(ctx context.Context, addr string, ctl *net.TCPConn, boot room.Boot, conn room.Conn) (*link, *receiver, error) {
	dat, again, err := d.connect(ctx, addr, wire.PlaneData, conn)
	if err == nil && again != boot {
		_ = dat.Close()
		err = refuse(transfer.ReasonBoot, "the worker dialled restarted during the handshake: boot %s, then %s", boot, again)
	}
	if err != nil {
		return nil, nil, err
	}
	l := newLink(conn, boot, d.id.Bounds, ctl, dat)
	r, err := newReceiver(d, l)
	if err == nil {
		err = d.enlist(&decodeLink{l, r})
	}
	if err != nil {
		_ = dat.Close()
		return nil, nil, err
	}
	return l, r, nil
}

// closing names the error of a dial that Close interrupted.
func (d *Decode) closing(err error) error {
	if d.ctx.Err() != nil {
		return transfer.ErrClosed
	}
	return named(err)
}

// connect dials one connection and makes its handshake, within ctx.
func (d *Decode) connect(ctx context.Context, addr string, plane wire.Plane, conn room.Conn) (*net.TCPConn, room.Boot, error) {
	dialer := net.Dialer{Control: tune(d.id.Bounds.Buffer), KeepAlive: -1} // pings do that
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) })
	boot, err := offer(c, d.id, plane, conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, 0, err
	}
	return c.(*net.TCPConn), boot, nil
}

func (d *Decode) enlist(l *decodeLink) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return transfer.ErrClosed
	}
	d.links[l.conn] = l
	return nil
}

// run serves a link that is up. LinkEnd comes when the receiver is off and silent (T2).
func (d *Decode) run(l *link, r *receiver, peer int32) {
	l.own(l.writeControl)
	l.own(func() error { return pingData(l) })
	d.h.LinkUp(peer, l.boot, l.conn)
	l.own(func() error { return l.readControl(func(m wire.Message) error { return d.hear(peer, m) }) })
	l.own(r.run)
	l.wg.Wait()
	d.mu.Lock()
	delete(d.links, l.conn)
	d.mu.Unlock()
	for _, peer := range d.names.Ended(l.conn) {
		d.h.LinkEnd(peer, l.conn, l.cause())
	}
}

// hear takes a frame from prefill.
func (d *Decode) hear(peer int32, m wire.Message) error {
	s, ok := m.(wire.Settled)
	if !ok {
		return unexpected(m)
	}
	if s.Lease.Boot != d.id.Boot {
		return refuse(transfer.ReasonBoot, "Settled names lease %s, this is boot %s", s.Lease, d.id.Boot)
	}
	d.h.Settled(peer, room.Settled(s))
	return nil
}

// pingData is all that decode sends on the data connection.
func pingData(l *link) error {
	b := wire.AppendHeader(nil, wire.Header{Ping: true})
	tick := time.NewTicker(l.bounds.Silence / pingsPerSilence)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return nil
		case <-tick.C:
			if err := l.dat.SetWriteDeadline(time.Now().Add(l.bounds.Silence)); err != nil {
				return err
			}
			if _, err := l.dat.Write(b); err != nil {
				return err
			}
		}
	}
}

var _ transfer.Decode = (*Decode)(nil)
