package gateway

import (
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
	"baton/serve/openai"
)

func (g *Gateway) model() openai.Model {
	return openai.Model{ID: g.config.Model, Object: "model", Created: g.started.Unix(), OwnedBy: "baton", MaxModelLen: g.status.Load().contextTokens}
}

func (g *Gateway) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, openai.ModelList{Object: "list", Data: []openai.Model{g.model()}})
}

func (g *Gateway) oneModel(w http.ResponseWriter, r *http.Request) {
	if err := g.checkModel(r.PathValue("id")); err != nil {
		g.refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, g.model())
}

func (g *Gateway) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuse(w, err)
		return
	}
	req, err := openai.ParseTokenize(body)
	if err == nil {
		err = g.checkModel(req.Model)
	}
	if err != nil {
		g.refuse(w, err)
		return
	}
	text := g.config.Text
	out := openai.Tokenized{MaxModelLen: g.status.Load().contextTokens, Tokens: []int32{}}
	if req.Messages != nil {
		ids, err := g.conversation(req.Messages)
		if err != nil {
			g.refuse(w, err)
			return
		}
		out.Tokens = append(out.Tokens, ids...)
	} else {
		out.Tokens = append(out.Tokens, text.Prompt(req.Prompt, req.AddSpecial)...)
	}
	out.Count = len(out.Tokens)
	if req.Strings {
		for _, id := range out.Tokens {
			out.TokenStrs = append(out.TokenStrs, string(text.Token(id)))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

func (g *Gateway) detokenize(w http.ResponseWriter, r *http.Request) {
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuse(w, err)
		return
	}
	req, err := openai.ParseDetokenize(body, openai.Limits{Vocab: g.config.Text.Vocab()})
	if err == nil {
		err = g.checkModel(req.Model)
	}
	if err != nil {
		g.refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, openai.Detokenized{Prompt: g.config.Text.Decode(req.Tokens)})
}

// Health is the answer of GET /health.
type Health struct {
	OK       bool   `json:"ok"`
	Reason   string `json:"reason,omitempty"`
	Draining bool   `json:"draining"`
	Running  int    `json:"running"`
	Queued   int    `json:"queued"`
	Workers  int    `json:"workers"` // that requests may be placed on
}

// health is good while the loop answers, a request could be placed and new ones are taken.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), progressMax)
	defer cancel()
	var h Health
	err := g.ask(ctx, func(l *loop) {
		h = Health{Draining: l.core.Draining(), Running: l.core.Running(), Queued: l.core.Queue().Len}
		for _, m := range l.roster.members {
			if m.usable() {
				h.Workers++
			}
		}
		h.OK = l.roster.serving() && !h.Draining
		switch {
		case h.Draining:
			h.Reason = "draining"
		case !h.OK:
			h.Reason = "no worker is ready to take requests"
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

// WorkerView is a worker's own word about itself, or why there is none.
type WorkerView struct {
	observe.Worker
	Up    bool   `json:"up"`              // requests may be placed on it
	Legs  int    `json:"legs"`            // what the gateway holds open there
	Error string `json:"error,omitempty"` // the worker did not answer: queues and blocks are not known
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
		members := slices.SortedFunc(l.roster.places, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
		for _, m := range members {
			in.Workers = append(in.Workers, WorkerView{Up: m.usable(), Legs: m.load,
				Worker: observe.Worker{Name: m.Name, Role: m.Role, Boot: m.Boot, PID: m.PID, HTTP: m.HTTP, Link: m.Link}})
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

// inspectWorker fills in what a worker says of itself and returns its rooms, in both under the
// name that the fleet gave it.
func (g *Gateway) inspectWorker(ctx context.Context, v *WorkerView) []observe.Room {
	name := v.Name
	s, err := g.snapshot(ctx, v.HTTP)
	if err != nil {
		v.Error = err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) { // nobody is there: the number may be somebody else's
			v.Up, v.PID = false, 0
		}
		return nil
	}
	v.Worker, v.Name = s.Worker, name
	for i := range s.Rooms {
		s.Rooms[i].Worker = name
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
