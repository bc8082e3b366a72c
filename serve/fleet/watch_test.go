package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/serve/gateway"
	"baton/serve/observe"
	"baton/serve/observe/logrules"
)

// mouth answers questions for a worker's health: what it says, from which moment on.
type mouth struct {
	began time.Time
	says  []word
	heard []time.Duration // when it was asked
}

type word struct {
	from   time.Duration
	health observe.Health
	err    error
	silent bool // no answer at all
}

// RoundTrip answers with the newest word.
func (m *mouth) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Since(m.began)
	m.heard = append(m.heard, now)
	var w word
	for _, x := range m.says {
		if x.from <= now {
			w = x
		}
	}
	if w.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if w.err != nil {
		return nil, w.err
	}
	b, err := json.Marshal(w.health)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(b)))}, nil
}

// words is a Text that nobody asks.
type words struct{ gateway.Text }

func (words) Vocab() int { return 0 }

// TestAWatchFindsToTheMoment what a worker's health says, in virtual time: when nothing is
// placed on it any more, when it is taken for frozen, and what it says of its leaving.
func TestAWatchFindsToTheMoment(t *testing.T) {
	good, leaving, bad := observe.Health{OK: true, Live: 3}, observe.Health{OK: true, Draining: true, Live: 2}, observe.Health{Reason: "no progress"}
	const s = time.Second
	refused := errors.New("connection refused")
	for name, row := range map[string]struct {
		says  []word
		found []string // finding and when
		out   []string // of the gateway's view: when it changed, and to what
	}{
		"well":       {says: []word{{health: good}}, out: nil},
		"one missed": {says: []word{{health: good}, {from: 5 * s, err: refused}, {from: 6 * s, health: good}}},
		"two missed": {says: []word{{health: good}, {from: 5 * s, err: refused}, {from: 7 * s, health: good}}, out: []string{"6s down", "7s up"}},
		"dead":       {says: []word{{health: good}, {from: 5 * s, err: refused}}, found: []string{"frozen 16s"}, out: []string{"6s down"}},
		"bad word":   {says: []word{{health: good}, {from: 5 * s, health: bad}}, found: []string{"frozen 16s"}, out: []string{"6s down"}},
		// The answer to the question of the fifth second is missed in the seventh.
		"frozen":        {says: []word{{health: good}, {from: 5 * s, silent: true}}, found: []string{"frozen 19s"}, out: []string{"9s down"}},
		"leaves":        {says: []word{{health: good}, {from: 5 * s, health: leaving}, {from: 8 * s, health: observe.Health{OK: true, Draining: true}}}, found: []string{"drains 5s", "drained 8s"}, out: []string{"5s down"}},
		"leaves, stuck": {says: []word{{health: leaving}, {from: 8 * s, err: refused}}, found: []string{"drains 1s", "frozen 19s"}, out: []string{"1s down"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := gateway.New(gateway.Config{Model: "m", Text: words{}, Log: logrules.New(t)})
				if err != nil {
					t.Fatal(err)
				}
				m := &mouth{began: time.Now(), says: row.says}
				f := &fleet{Config: Config{Log: logrules.New(t), Times: Times{Probe: s, Answer: 2 * s, Frozen: 10 * s}}, gateway: g, probes: http.Client{Transport: m}}
				id, err := g.Join(t.Context(), gateway.Worker{Name: "decode-0", Role: gateway.RoleUnified, HTTP: "w", Boot: "b", ContextTokens: 10})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				found, watched := make(chan finding, findings), make(chan struct{})
				go func() {
					defer close(watched)
					newPlace(f, "decode", 0).watch(ctx, id, "w", found)
				}()
				var got, out []string
				up := true
				for range 30 { // seconds; half a one behind each question
					time.Sleep(s / 2)
					synctest.Wait()
					time.Sleep(s / 2)
					synctest.Wait()
					now := time.Since(m.began)
					for len(found) > 0 {
						got = append(got, fmt.Sprint([...]string{"drains", "drained", "frozen"}[<-found], " ", now))
					}
					if usable := g.Serving(); usable != up {
						up = usable
						out = append(out, fmt.Sprint(now, map[bool]string{true: " up", false: " down"}[up]))
					}
				}
				stop()
				<-watched
				g.Close()
				if !slices.Equal(got, row.found) || !slices.Equal(out, row.out) {
					t.Errorf("found %q, want %q; the gateway's view %q, want %q", got, row.found, out, row.out)
				}
				if len(row.found) == 0 && len(m.heard) < 29 {
					t.Errorf("asked %d times in 30 seconds", len(m.heard))
				}
			})
		})
	}
}
