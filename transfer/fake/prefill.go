package fake

import (
	"fmt"
	"sync"
	"sync/atomic"

	"baton/core/room"
	"baton/transfer"
)

// Prefill is a listening end.
type Prefill struct {
	world   *World
	id      transfer.Identity
	mem     transfer.Memory
	h       transfer.PrefillHandler
	addr    string
	wg      sync.WaitGroup // everything but answers
	answers transfer.Answers
	sent    atomic.Int64

	mu      sync.Mutex
	closed  bool
	links   map[room.Boot]*link // one per decode boot
	dropped int64
	failed  int64
}

// Listen makes an end with an address in this world.
func (w *World) Listen(id transfer.Identity, mem transfer.Memory, h transfer.PrefillHandler) (*Prefill, error) {
	if id.Role == transfer.RoleDecode {
		return nil, fmt.Errorf("fake: role %s cannot listen", id.Role)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	p := &Prefill{world: w, id: id, mem: mem, h: h, addr: fmt.Sprintf("fake:%d", w.last), links: map[room.Boot]*link{}}
	w.ends[p.addr] = p
	return p, nil
}

// Addr is what decode dials.
func (p *Prefill) Addr() string { return p.addr }

// Stats counts since the start.
func (p *Prefill) Stats() transfer.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return transfer.Stats{Links: int64(len(p.links)), SentBytes: p.sent.Load(), WordsDropped: p.dropped, WritesFailed: p.failed}
}

// Settle sends the final word on a lease.
func (p *Prefill) Settle(s room.Settled) {
	p.mu.Lock()
	l := p.links[s.Lease.Boot]
	if l == nil {
		p.dropped++
	}
	p.mu.Unlock()
	if l != nil {
		l.post(l.toDecode, s)
	}
}

// Write sends a chunk; one WriteDone follows.
func (p *Prefill) Write(w transfer.Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := transfer.ErrNoLink
	l := p.links[w.Lease.Boot]
	switch {
	case p.closed:
		p.answers.Add(func() { p.written(w, transfer.ErrClosed) })
		return
	case len(w.Blocks) > transfer.ChunkBlocksMax, len(w.Side) > transfer.SideMax, w.Sums != nil && len(w.Sums) != len(w.Blocks):
		err = transfer.ErrBadRequest
	case l != nil && l.conn == w.Conn && l.enqueue(w):
		return
	}
	p.wg.Go(func() { p.written(w, err) })
}

func (l *link) enqueue(w transfer.Write) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return false
	}
	l.queue = append(l.queue, w)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return true
}

func (p *Prefill) written(w transfer.Write, err error) {
	if err != nil {
		p.mu.Lock()
		p.failed++
		p.mu.Unlock()
	}
	p.h.WriteDone(w.Room, w.Lease, w.Chunk, err)
}

// Close ends every link and waits until nothing moves.
func (p *Prefill) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.links {
		l.fail(transfer.ErrClosed)
	}
	p.mu.Unlock()
	p.wg.Wait()
	p.answers.Wait()
	return nil
}

// join makes a link known and starts this end of it; up is closed when the handler knows.
func (p *Prefill) join(l *link, up chan struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return transfer.ErrClosed
	}
	if old := p.links[l.boot]; old != nil {
		old.fail(&transfer.Refusal{Reason: transfer.ReasonBoot, Text: "replaced by a newer connection of the same boot"})
	}
	p.links[l.boot] = l
	p.wg.Go(func() {
		p.h.LinkUp(l.boot, l.conn)
		close(up)
		var both sync.WaitGroup
		both.Go(func() { l.hear(l.toPrefill, func(w any) { p.word(l, w) }) })
		both.Go(func() { p.send(l) })
		both.Wait()
		p.mu.Lock()
		if p.links[l.boot] == l {
			delete(p.links, l.boot)
		}
		p.mu.Unlock()
		p.h.LinkEnd(l.boot, l.conn, l.cause())
	})
	return nil
}

func (p *Prefill) word(l *link, w any) {
	switch w := w.(type) {
	case room.Prealloc:
		p.h.Prealloc(w)
	case room.Cancel:
		p.h.Cancel(w)
		for _, x := range l.drop(w) {
			p.written(x, transfer.ErrCancelled)
		}
	}
}

func (l *link) drop(c room.Cancel) (out []transfer.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keep []transfer.Write
	for _, w := range l.queue {
		if w.Room == c.Room && w.Lease == c.Lease {
			out = append(out, w)
		} else {
			keep = append(keep, w)
		}
	}
	l.queue = keep
	return out
}

// send offers one chunk after the other and answers for each.
func (p *Prefill) send(l *link) {
	for {
		l.mu.Lock()
		var w transfer.Write
		n := len(l.queue)
		if n > 0 {
			w, l.queue = l.queue[0], l.queue[1:]
		}
		l.mu.Unlock()
		if n == 0 {
			select {
			case <-l.more:
				continue
			case <-l.done:
			}
			break
		}
		if !p.offer(l, w) {
			break
		}
	}
	l.mu.Lock()
	l.shut = true
	left := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, w := range left {
		p.written(w, l.cause())
	}
}

// offer moves one chunk; false when the link has ended.
func (p *Prefill) offer(l *link, w transfer.Write) bool {
	o := &offer{w: w, finished: make(chan struct{})}
	select {
	case l.offers <- o:
	case <-l.done:
		p.written(w, l.cause())
		return false
	}
	select {
	case <-o.finished:
	case <-l.done:
		if o.withdraw() {
			p.written(w, l.cause())
			return false
		}
		<-o.finished
	}
	p.sent.Add(int64(len(w.Blocks) * len(p.mem.Block(0))))
	p.written(w, nil)
	return true
}

var _ transfer.Prefill = (*Prefill)(nil)
