package door

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The server lingers half a second behind a body that it did not read to its end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const refusal = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfull"

// open serves h on a real socket and returns its address.
func open(t *testing.T, connections int, h http.HandlerFunc) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := Server(h, time.Minute, log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(Listen(l, connections, []byte(refusal), log))
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr, first string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, first)
	return c
}

func answer(t *testing.T, from io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r, string(b)
}

// Whatever came behind a request, its client is seen leaving (D2).
func TestALeavingClientIsSeenBehindBytes(t *testing.T) {
	for name, row := range map[string]struct{ head, behind string }{
		"nothing behind":        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"one byte":              {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "x"},
		"a line":                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab", "\r\n"},
		"another request":       {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab", "GET /next HTTP/1.1\r\nHost: x\r\n\r\n"},
		"behind a chunked body": {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "xyz"},
	} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprint(name, reset), func(t *testing.T) {
				here, gone := make(chan struct{}), make(chan struct{})
				var bodies Bodies
				addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/next" {
						return
					}
					if _, err := bodies.Read(w, r, 100); err != nil {
						t.Error(err)
					}
					here <- struct{}{}
					<-r.Context().Done()
					close(gone)
				})
				c := dial(t, addr, row.head)
				<-here
				io.WriteString(c, row.behind)
				if reset {
					c.(*net.TCPConn).SetLinger(0)
				}
				c.Close()
				<-gone
			})
		}
	}
}

// A client that sends on and on behind its request is ended: it could not be seen leaving.
func TestBytesBehindARequestAreBounded(t *testing.T) {
	gone := make(chan struct{})
	addr := open(t, 10, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	})
	c := dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	go c.Write(make([]byte, 2*aheadMax))
	<-gone
}

// What was kept while a request was served is the next one.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.Path)
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close")
		}
	})
	var all strings.Builder
	for i := range 50 {
		fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
	}
	c := dial(t, addr, all.String())
	from := bufio.NewReader(c)
	for i := range 50 {
		if _, got := answer(t, from); got != fmt.Sprint("/", i) {
			t.Fatalf("answer %d is %q", i, got)
		}
	}
}

// Kept bytes are not lost where the handler ends while they lie there.
func TestARequestBehindALongOneIsServed(t *testing.T) {
	here, leave := make(chan struct{}, 2), make(chan struct{})
	addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
		here <- struct{}{}
		<-leave
		io.WriteString(w, r.URL.Path)
	})
	c := dial(t, addr, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
	<-here
	io.WriteString(c, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
	close(leave)
	from := bufio.NewReader(c)
	for _, want := range []string{"/a", "/b"} {
		if _, got := answer(t, from); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A body that nobody reads neither holds the answer back nor the connection open (D4).
func TestABodyThatNobodyReadsEndsTheConnection(t *testing.T) {
	for _, head := range []string{"Content-Length: 1000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc"} {
		addr := open(t, 10, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
		c := dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n"+head)
		from := bufio.NewReader(c)
		r, got := answer(t, from)
		if got != "fine" || !r.Close {
			t.Errorf("%q, %v", got, r.Header)
		}
		if b, err := io.ReadAll(from); len(b) > 0 || err != nil { // returns: the server closes
			t.Errorf("%q %v", b, err)
		}
	}
}

func TestAConnectionServesAgainBehindABodyThatWasRead(t *testing.T) {
	var bodies Bodies
	addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
		b, err := bodies.Read(w, r, 100)
		if err != nil {
			t.Error(err)
			return
		}
		defer b.Release()
		w.Write(b.Bytes)
	})
	c := dial(t, addr, "")
	from := bufio.NewReader(c)
	for range 3 {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		if r, got := answer(t, from); got != "abc" || r.Close {
			t.Errorf("%q, %v", got, r.Header)
		}
	}
	if s, l := bodies.small.Load(), bodies.large.Load(); s != 0 || l != 0 {
		t.Errorf("%d and %d bytes are still counted", s, l)
	}
}

// reads serves one body through Bodies and returns what became of it.
func reads(t *testing.T, bodies *Bodies, max int64, request string) (n int, err error) {
	type result struct {
		n   int
		err error
	}
	results := make(chan result, 1)
	addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
		b, err := bodies.Read(w, r, max)
		if err != nil {
			results <- result{0, err}
			return
		}
		defer b.Release()
		results <- result{len(b.Bytes), nil}
	})
	c := dial(t, addr, "")
	go io.WriteString(c, request)
	got := <-results
	return got.n, got.err
}

func post(body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// Bytes count, not bodies; large bodies do not turn small ones away (D3).
func TestBodiesAreBoundedInBytes(t *testing.T) {
	large := post(strings.Repeat("x", 3*smallBytes))
	chunked := "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
	var full, fuller Bodies
	full.large.Store(BytesMax)
	fuller.small.Store(BytesMax)
	for _, row := range []struct {
		name    string
		bodies  *Bodies
		max     int64
		request string
		n       int
		err     error
	}{
		{"large", &Bodies{}, 1 << 20, large, 3 * smallBytes, nil},
		{"chunked", &Bodies{}, 2, chunked, 2, nil},
		{"small where large ones are full", &full, 1 << 20, post("abc"), 3, nil},
		{"large where large ones are full", &full, 1 << 20, large, 0, ErrFull},
		{"small where small ones are full", &fuller, 1 << 20, post("abc"), 0, ErrFull},
	} {
		small, larger := row.bodies.small.Load(), row.bodies.large.Load()
		n, err := reads(t, row.bodies, row.max, row.request)
		if n != row.n || err != row.err {
			t.Errorf("%s: %d bytes, %v", row.name, n, err)
		}
		if row.err != nil && (row.bodies.small.Load() != small || row.bodies.large.Load() != larger) {
			t.Errorf("%s: the refused body is still counted", row.name)
		}
	}
	for _, request := range []string{large, chunked} {
		_, err := reads(t, &Bodies{}, 1, request)
		if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
			t.Errorf("over the maximum: %v", err)
		}
	}
}

// late is a body on which every deadline has already passed.
type late struct{ http.ResponseWriter }

func (l late) SetReadDeadline(time.Time) error {
	return http.NewResponseController(l.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
}

func TestASlowBodyIsNotWaitedFor(t *testing.T) {
	var bodies Bodies
	result := make(chan error, 1)
	addr := open(t, 10, func(w http.ResponseWriter, r *http.Request) {
		_, err := bodies.Read(late{w}, r, 100)
		result <- err
	})
	dial(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
	if err := <-result; err != ErrSlow {
		t.Error(err)
	}
}

// At the bound a kept connection makes place, and without one the new client is told.
func TestConnectionsAreBounded(t *testing.T) {
	here, leave := make(chan struct{}), make(chan struct{})
	addr := open(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			here <- struct{}{}
			<-leave
		}
		io.WriteString(w, "fine")
	})
	const quick, long = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"
	kept := dial(t, addr, quick)
	answer(t, kept)
	first := dial(t, addr, long)
	<-here
	// One place is held by a request, the other by a connection that waits for its next one. It
	// may take a moment until the server counts that as idle, and meanwhile it refuses.
	second := dial(t, addr, long)
	for reached := false; !reached; {
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			http.ReadResponse(bufio.NewReader(second), nil)
		}()
		select {
		case <-here:
			reached = true
			defer func() { <-refused }()
		case <-refused:
			second = dial(t, addr, long)
		}
	}
	if _, err := kept.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the kept connection is still there: %v", err)
	}
	third := dial(t, addr, "")
	if r, got := answer(t, third); r.StatusCode != 503 || got != "full" {
		t.Errorf("%d %q", r.StatusCode, got)
	}
	close(leave)
	if _, got := answer(t, first); got != "fine" {
		t.Errorf("%q", got)
	}
}

// broken is a listener whose Accept fails.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

func TestAFailureToAcceptIsAWarning(t *testing.T) {
	var log bytes.Buffer
	l := Listen(broken{}, 1, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := l.Accept(); err == nil || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("%v: %s", err, log.String())
	}
}

// A handler that panics is an error in the log, with where it was, and the server goes on; one that cuts
// its connection on purpose is none (D5).
func TestAHandlerThatPanicsIsLoud(t *testing.T) {
	for name, row := range map[string]struct {
		v    any
		loud bool
	}{"a mistake": {errors.New("index out of range"), true}, "on purpose": {http.ErrAbortHandler, false}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer // read when the server has ended
			log := slog.New(slog.NewTextHandler(&text, nil))
			s := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/bad" {
					panic(row.v)
				}
			}), time.Minute, log)
			served := make(chan struct{})
			go func() {
				defer close(served)
				s.Serve(Listen(l, 4, nil, log))
			}()
			c := dial(t, l.Addr().String(), "GET /bad HTTP/1.1\r\nHost: x\r\n\r\n")
			if b, _ := io.ReadAll(c); len(b) > 0 {
				t.Errorf("an answer: %q", b)
			}
			next := dial(t, l.Addr().String(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if r, _ := answer(t, next); r.StatusCode != http.StatusOK {
				t.Errorf("the next request: %s", r.Status)
			}
			next.Close()
			s.Shutdown(t.Context())
			<-served
			got := text.String()
			if loud := strings.Contains(got, "level=ERROR") && strings.Contains(got, "GET /bad: index out of range") && strings.Contains(got, "door_test.go"); loud != row.loud || !loud && got != "" {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// A client that takes nothing gets a deadline from outside of any handler (D1).
func TestEveryAnswerHasADeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	failed := make(chan error, 1)
	s := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				failed <- err
				return
			}
		}
	}), time.Millisecond, log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(Listen(l, 1, nil, log))
	}()
	defer func() {
		s.Shutdown(context.Background())
		<-served
	}()
	c := dial(t, l.Addr().String(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	defer c.Close()
	if err := <-failed; !errors.Is(err, errors.ErrUnsupported) && !strings.Contains(err.Error(), "timeout") {
		t.Error(err)
	}
}
