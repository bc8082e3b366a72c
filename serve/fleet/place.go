package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"baton/serve/gateway"
	"baton/serve/observe"
)

// place is one worker's place in the fleet, kept filled over many lives.
type place struct {
	f    *fleet
	role string
	name string // role-0
}

// keep fills the place until ctx ends. It returns an error only when no worker ever came onto
// the roster, not even after several tries: then none that follows would.
func (p *place) keep(ctx context.Context) error {
	runtime.LockOSThread() // see start; never unlocked: the thread ends with this goroutine
	failures, everJoined := 0, false
	pauses := backoff{first: p.f.Times.Pause}
	for {
		l := p.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		everJoined = everJoined || l.joined
		failures++
		if !everJoined && failures >= firstTries {
			return fmt.Errorf("fleet: worker %s could not start: %s", p.name, l.how)
		}
		level := slog.LevelWarn
		if l.found == drained { // somebody wished it: no failure, and no row of them
			level, l.served = slog.LevelInfo, steadyAfter
		}
		pause := pauses.after(l.served)
		p.f.Log.Log(ctx, level, "worker ended, it is started again", "worker", p.name, "detail", l.how, "after", pause)
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

// life is how one life of a worker went.
type life struct {
	joined bool          // it came onto the gateway's roster
	served time.Duration // since then
	found  finding       // what ended it, if that was watch's word
	how    string        // it ended
}

// finding is why watch wants a worker to end.
type finding uint8

const (
	_       finding = iota
	frozen          // its health was not good for too long
	drained         // it was told to drain, and nothing is left on it
)

// live is one life of the worker, from its start to its end.
func (p *place) live(ctx context.Context) life {
	cmd := p.f.Command(p.role, p.name)
	cmd.Env = append(cmd.Environ(), p.f.Secret+"="+p.f.secret)
	c, err := start(cmd, p.name, p.f.Workers)
	if err != nil {
		return life{how: err.Error()}
	}
	late := time.NewTimer(p.f.Times.Start)
	defer late.Stop()
	select {
	case line := <-c.ready:
		return p.serve(ctx, c, line)
	case <-c.exited:
		return life{how: c.how()}
	case <-late.C:
		c.kill()
		return life{how: fmt.Sprintf("not ready after %v", p.f.Times.Start)}
	case <-ctx.Done():
		c.leave(p.f.Times.Leave, p.f.Now)
		return life{how: "the fleet ends"}
	}
}

// serve keeps a ready worker on the gateway's roster until it ends or has to.
func (p *place) serve(ctx context.Context, c *child, line readyLine) life {
	g := p.f.gateway
	worker, err := p.about(ctx, line.HTTP)
	if err != nil {
		c.kill()
		return life{how: err.Error()}
	}
	id, err := g.Join(ctx, gateway.Worker{Name: p.name, Role: p.role, HTTP: line.HTTP, Link: line.Link, Boot: line.Boot,
		PID: line.PID, ContextTokens: worker.MaxModelLen, Manifest: worker.Manifest})
	if err != nil {
		c.leave(p.f.Times.Leave, p.f.Now)
		return life{how: err.Error()}
	}
	began := time.Now()
	p.f.joined()
	// Neither with ctx: a worker is watched until it has ended, and leaves the roster also when
	// the fleet ends.
	defer g.Leave(context.WithoutCancel(ctx), id)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	found, watched := make(chan finding, 1), make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(watching, id, line.HTTP, found)
	}()
	defer func() {
		stop()
		<-watched
	}()
	l := life{joined: true}
	select {
	case <-c.exited:
		l.how = c.how()
	case l.found = <-found:
		if l.found == frozen {
			c.kill()
			l.how = fmt.Sprintf("killed: its health was not good for %v", p.f.Times.Frozen)
			break
		}
		p.dismiss(c)
		l.how = c.how()
	case <-ctx.Done():
		p.dismiss(c)
		l.how = "the fleet ends"
	}
	l.served = time.Since(began)
	return l
}

// dismiss asks a worker that has joined to leave. How it leaves is its last word about its
// blocks (F7).
func (p *place) dismiss(c *child) {
	killed := c.leave(p.f.Times.Leave, p.f.Now)
	switch {
	case c.failed(killed):
		p.f.Log.Error("worker found something wrong at its end", "worker", p.name, "detail", c.how())
		p.f.fault(fmt.Errorf("fleet: worker %s found something wrong at its end: %s", p.name, c.how()))
	case killed:
		p.f.Log.Warn("worker did not leave and was killed", "worker", p.name, "after", p.f.Times.Leave)
	}
}

// watch asks for the worker's health until ctx ends, or until it finds why the worker has to.
func (p *place) watch(ctx context.Context, id int32, addr string, found chan<- finding) {
	tick := time.NewTicker(p.f.Times.Probe)
	defer tick.Stop()
	bad, badSince, draining := 0, time.Time{}, false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		h, err := p.health(ctx, addr)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if bad == 0 {
				badSince = time.Now()
			}
			if bad++; bad == badInRow {
				p.f.Log.Warn("worker is not healthy, nothing is placed on it", "worker", p.name, "detail", err.Error())
				p.f.gateway.Health(ctx, id, asked, false)
			}
			if time.Since(badSince) > p.f.Times.Frozen {
				found <- frozen
				return
			}
			continue
		}
		if bad >= badInRow {
			p.f.Log.Warn("worker is healthy again", "worker", p.name, "after", time.Since(badSince))
		}
		bad = 0
		switch {
		case !h.Draining:
			p.f.gateway.Health(ctx, id, asked, true)
		case !draining: // legs that are on their way to it are refused, and tried elsewhere
			draining = true
			p.f.Log.Info("worker drains, nothing is placed on it", "worker", p.name)
			p.f.gateway.Health(ctx, id, asked, false)
		case h.Live == 0:
			found <- drained
			return
		}
	}
}

// health returns what a worker says of itself; it is an error if that is not good. A worker
// that drains is healthy (F6).
func (p *place) health(ctx context.Context, addr string) (h observe.Health, err error) {
	if err := p.get(ctx, "http://"+addr+"/health", &h); err != nil {
		return h, err
	}
	if !h.OK {
		return h, fmt.Errorf("fleet: the worker says of its health: %s", h.Reason)
	}
	return h, nil
}

// about is what a worker says it serves.
type about struct {
	MaxModelLen int    `json:"max_model_len"`
	Manifest    string `json:"manifest"`
}

func (p *place) about(ctx context.Context, addr string) (a about, err error) {
	err = p.get(ctx, "http://"+addr+"/server_info", &a)
	return a, err
}

// get reads a small JSON answer within Times.Answer.
func (p *place) get(ctx context.Context, url string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, p.f.Times.Answer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	resp, err := p.f.probes.Do(req)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // both answers are below 1 KiB
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("fleet: status %d without JSON", resp.StatusCode)
	}
	return nil
}
