package gateway

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine/recall"
	"baton/serve/worker"
)

// newRecallRig is a gateway with real workers in this process, on the embedded model.
func newRecallRig(t *testing.T, roles ...string) *rig {
	file := recall.Open()
	text, err := NewText(file)
	if err != nil {
		t.Fatal(err)
	}
	return newRecallRigOf(t, text, roles...)
}

// newRecallRigOf is one whose model is told of conversations in the words of text.
func newRecallRigOf(t *testing.T, text *ModelText, roles ...string) *rig {
	r := newRig(t, 0, func(c *Config) { c.Model, c.Text = "recall", text })
	for _, role := range roles {
		c := worker.Config{Role: role, Name: role, Secret: []byte(strings.Repeat("s", 32)), Canary: true, Log: slog.New(slog.DiscardHandler),
			Sizes: worker.Sizes{Threads: 1, KVTokens: 4096, ChunkTokens: 64}}.WithDefaults()
		s, err := worker.Load(c)
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(c, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := w.Close(ctx); err != nil {
				t.Errorf("%s at its end: %v", role, err)
			}
		})
		if _, err := r.g.Join(t.Context(), Worker{Name: role, Role: role, HTTP: w.HTTP(), Link: w.Link(), Boot: w.Boot().String(), ContextTokens: s.Context}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// recallBody asks recall in the shape of a chat request.
func recallBody(p recall.Prompt, question string, stream bool) string {
	b, _ := json.Marshal(map[string]any{"messages": p.Messages(question), "temperature": 0, "stream": stream, "return_token_ids": true})
	return string(b)
}

func wholeText(body string) string {
	var got struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal([]byte(body), &got) != nil || len(got.Choices) == 0 {
		return body
	}
	return got.Choices[0].Message.Content
}

// The whole way: text in, text out, through the template, both legs, the link and the engine;
// streamed or not, alone or together, disaggregated or unified, the answer is the right one.
func TestRecallIsRightThroughTheWholeHouse(t *testing.T) {
	for _, roles := range [][]string{{RolePrefill, RoleDecode}, {RoleUnified}} {
		t.Run(strings.Join(roles, "+"), func(t *testing.T) {
			r := newRecallRig(t, roles...)
			rnd := rand.New(rand.NewPCG(1, 1))
			var all sync.WaitGroup
			for i := range 8 {
				p := recall.NewPrompt(rnd, 1+rnd.IntN(60))
				turn := p.AskOne(rnd)
				if i%4 == 3 {
					turn = p.AskAbsent(rnd)
				}
				all.Go(func() {
					a := r.post("/v1/chat/completions", recallBody(p, turn.Question, false))
					if got := wholeText(a.body); a.status != 200 || got != turn.Answer {
						t.Errorf("%d %q, want %q", a.status, got, turn.Answer)
					}
					s := r.post("/v1/chat/completions", recallBody(p, turn.Question, true))
					if n, code := s.terminal(); s.text() != turn.Answer || n != 1 || code != "" {
						t.Errorf("streamed: %d %q, want %q", s.status, s.text(), turn.Answer)
					}
				})
			}
			all.Wait()
			r.quiet()
			r.nothingHeld()
		})
	}
}

// nothingHeld asks the workers themselves, until they have heard of the last cancellation.
func (r *rig) nothingHeld() {
	r.Helper()
	late := time.Now().Add(20 * time.Second)
	for {
		in, err := r.g.inspection(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		held := len(in.Rooms)
		for _, w := range in.Workers {
			if w.Blocks == nil {
				r.Fatalf("%s does not answer: %s", w.Name, w.Error)
			}
			held += w.Blocks.Held
		}
		if held == 0 {
			return
		}
		if time.Now().After(late) {
			r.Fatalf("still held: %+v", in)
		}
	}
}

// leaveWithin asks and leaves when so many microseconds are over, wherever the answer is.
func (r *rig) leaveWithin(us int, body string) {
	ctx, leave := context.WithTimeout(r.Context(), time.Duration(us)*time.Microsecond)
	defer leave()
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(body))
	if resp, err := r.server.Client().Do(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// Clients that leave at any moment leave nothing behind, and those that stay get their answer.
func TestAStormOfLeavingClientsForgetsNothing(t *testing.T) {
	r := newRecallRig(t, RolePrefill, RoleDecode)
	const clients, rounds = 8, 6
	var all sync.WaitGroup
	for i := range clients {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		all.Go(func() {
			for round := range rounds {
				p := recall.NewPrompt(rnd, 1+rnd.IntN(60))
				turn := p.AskOne(rnd)
				if round%3 == 2 {
					a := r.post("/v1/chat/completions", recallBody(p, turn.Question, false))
					if got := wholeText(a.body); got != turn.Answer {
						t.Errorf("%d %q, want %q", a.status, got, turn.Answer)
					}
					continue
				}
				r.leaveWithin(rnd.IntN(20_000), recallBody(p, turn.Question, true))
			}
		})
	}
	all.Wait()
	r.quiet()
	r.nothingHeld()
}
