package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/wire"
)

// Prefill is the listening end of links.
type Prefill struct {
	id         Identity
	mem        transfer.Memory
	blockBytes int
	h          PrefillHandler
	ln         *net.TCPListener
	done       chan struct{}  // closed by Close
	wg         sync.WaitGroup // everything but answers
	count      counters
	answers    transfer.Answers
	refusals   transfer.Seldom // bounds their lines: who knocks is not known to belong here
	unaccepted transfer.Seldom

	mu      sync.Mutex
	closed  bool
	half    []*net.TCPConn          // in the handshake, oldest first
	waiting map[pair]chan dataConn  // control connections without their data connection
	links   map[pair]*prefillLink   // up
	newest  map[room.Boot]room.Conn // of links, where Settle goes
}

// pair names a link: connection numbers are unique for one boot of decode only.
type pair struct {
	boot room.Boot
	conn room.Conn
}

type prefillLink struct {
	*link
	*sender
}

// dataConn is handed to the owner of the control connection; nil if its welcome failed.
type dataConn = *net.TCPConn

// Listen opens addr ("127.0.0.1:0") for decode workers. Errors: identity, address.
func Listen(addr string, id Identity, mem transfer.Memory, h PrefillHandler) (*Prefill, error) {
	if id.Role == 0 {
		id.Role = transfer.RolePrefill
	}
	id.Bounds = id.Bounds.WithDefaults()
	if id.Log == nil {
		id.Log = slog.Default()
	}
	if err := checkIdentity(id, transfer.RolePrefill); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: tune(id.Bounds.Buffer), KeepAlive: -1} // pings do that
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	p := &Prefill{
		id: id, mem: mem, blockBytes: len(mem.Block(0)), h: h, ln: ln.(*net.TCPListener), done: make(chan struct{}),
		waiting: map[pair]chan dataConn{}, links: map[pair]*prefillLink{}, newest: map[room.Boot]room.Conn{},
	}
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Addr is where decode workers dial.
func (p *Prefill) Addr() string { return p.ln.Addr().String() }

// Stats counts since the start.
func (p *Prefill) Stats() transfer.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count.stats(len(p.links))
}

// Settle sends the final word on a lease to its decode worker; without a link it is dropped
// and counted, and decode's own end of the link tells it what it needs to know.
func (p *Prefill) Settle(s room.Settled) {
	p.mu.Lock()
	l := p.links[pair{s.Lease.Boot, p.newest[s.Lease.Boot]}]
	p.mu.Unlock()
	if l == nil {
		p.count.wordsDropped.Add(1)
		return
	}
	p.count.posted(l.post(wire.Settled(s)))
}

// Write sends a chunk; exactly one WriteDone follows, never from inside Write.
func (p *Prefill) Write(w Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.checkWrite(w)
	if p.closed {
		err = transfer.ErrClosed
	}
	if err == nil {
		if l := p.links[pair{w.Lease.Boot, w.Conn}]; l != nil {
			err = l.enqueue(w)
		} else {
			err = fmt.Errorf("tcp: connection %d of boot %s: %w", w.Conn, w.Lease.Boot, transfer.ErrNoLink)
		}
	}
	if err != nil {
		p.answers.Add(func() { p.written(w, err) })
	}
}

func (p *Prefill) checkWrite(w Write) error {
	switch {
	case len(w.Blocks) > transfer.ChunkBlocksMax, len(w.Side) > transfer.SideMax, w.Sums != nil && len(w.Sums) != len(w.Blocks):
		return fmt.Errorf("tcp: %d blocks, %d sums, %d bytes of side data, want %d blocks at most, as many sums or none, %d bytes at most: %w",
			len(w.Blocks), len(w.Sums), len(w.Side), transfer.ChunkBlocksMax, transfer.SideMax, transfer.ErrBadRequest)
	}
	return nil
}

// written is the one place that calls WriteDone.
func (p *Prefill) written(w Write, err error) {
	if err != nil {
		p.count.writesFailed.Add(1)
	}
	p.h.WriteDone(w.Room, w.Lease, w.Chunk, err)
}

// Close ends every link and waits until nothing moves.
func (p *Prefill) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.wg.Wait()
		p.answers.Wait()
		return nil
	}
	p.closed = true
	close(p.done)
	for _, c := range p.half {
		_ = c.Close()
	}
	for _, l := range p.links {
		l.fail(transfer.ErrClosed)
	}
	p.mu.Unlock()
	err := p.ln.Close()
	p.wg.Wait()
	p.answers.Wait()
	return err
}

// acceptPause keeps a process without file descriptors from spinning.
const acceptPause = 50 * time.Millisecond

func (p *Prefill) accept() {
	defer p.wg.Done()
	for {
		c, err := p.ln.AcceptTCP()
		if err == nil {
			p.open(c)
			continue
		}
		select {
		case <-p.done:
			return
		case <-time.After(acceptPause):
			if _, ok := p.unaccepted.Say(0); ok {
				p.id.Log.Warn("link not accepted", "detail", err)
			}
		}
	}
}

// open starts the handshake of a connection. When too many are in it the oldest goes: a healthy
// one takes milliseconds, and somebody who only connects must not keep the others out.
func (p *Prefill) open(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return
	}
	if len(p.half) >= transfer.HalfOpenMax {
		_ = p.half[0].Close()
		p.half = p.half[1:]
	}
	p.half = append(p.half, c)
	p.wg.Add(1)
	go p.greet(c)
}

// greet makes the handshake; a control connection's goroutine goes on as its link's owner.
func (p *Prefill) greet(c *net.TCPConn) {
	defer p.wg.Done()
	_ = c.SetDeadline(time.Now().Add(p.id.Bounds.Handshake))
	o, err := answer(c, p.id)
	p.mu.Lock()
	for i, x := range p.half {
		if x == c {
			p.half = append(p.half[:i:i], p.half[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	if err == nil {
		if o.Plane == wire.PlaneData {
			err = p.joinData(c, o)
		} else {
			err = p.joinControl(c, o)
		}
	}
	if errors.Is(err, errLeft) {
		p.id.Log.Debug("link given up by its worker", "peer", c.RemoteAddr().String())
		_ = c.Close()
		return
	}
	if err != nil {
		p.count.linksRefused.Add(1)
		p.logRefused(c, err)
		if m := toErr(err); m != nil {
			_ = c.SetWriteDeadline(time.Now().Add(farewell))
			_, _ = send(c, m)
		}
		_ = c.Close()
	}
}

// joinControl waits for the data connection and then runs the link to its end.
func (p *Prefill) joinControl(c *net.TCPConn, o opened) error {
	k := pair{o.Boot, o.Conn}
	ch := make(chan dataConn, 1)
	if err := p.expect(k, ch); err != nil {
		return err
	}
	_, err := send(c, o.welcome)
	var dat dataConn
	if err == nil {
		late := time.NewTimer(p.id.Bounds.Handshake)
		defer late.Stop()
		select {
		case dat = <-ch:
		case <-late.C:
			err = refuse(transfer.ReasonSilent, "no data connection came within %v", p.id.Bounds.Handshake)
			if left(c) {
				err = errLeft
			}
		case <-p.done:
			err = transfer.ErrClosed
		}
	}
	if err != nil && !p.unexpect(k, ch) {
		dat = <-ch // it is just being welcomed
		if dat != nil {
			_ = dat.Close()
		}
	}
	if err == nil && dat == nil {
		err = errors.New("tcp: the data connection broke in the handshake")
	}
	if err != nil {
		return err
	}
	return p.run(k, o, c, dat)
}

// logRefused says why a connection is no link, and how many there were like it.
func (p *Prefill) logRefused(c *net.TCPConn, err error) {
	err = named(err)
	if n, ok := p.refusals.Say(transfer.ReasonOf(err)); ok {
		detail := err.Error()
		if n > 1 {
			detail = fmt.Sprintf("%s; %d connections ended for such a reason since it was last said", detail, n)
		}
		p.id.Log.Warn("link refused", "peer", c.RemoteAddr().String(), "detail", detail)
	}
}

// errLeft is the end of a control connection whose worker needs no link any more, because it has
// one to us that it made under another name of ours (T10).
var errLeft = errors.New("tcp: the worker left before its link was up")

// left says whether the other end has closed the connection, on which it has nothing to say yet.
func left(c *net.TCPConn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // one in the past would not look
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// expect makes a place for the data connection of k.
func (p *Prefill) expect(k pair, ch chan dataConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return transfer.ErrClosed
	case p.waiting[k] != nil || k.conn <= p.newest[k.boot]:
		return refuse(transfer.ReasonBoot, "connection %d of boot %s is not newer than those before it", k.conn, k.boot)
	case len(p.waiting)+len(p.links) >= transfer.LinksMax:
		return refuse(transfer.ReasonBusy, "%d links are up, the limit is %d", len(p.links), transfer.LinksMax)
	}
	p.waiting[k] = ch
	return nil
}

// unexpect takes the place back; false when the data connection has it already.
func (p *Prefill) unexpect(k pair, ch chan dataConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[k] != ch {
		return false
	}
	delete(p.waiting, k)
	return true
}

// joinData hands a data connection to the owner of its control connection.
func (p *Prefill) joinData(c *net.TCPConn, o opened) error {
	k := pair{o.Boot, o.Conn}
	p.mu.Lock()
	ch := p.waiting[k]
	delete(p.waiting, k)
	p.mu.Unlock()
	if ch == nil {
		return refuse(transfer.ReasonBoot, "no control connection %d of boot %s waits for its data connection", k.conn, k.boot)
	}
	if _, err := send(c, o.welcome); err != nil {
		ch <- nil
		return err
	}
	ch <- c
	return nil
}

// run is the life of a link. The handler hears LinkUp before anything from the link's readers,
// and LinkEnd after everything.
func (p *Prefill) run(k pair, o opened, ctl, dat *net.TCPConn) error {
	l := newLink(k.conn, k.boot, p.id.Bounds, ctl, dat)
	s, err := newSender(p, l, o.Window)
	if err == nil {
		err = p.enlist(k, &prefillLink{l, s})
	}
	if err != nil {
		_ = dat.Close()
		return err
	}
	l.own(l.writeControl)
	l.own(s.run)
	p.h.LinkUp(k.boot, k.conn)
	l.own(func() error { return l.readControl(func(m wire.Message) error { return p.hear(l, s, m) }) })
	l.own(s.readPings)
	l.wg.Wait()
	p.mu.Lock()
	delete(p.links, k)
	if p.newest[k.boot] == k.conn {
		delete(p.newest, k.boot)
	}
	p.mu.Unlock()
	p.h.LinkEnd(k.boot, k.conn, l.cause())
	return nil
}

// enlist makes the link known. An older link of the same boot is over: decode has one link per
// pair and dials again only when it has seen the old one end.
func (p *Prefill) enlist(k pair, l *prefillLink) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return transfer.ErrClosed
	}
	if old := p.links[pair{k.boot, p.newest[k.boot]}]; old != nil {
		old.fail(refuse(transfer.ReasonBoot, "replaced by connection %d of the same boot", k.conn))
	}
	p.links[k], p.newest[k.boot] = l, k.conn
	return nil
}

// hear takes a frame from decode.
func (p *Prefill) hear(l *link, s *sender, m wire.Message) error {
	switch m := m.(type) {
	case wire.Prealloc:
		if m.Conn != l.conn || m.Lease.Boot != l.boot {
			return refuse(transfer.ReasonBoot, "Prealloc of lease %s for connection %d came over connection %d of boot %s", m.Lease, m.Conn, l.conn, l.boot)
		}
		p.h.Prealloc(room.Prealloc(m))
	case wire.Cancel:
		if m.Lease.Boot != l.boot {
			return refuse(transfer.ReasonBoot, "Cancel of lease %s came from boot %s", m.Lease, l.boot)
		}
		p.h.Cancel(room.Cancel(m))
		for _, w := range s.drop(room.Cancel(m)) {
			p.written(w, transfer.ErrCancelled)
		}
	case wire.Grant:
		return s.grant(m)
	default:
		return unexpected(m)
	}
	return nil
}

var _ transfer.Prefill = (*Prefill)(nil)
