package baton

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"baton/core/room"
	"baton/engine/sample"
	"baton/serve/leg"
)

func request() *leg.Request {
	return &leg.Request{RID: "r", Room: 7, Tokens: []int32{1, 2}, Params: sample.Default(), LeftMS: 1000}
}

// Whatever a worker does, the leg ends once and with the right cause (U1, U3).
func TestEveryKindOfFailureIsAnEnd(t *testing.T) {
	const accepted = `{"accepted":true}` + "\n"
	const piece = `{"text":"a","ids":[1]}` + "\n"
	const end = `{"end":{"outcome":"success","finish":"stop","prompt_tokens":2,"output_tokens":1,"cached":0}}` + "\n"
	rows := []struct {
		name   string
		status int
		body   string
		cut    bool // the connection is cut behind the body
		want   room.Outcome
		said   bool
		pieces int
	}{
		{"a good stream", 200, accepted + piece + piece + end, false, room.Done(), true, 2},
		{"an end with a cause", 200, accepted + `{"end":{"outcome":"failed","cause":"transfer_failed"}}` + "\n", false, room.Fail(room.TransferFailed), true, 0},
		{"an early end", 200, accepted + piece, false, room.Fail(room.WorkerLost), false, 1},
		{"an empty stream", 200, "", false, room.Fail(room.WorkerLost), false, 0},
		{"half a line", 200, accepted + `{"text":"a"`, false, room.Fail(room.WorkerLost), false, 0},
		{"a malformed line", 200, accepted + "not json\n", false, room.Fail(room.WorkerLost), false, 0},
		{"a line of HTML", 200, "<html>\n", false, room.Fail(room.WorkerLost), false, 0},
		{"a piece before accepted", 200, piece + end, false, room.Fail(room.WorkerLost), false, 0},
		{"a cut connection", 200, accepted + piece, true, room.Fail(room.WorkerLost), false, 1},
		{"a refusal", 400, `{"outcome":"failed","cause":"client_error","message":"too long"}`, false, room.Fail(room.ClientError), true, 0},
		{"a full queue", 429, `{"outcome":"failed","cause":"overload"}`, false, room.Fail(room.Overload), true, 0},
		{"a worker that leaves", 503, `{"message":"the worker decode-0 is draining"}`, false, room.Fail(room.WorkerLost), false, 0},
		{"a refusal that claims success", 503, `{"outcome":"success"}`, false, room.Fail(room.WorkerLost), false, 0},
		{"a bare 500", 500, "oops", false, room.Fail(room.WorkerLost), false, 0},
		{"a bare 429", 429, "", false, room.Fail(room.Overload), false, 0},
		{"a bare 422", 422, "", false, room.Fail(room.ClientError), false, 0},
		{"a bare 404", 404, "", false, room.Fail(room.WorkerLost), false, 0},
		{"a redirect", 302, "", false, room.Fail(room.WorkerLost), false, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			legs := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				legs++
				if _, err := leg.ReadRequest(r.Body); err != nil || r.URL.Path != "/leg/decode" {
					t.Errorf("%s: %v", r.URL.Path, err)
				}
				if row.status == 302 {
					w.Header().Set("Location", "/elsewhere")
				}
				w.WriteHeader(row.status)
				io.WriteString(w, row.body)
				if row.cut {
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
			}))
			defer s.Close()
			c := New()
			defer c.Close()
			accepts, pieces := 0, 0
			got := c.Run(t.Context(), strings.TrimPrefix(s.URL, "http://"), "decode", request(), func(l leg.Line) {
				if l.Accepted {
					accepts++
				} else {
					pieces++
				}
			})
			if got.End.Result() != row.want || got.Said != row.said || pieces != row.pieces {
				t.Errorf("got %v, said %v, %d pieces (%s); want %v, %v, %d", got.End.Result(), got.Said, pieces, got.End.Message, row.want, row.said, row.pieces)
			}
			if legs != 1 || accepts > 1 {
				t.Errorf("%d legs reached the worker and %d were accepted", legs, accepts)
			}
		})
	}
}

func TestAWorkerThatIsNotThereIsLost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := New()
	got := c.Run(t.Context(), addr, "prefill", request(), func(leg.Line) {})
	if got.End.Result() != room.Fail(room.WorkerLost) || got.Said {
		t.Errorf("got %+v", got)
	}
}

// A context that is done ends a leg at a worker that says nothing, before and behind its head,
// and the worker sees it.
func TestClosingEndsASilentLeg(t *testing.T) {
	for _, head := range []bool{false, true} {
		t.Run(fmt.Sprintf("head %v", head), func(t *testing.T) {
			here, left := make(chan struct{}), make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if head {
					io.WriteString(w, `{"accepted":true}`+"\n")
					w.(http.Flusher).Flush()
				}
				close(here)
				<-r.Context().Done()
				close(left)
			}))
			defer s.Close()
			c := New()
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan Result, 1)
			go func() {
				over <- c.Run(ctx, strings.TrimPrefix(s.URL, "http://"), "decode", request(), func(leg.Line) {})
			}()
			<-here
			cancel()
			if got := <-over; got.Said || got.End.Outcome == room.Success {
				t.Errorf("got %+v", got)
			}
			<-left
		})
	}
}

// A worker that ends its legs well is spoken to over one connection; one that says its end and
// then hangs does not hold the leg.
func TestTheEndCountsWhenItIsRead(t *testing.T) {
	hang := make(chan struct{})
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"accepted":true}`+"\n"+`{"end":{"outcome":"success"}}`+"\n")
		if r.URL.Path == "/leg/prefill" {
			w.(http.Flusher).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	defer close(hang)
	c := New()
	defer c.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	for range 5 {
		if got := c.Run(t.Context(), addr, "decode", request(), func(leg.Line) {}); !got.Said {
			t.Fatalf("got %+v", got)
		}
		c.tails.Wait()
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 legs took %d connections", n)
	}
	if got := c.Run(t.Context(), addr, "prefill", request(), func(leg.Line) {}); !got.Said {
		t.Errorf("an end that hangs: %+v", got)
	}
}
