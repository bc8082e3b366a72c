package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leaver is the context of a client that is gone. It keeps how many events stood before the
// loop when somebody began to listen to it.
type leaver struct {
	context.Context
	inbox chan input
	found int // -1: nobody listened
}

func (l *leaver) Done() <-chan struct{} {
	if l.found < 0 {
		l.found = len(l.inbox)
	}
	return l.Context.Done()
}

// hold stops the loop until the returned function is called.
func (r *rig) hold() (release func()) {
	held, hold := make(chan struct{}), make(chan struct{})
	go r.g.ask(context.Background(), func(*loop) { close(held); <-hold })
	<-held
	return func() { close(hold) }
}

// A client may be gone before the loop has its request. Its leaving comes behind its arrival all
// the same, for every choice: the core drops the leaving of a request that it does not know,
// which then runs on without anybody to answer.
func TestALeavingNeverOvertakesItsArrival(t *testing.T) {
	for name, row := range map[string]struct {
		path, body string
		choices    int
	}{
		"one":  {"/v1/chat/completions", helloBody + `}`, 1},
		"many": {"/v1/completions", `{"prompt":["a","b","c","d","e","f","g","h"]}`, 8},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, nil)
			silent := func(l *fakeLeg) { l.accept(); l.wait() }
			r.prefills[0].play(silent)
			r.decodes[0].play(silent)
			gone, leave := context.WithCancel(t.Context())
			leave()
			client := &leaver{gone, r.g.inbox, -1}
			release := r.hold()
			r.g.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(client, "POST", row.path, strings.NewReader(row.body)))
			release()
			if client.found != row.choices {
				t.Errorf("its leaving was listened for when %d of %d arrivals stood before the loop", client.found, row.choices)
			}
			r.quiet()
		})
	}
}

// Whoever comes when the gateway is closed, or while it closes, hears so (W3).
func TestNobodyWaitsAtAClosedGateway(t *testing.T) {
	ask := func(h http.Handler) *httptest.ResponseRecorder {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", strings.NewReader(helloBody+`}`)))
		return w
	}
	t.Run("behind Close", func(t *testing.T) {
		r := newRig(t, 1, nil)
		r.g.Close()
		for range 40 {
			if w := ask(r.g.Handler()); w.Code != 503 || !strings.Contains(w.Body.String(), "shutting down") {
				t.Fatalf("%d %q", w.Code, w.Body)
			}
		}
	})
	t.Run("with Close", func(t *testing.T) {
		r := newRig(t, 1, nil)
		release := r.hold()
		got, closed := make(chan *httptest.ResponseRecorder, 1), make(chan struct{})
		go func() { got <- ask(r.g.Handler()) }()
		for len(r.g.inbox) == 0 {
			runtime.Gosched()
		}
		go func() { defer close(closed); r.g.Close() }()
		for !r.g.closed() {
			runtime.Gosched()
		}
		release()
		if w := <-got; w.Code != 503 || !strings.Contains(w.Body.String(), "shutting down") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		<-closed
	})
}

// A question whose asker gave up is not answered later: a worker that was told that it could
// not join does not stand on the roster all the same.
func TestWhatWasGivenUpIsNotDone(t *testing.T) {
	r := newRig(t, 0, nil)
	release := r.hold()
	ctx, cancel := context.WithCancel(t.Context())
	joined := make(chan error, 1)
	go func() {
		_, err := r.g.Join(ctx, Worker{Name: RoleUnified, Role: RoleUnified})
		joined <- err
	}()
	for len(r.g.inbox) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-joined; !errors.Is(err, context.Canceled) {
		t.Errorf("joined: %v", err)
	}
	release()
	if err := r.g.ask(t.Context(), func(l *loop) {
		if len(l.roster.members) != 0 {
			t.Errorf("on the roster: %+v", l.roster.members[0].Worker)
		}
	}); err != nil {
		t.Error(err)
	}
}
