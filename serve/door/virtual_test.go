package door

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The tests here run a server in virtual time, on connections in memory: each bound of time is
// seen to the nanosecond.

// hall is a listener for connections in memory.
type hall struct {
	waiting chan net.Conn
	shut    chan struct{}
}

func (h *hall) Accept() (net.Conn, error) {
	select {
	case c := <-h.waiting:
		return c, nil
	case <-h.shut:
		return nil, net.ErrClosed
	}
}
func (h *hall) Close() error   { close(h.shut); return nil }
func (h *hall) Addr() net.Addr { return &net.TCPAddr{} }

// virtual runs f with a server of handler in a bubble; dial makes a connection to it, and since
// is the time from the beginning.
func virtual(t *testing.T, handler http.HandlerFunc, f func(t *testing.T, dial func() net.Conn, since func() time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &hall{make(chan net.Conn), make(chan struct{})}
		log := slog.New(slog.DiscardHandler)
		s := Server(handler, time.Minute, log)
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.Serve(Listen(h, 10, []byte(refusal), log))
		}()
		f(t, func() net.Conn {
			ours, theirs := net.Pipe()
			h.waiting <- theirs
			return ours
		}, func() time.Duration { return time.Since(began) })
		s.Close()
		<-served
		time.Sleep(time.Second) // net/http lingers half of it behind a body that it did not read
	})
}

// TestAHeadHasItsTime however it drips, and also if nothing comes at all.
func TestAHeadHasItsTime(t *testing.T) {
	for _, drip := range []string{"", "G", "GET / HTTP/1.1\r\nHost: x\r\nA: "} {
		virtual(t, nil, func(t *testing.T, dial func() net.Conn, since func() time.Duration) {
			c, dripped := dial(), make(chan struct{})
			go func() {
				defer close(dripped)
				for i := 0; i < 100; i++ { // a byte in three seconds, until the other end is closed
					b := "a"
					if i < len(drip) {
						b = drip[i : i+1]
					}
					if drip == "" {
						return
					}
					if _, err := io.WriteString(c, b); err != nil {
						return
					}
					time.Sleep(3 * time.Second / time.Duration(1+len(drip)/8))
				}
			}()
			io.ReadAll(c)
			if since() != headAfter {
				t.Errorf("%q: closed after %v, want %v", drip, since(), headAfter)
			}
			c.Close()
			<-dripped
		})
	}
}

// TestAKeptConnectionHasItsTime: it serves again until the bound, and then is closed.
func TestAKeptConnectionHasItsTime(t *testing.T) {
	virtual(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, func(t *testing.T, dial func() net.Conn, since func() time.Duration) {
		c := dial()
		defer c.Close()
		const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		for range 2 {
			go io.WriteString(c, request)
			if _, got := answer(t, c); got != "ok" {
				t.Fatal(got)
			}
			time.Sleep(idleAfter - time.Nanosecond)
		}
		synctest.Wait()
		if n, err := c.Read(make([]byte, 1)); err != io.EOF || since() != 2*(idleAfter-time.Nanosecond)+time.Nanosecond {
			t.Errorf("%d, %v after %v, want the end after %v", n, err, since(), 2*idleAfter-time.Nanosecond)
		}
	})
}

// TestABodyHasItsTime: ten seconds and what its bytes may take; a slow one is ErrSlow then, and
// the client has its answer.
func TestABodyHasItsTime(t *testing.T) {
	var bodies Bodies
	result, at := make(chan error, 1), time.Duration(0)
	began := time.Time{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		began = time.Now()
		_, err := bodies.Read(w, r, 1<<20)
		at = time.Since(began)
		result <- err
		http.Error(w, "slow", http.StatusRequestTimeout)
	}
	virtual(t, handler, func(t *testing.T, dial func() net.Conn, since func() time.Duration) {
		c := dial()
		defer c.Close()
		go io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("a", RateMin))
		r, _ := answer(t, c)
		if err := <-result; err != ErrSlow || at != bodyAfter+time.Second || r.StatusCode != http.StatusRequestTimeout || !r.Close {
			t.Errorf("%v after %v, status %d, close %v; want %v after %v", err, at, r.StatusCode, r.Close, ErrSlow, bodyAfter+time.Second)
		}
		if bodies.Held() != 0 {
			t.Errorf("%d bytes are held", bodies.Held())
		}
	})
}

// TestABodyThatNobodyWantsHasItsTime: who sends on while nobody reads is cut off behind the
// answer.
func TestABodyThatNobodyWantsHasItsTime(t *testing.T) {
	virtual(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }, func(t *testing.T, dial func() net.Conn, since func() time.Duration) {
		c := dial()
		defer c.Close()
		go io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nab")
		if r, _ := answer(t, c); r.StatusCode != http.StatusNotFound || !r.Close {
			t.Errorf("status %d, close %v", r.StatusCode, r.Close)
		}
		io.ReadAll(c)
		const linger = 500 * time.Millisecond // of net/http behind such a body
		if since() > unreadAfter+linger {
			t.Errorf("closed after %v, want %v", since(), unreadAfter+linger)
		}
	})
}
