package fleet

import (
	"context"
	"fmt"
	"time"

	"baton/serve/gateway"
	"baton/serve/observe"
)

// stay is one life of a worker on the gateway's roster.
type stay struct {
	p     *place
	child *child
	id    int32        // on the roster
	found chan finding // what watch has to say
	close func()       // off the roster, and watched no more
}

// serve keeps a ready worker on the gateway's roster until it ends, has to, or drains: then it
// leaves on its own time, and the place is free for another.
func (p *place) serve(ctx context.Context, c *child, line observe.Ready) life {
	began := time.Now()
	s, err := p.join(ctx, c, line)
	if err != nil {
		return life{how: err.Error()}
	}
	l := life{joined: true}
	select {
	case <-c.exited:
		l.how, l.wished = c.how(), c.err == nil
		s.close()
	case f := <-s.found:
		l = s.act(ctx, f)
	case <-ctx.Done():
		s.dismiss()
		s.close()
	}
	l.served = time.Since(began)
	return l
}

// join puts a worker on the roster. One that does not come onto it has ended.
func (p *place) join(ctx context.Context, c *child, line observe.Ready) (*stay, error) {
	g := p.f.gateway
	worker, err := p.about(ctx, line.HTTP)
	if err != nil {
		c.kill()
		return nil, err
	}
	id, err := g.Join(ctx, gateway.Worker{Name: p.name, Role: p.role, HTTP: line.HTTP, Link: line.Link, Boot: line.Boot,
		PID: line.PID, ContextTokens: worker.MaxModelLen, KVTokens: worker.Blocks * worker.BlockTokens,
		Choices: worker.ChoicesMax, Manifest: worker.Manifest})
	if err != nil {
		c.leave(p.f.Times.Leave, p.f.Now)
		return nil, err
	}
	p.f.joined()
	// Neither with ctx: a worker is watched until it has ended, and leaves the roster also when
	// the fleet ends.
	always := context.WithoutCancel(ctx)
	watching, stop := context.WithCancel(always)
	s := &stay{p: p, child: c, id: id, found: make(chan finding, findings)}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(watching, id, line.HTTP, s.found)
	}()
	s.close = func() {
		stop()
		<-watched
		g.Leave(always, id)
	}
	return s, nil
}

// act does what a finding asks for.
func (s *stay) act(ctx context.Context, f finding) life {
	p := s.p
	if f == frozen {
		s.child.kill()
		s.close()
		return life{joined: true, how: fmt.Sprintf("killed: its health was not good for %v", p.f.Times.Frozen)}
	}
	select {
	case p.leaving <- struct{}{}:
		p.left.Go(func() {
			defer func() { <-p.leaving }()
			s.seeOff(ctx)
		})
		return life{joined: true, wished: true, drains: true}
	default: // more would fill the machine; this one's successor waits
		s.seeOff(ctx)
		return life{joined: true, wished: true, how: "drained"}
	}
}

// seeOff waits until a worker that drains has left: by itself, or told to when nothing is left
// on it (F6).
func (s *stay) seeOff(ctx context.Context) {
	defer s.close()
	began := time.Now()
	select {
	case <-s.child.exited:
		s.last(true) // a signal that ended it was somebody's wish too
	case f := <-s.found:
		if f == frozen {
			s.child.kill()
			s.p.f.Log.Warn("worker that drained was killed, its health was not good", "worker", s.p.name, "after", s.p.f.Times.Frozen)
			return
		}
		s.dismiss()
	case <-ctx.Done():
		s.dismiss()
	}
	s.p.f.Log.Info("worker that drained has left", "worker", s.p.name, "detail", s.child.how(), "after", time.Since(began))
}

// dismiss asks a worker to leave.
func (s *stay) dismiss() {
	began := time.Now()
	killed := s.child.leave(s.p.f.Times.Leave, s.p.f.Now)
	switch bad := s.last(killed); {
	case bad || !killed:
	case s.p.f.hurried():
		s.p.f.Log.Info("worker was stopped at once", "worker", s.p.name, "after", time.Since(began))
	default:
		s.p.f.Log.Warn("worker did not leave and was killed", "worker", s.p.name, "after", time.Since(began))
	}
}

// last takes the last word of a worker that was told to leave about its books and blocks, and
// says whether it is a bad one (F7).
func (s *stay) last(killed bool) (bad bool) {
	if !s.child.failed(killed) {
		return false
	}
	s.p.f.Log.Error("worker found something wrong at its end", "worker", s.p.name, "detail", s.child.how())
	s.p.f.fault(fmt.Errorf("fleet: worker %s found something wrong at its end: %s", s.p.name, s.child.how()))
	return true
}
