package fleet

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// place is one worker's place in the fleet, kept filled over many lives.
type place struct {
	f       *fleet
	role    string
	name    string         // role-0
	leaving chan struct{}  // holds one for each life that leaves beside its successor
	left    sync.WaitGroup // of those
}

func newPlace(f *fleet, role string, n int) *place {
	return &place{f: f, role: role, name: fmt.Sprintf("%s-%d", role, n), leaving: make(chan struct{}, leavingMax)}
}

// keep fills the place until ctx ends. It returns an error only when no worker ever came onto
// the roster, not even after several tries, or refused to: then none that follows would.
func (p *place) keep(ctx context.Context) error {
	runtime.LockOSThread() // see start; never unlocked: the thread ends with this goroutine
	defer p.left.Wait()    // and would take those with it that have not left yet
	failures, everJoined := 0, false
	pauses := backoff{first: p.f.Times.Pause}
	for {
		l := p.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		everJoined = everJoined || l.joined
		failures++
		if !everJoined && (failures >= firstTries || l.refused) {
			return fmt.Errorf("fleet: worker %s could not start: %s", p.name, l.how)
		}
		if l.wished { // no failure, and no row of them
			l.served = steadyAfter
		}
		pause := pauses.after(l.served)
		switch {
		case l.drains:
			p.f.Log.Info("worker drains, another takes its place", "worker", p.name, "after", pause)
		case l.wished:
			p.f.Log.Info("worker has left, another takes its place", "worker", p.name, "detail", l.how, "after", pause)
		default:
			p.f.Log.Warn("worker ended, it is started again", "worker", p.name, "detail", l.how, "after", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// backoff chooses the pause before a worker is started again.
type backoff struct {
	first time.Duration
	last  time.Duration // 0 if there was none in this row of failures
}

// after returns the pause behind a life that served so long: the first one, doubled for every
// failure in a row.
func (b *backoff) after(served time.Duration) time.Duration {
	if served >= steadyAfter || b.last == 0 {
		b.last = b.first
	} else {
		b.last = min(2*b.last, max(pauseMax, b.first))
	}
	return b.last
}

// life is how one life of a worker went, as far as its successor needs to know.
type life struct {
	joined  bool          // it came onto the gateway's roster
	served  time.Duration // since then
	refused bool          // it cannot start as it is configured, now or later
	wished  bool          // somebody told it to leave
	drains  bool          // and it has not left yet
	how     string        // it ended
}

// live is one life of the worker, from its start to its end.
func (p *place) live(ctx context.Context) life {
	cmd := p.f.Command(p.role, p.name)
	cmd.Env = append(cmd.Environ(), p.f.Secret+"="+p.f.secret)
	c, err := start(cmd, p.name, p.f.Workers, func(done, total int64) { p.f.Loading(p.name, done, total) })
	if err != nil {
		return life{how: err.Error()}
	}
	late := time.NewTimer(p.f.Times.Start)
	defer late.Stop()
	select {
	case line := <-c.ready:
		return p.serve(ctx, c, line)
	case <-c.exited:
		p.f.Loading(p.name, 0, 0)
		return life{how: c.how(), refused: c.refused()}
	case <-late.C:
		c.kill()
		p.f.Loading(p.name, 0, 0)
		return life{how: fmt.Sprintf("not ready after %v", p.f.Times.Start)}
	case <-ctx.Done():
		c.leave(p.f.Times.Leave, p.f.Now)
		return life{how: "the fleet ends"}
	}
}
