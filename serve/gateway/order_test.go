package gateway

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
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
