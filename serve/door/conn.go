package door

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// aheadMax bounds what may come behind a request while it is served: a pipelined request or two.
// More ends the request: whoever sends on without reading could not be seen leaving (D2).
const aheadMax = 64 << 10

// errAhead is the end of a connection whose client sent too much ahead.
var errAhead = errors.New("door: too many bytes behind a request that is still served")

// Listener bounds the connections of another listener. At the bound a kept connection without a
// request is closed for a new one; when there is none, the new one gets Refusal and is closed.
type Listener struct {
	net.Listener
	max     int
	refusal []byte // a whole HTTP answer
	log     *slog.Logger
	full    atomic.Bool // said so already

	mu   sync.Mutex
	open int                // guarded by mu
	idle map[*Conn]struct{} // guarded by mu; kept connections without a request
}

// Listen wraps l. refusal is the whole answer for a connection that is one too many.
func Listen(l net.Listener, connections int, refusal []byte, log *slog.Logger) *Listener {
	return &Listener{Listener: l, max: connections, refusal: refusal, log: log, idle: map[*Conn]struct{}{}}
}

// Accept returns the next connection that may stay.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				l.log.Warn("connection not accepted", "detail", err.Error())
			}
			return nil, err
		}
		if l.admit() {
			return &Conn{Conn: c, l: l}, nil
		}
		if !l.full.Swap(true) {
			l.log.Warn("connections are refused: as many are open as may be", "detail", l.max)
		}
		c.SetWriteDeadline(time.Now().Add(time.Second)) // a new socket's buffer takes it at once
		c.Write(l.refusal)
		c.Close()
	}
}

// admit counts a connection, closing a kept one if that is what it takes.
func (l *Listener) admit() bool {
	l.mu.Lock()
	if l.open < l.max {
		l.open++
		l.mu.Unlock()
		l.full.Store(false)
		return true
	}
	var kept *Conn
	for kept = range l.idle {
		break
	}
	delete(l.idle, kept)
	l.mu.Unlock()
	if kept == nil {
		return false
	}
	kept.Close()
	return l.admit()
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn
	l      *Listener
	serves atomic.Bool // a request was read whose handler has not returned
	closed sync.Once

	// ahead is what came behind a request that is served. Only Read touches it, and the HTTP
	// server reads from one goroutine at a time.
	ahead []byte
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.closed.Do(func() {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.l.open--
		delete(c.l.idle, c)
	})
	return c.Conn.Close()
}

// CloseWrite lets the HTTP server end an answer before it drops the rest of a request.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// Read implements net.Conn.
//
// While a handler runs, net/http has a read of one byte outstanding to see the client leave. A
// byte that comes would end that read, and nobody would look at the connection any more. So it
// is kept here, and the read goes on until the client leaves or the server breaks it off with a
// deadline, as it does behind each handler (D2).
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) != 1 || !c.serves.Load() {
		return c.read(p)
	}
	for {
		var b [2048]byte
		n, err := c.Conn.Read(b[:])
		c.ahead = append(c.ahead, b[:n]...)
		switch {
		case err == nil && len(c.ahead) > aheadMax:
			return 0, errAhead
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && len(c.ahead) > 0:
			return c.read(p)
		default:
			return 0, err
		}
	}
}

// read takes what came ahead first.
func (c *Conn) read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// follow is the HTTP server's ConnState.
func follow(conn net.Conn, s http.ConnState) {
	c, ok := conn.(*Conn)
	if !ok {
		return
	}
	c.serves.Store(s == http.StateActive)
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if s == http.StateIdle {
		c.l.idle[c] = struct{}{}
	} else {
		delete(c.l.idle, c)
	}
}

// connectionsMax is how many clients may be connected: many more than may wait in a queue.
const connectionsMax = 16 << 10

// Connections is how many connections a process may take in that opens each others for every
// one of them: less than connectionsMax where it may not have so many files open.
func Connections(each int) int {
	const spare = 64 // the listener, links, pipes of children, files
	if n := descriptors(); n > 0 {
		return max(1, min(connectionsMax, (n-spare)/(1+each)))
	}
	return connectionsMax
}
