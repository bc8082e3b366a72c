package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"baton/serve/observe"
)

// finding is what watch has to say about a worker.
type finding uint8

const (
	drains  finding = iota // it was told to, and is retired from the roster; said once, before the others
	drained                // nothing is left on it
	frozen                 // its health was not good for too long
	findings
)

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
			p.f.gateway.Retire(ctx, id)
			found <- drains // never waits: it has a place for each
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

// about asks a worker what it serves.
func (p *place) about(ctx context.Context, addr string) (a observe.About, err error) {
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
