package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"baton/core/relay"
	"baton/serve/observe"
)

// Health is the answer of GET /health.
type Health struct {
	OK       bool   `json:"ok"`
	Reason   string `json:"reason,omitempty"`
	Draining bool   `json:"draining"`
	Running  int    `json:"running"` // requests that hold workers or are about to
	Queued   int    `json:"queued"`  // requests that wait for a right to run
	Workers  int    `json:"workers"` // that requests may be placed on
}

// health is good while the loop answers, a request could be placed and new ones are taken.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), progressMax)
	defer cancel()
	var h Health
	err := g.ask(ctx, func(l *loop) {
		h = Health{Draining: l.core.Draining(), Running: l.runningRequests(), Queued: l.core.Queue().Len}
		for _, m := range l.roster.members {
			if m.usable() {
				h.Workers++
			}
		}
		missing := l.roster.missing()
		h.OK = missing == "" && !h.Draining
		switch {
		case h.Draining:
			h.Reason = "draining"
		case !h.OK:
			h.Reason = missing
		}
	})
	if err != nil {
		writeJSON(w, http.StatusServiceUnavailable, Health{Reason: "the loop does not answer: no progress"})
		return
	}
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, h)
}

// runningRequests is how many requests take rights to run, each of them one or more.
func (l *loop) runningRequests() int { return l.core.Live() - l.core.Queue().Len }

// Live says how many requests are accepted and have not ended.
func (g *Gateway) Live(ctx context.Context) (n int, err error) {
	err = g.ask(ctx, func(l *loop) { n = l.core.Live() })
	return n, err
}

// WorkerView is a row of the roster, with the worker's own word about itself. What it did not
// say, or the gateway could not ask, is absent.
type WorkerView struct {
	Name     string                   `json:"worker"` // of its place in the fleet
	Role     string                   `json:"role"`
	Boot     string                   `json:"boot"`
	PID      int                      `json:"pid"` // 0: the process is gone
	HTTP     string                   `json:"http"`
	Link     string                   `json:"link,omitempty"`
	Up       bool                     `json:"up"`   // requests may be placed on it
	Legs     int                      `json:"legs"` // what the gateway holds open there
	Draining *bool                    `json:"draining,omitempty"`
	UptimeMS *int64                   `json:"uptime_ms,omitempty"`
	Queues   map[string]observe.Queue `json:"queues,omitempty"`
	Blocks   *observe.Blocks          `json:"blocks,omitempty"`
	Error    string                   `json:"error,omitempty"` // why it did not answer
}

// Inspection is the answer of GET /debug/requests; /debug/rooms leaves the requests out.
type Inspection struct {
	Requests []observe.Request `json:"requests"`
	Rooms    []observe.Room    `json:"rooms"`
	Workers  []WorkerView      `json:"workers"`
}

func (g *Gateway) debugRequests(w http.ResponseWriter, r *http.Request) {
	in, err := g.inspection(r.Context())
	if err != nil {
		g.refuse(w, unavailable("the loop does not answer"))
		return
	}
	writeJSON(w, http.StatusOK, in)
}

func (g *Gateway) debugRooms(w http.ResponseWriter, r *http.Request) {
	in, err := g.inspection(r.Context())
	if err != nil {
		g.refuse(w, unavailable("the loop does not answer"))
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Rooms   []observe.Room `json:"rooms"`
		Workers []WorkerView   `json:"workers"`
	}{in.Rooms, in.Workers})
}

// inspection asks the loop for its requests and every worker for its rooms, all at once.
func (g *Gateway) inspection(ctx context.Context) (*Inspection, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectAfter)
	defer cancel()
	in := &Inspection{Requests: []observe.Request{}, Rooms: []observe.Room{}, Workers: []WorkerView{}}
	var living []bool
	if err := g.ask(ctx, func(l *loop) {
		in.Requests = append(in.Requests, l.rows()...)
		members := slices.SortedFunc(l.roster.lives, func(a, b *member) int { // of one place the newest first
			return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.id, a.id))
		})
		for _, m := range members {
			in.Workers = append(in.Workers, WorkerView{Name: m.Name, Role: m.Role, Boot: m.Boot, PID: m.PID, HTTP: m.HTTP, Link: m.Link,
				Up: m.usable(), Legs: m.load})
			living = append(living, !m.gone)
		}
	}); err != nil {
		return nil, err
	}
	rooms := make([][]observe.Room, len(in.Workers))
	var all sync.WaitGroup
	for i := range in.Workers {
		v := &in.Workers[i]
		if !living[i] {
			v.Error = "the worker has ended; nothing has taken its place yet"
			continue
		}
		all.Go(func() { rooms[i] = g.inspectWorker(ctx, v) })
	}
	all.Wait()
	for _, r := range rooms {
		in.Rooms = append(in.Rooms, r...)
	}
	return in, nil
}

// inspectWorker fills in what a worker says of itself and returns its rooms, under the name that
// the fleet gave it.
func (g *Gateway) inspectWorker(ctx context.Context, v *WorkerView) []observe.Room {
	s, err := g.snapshot(ctx, v.HTTP)
	if err != nil {
		v.Error = err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) { // nobody is there: the number may be somebody else's
			v.Up, v.PID = false, 0
		}
		return nil
	}
	w := &s.Worker
	v.Boot, v.PID = w.Boot, w.PID
	v.Draining, v.UptimeMS, v.Queues, v.Blocks = &w.Draining, &w.UptimeMS, w.Queues, &w.Blocks
	for i := range s.Rooms {
		s.Rooms[i].Worker = v.Name
	}
	return s.Rooms
}

// rows lists the requests that the core holds.
func (l *loop) rows() (rows []observe.Request) {
	now := l.g.clock()
	l.core.Rooms(func(v relay.View) bool {
		row := observe.Request{RID: l.rid(v.Req), Phase: v.Phase.String(), AgeMS: (now - v.Arrived).Milliseconds(),
			Prefill: l.roster.name(v.Prefill), Decode: l.roster.name(v.Decode), Tokens: v.Tokens, WaitsFor: v.WaitsFor}
		if v.Room != 0 {
			row.Room = v.Room.String()
		}
		rows = append(rows, row)
		return true
	})
	return rows
}

func (g *Gateway) snapshot(ctx context.Context, addr string) (s observe.Snapshot, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/debug/rooms", nil)
	if err != nil {
		return s, err
	}
	resp, err := g.inspect.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, inspectBytesMax))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}
