package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"baton/serve/gateway"
)

// fleet is a running Config.
type fleet struct {
	Config
	gateway *gateway.Gateway
	secret  string
	probes  http.Client
	ready   sync.Once
	serving chan struct{} // closed when a request can be served for the first time
	mu      sync.Mutex
	faults  []error // guarded by mu; what workers found at their ends
}

// ErrStopped says that Run was told to stop at once, with requests still live.
var ErrStopped = errors.New("fleet: stopped at once")

// Cut is the error of a drain whose time was over with requests still live.
type Cut struct {
	Requests int
	After    time.Duration
}

func (c Cut) Error() string {
	return fmt.Sprintf("fleet: %d requests were still live after %v of draining, and were ended", c.Requests, c.After)
}

// Run serves until ctx ends, then drains: new requests are refused, live ones get
// Times.Drain. It returns nil after a drain, a Cut when that time was over, ErrStopped when Now
// was closed with requests still live, and with each what workers found wrong when they were told to leave (F7).
func Run(ctx context.Context, c Config) error {
	c.setDefaults()
	if err := c.Check(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return listenError(c.Listen, err)
	}
	defer listener.Close()
	g, err := gateway.New(c.Gateway)
	if err != nil {
		return err
	}
	defer g.Close()
	f := &fleet{Config: c, gateway: g, secret: newSecret(), serving: make(chan struct{})}
	f.probes.Transport = &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	defer f.probes.CloseIdleConnections()
	server := g.Server()
	served := make(chan error, 1)
	go func() {
		defer close(served)
		served <- server.Serve(g.Listener(listener))
	}()
	defer func() {
		server.Close()
		for range served {
		}
	}()

	workers, dismiss := context.WithCancel(context.WithoutCancel(ctx))
	failed, kept := f.keepAll(workers)
	err = f.wait(ctx, listener, failed, served)
	if err == nil {
		err = f.drain(server)
	}
	dismiss()
	kept.Wait()
	return errors.Join(append([]error{err}, f.faults...)...) // nobody writes faults any more
}

// fault keeps what a worker found wrong at its end.
func (f *fleet) fault(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, err)
}

func listenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("fleet: %s is taken by another process; stop it, or choose another address with --listen", addr)
	}
	return fmt.Errorf("fleet: listening on %q: %w; --listen wants HOST:PORT of this machine, as 127.0.0.1:8000", addr, err)
}

// reachable is an address by which somebody on this machine comes to the listener, whose own may
// stand for all of the machine's.
func reachable(listen string, at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	host := "127.0.0.1" // a listener for all takes both families
	if h, _, err := net.SplitHostPort(listen); err == nil && strings.Contains(h, ":") {
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// newSecret makes what the workers of this fleet know each other by (F4).
func newSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// keepAll starts every place. The first error of one comes on the channel.
func (f *fleet) keepAll(ctx context.Context) (<-chan error, *sync.WaitGroup) {
	failed := make(chan error, 1)
	kept := &sync.WaitGroup{}
	for _, role := range []struct {
		name string
		n    int
	}{{gateway.RolePrefill, f.Prefill}, {gateway.RoleDecode, f.Decode}, {gateway.RoleUnified, f.Unified}} {
		for i := range role.n {
			p := newPlace(f, role.name, i)
			kept.Go(func() {
				if err := p.keep(ctx); err != nil {
					select {
					case failed <- err:
					default: // the first one is told
					}
				}
			})
		}
	}
	return failed, kept
}

// joined is called when a worker came onto the roster.
func (f *fleet) joined() {
	if f.gateway.Serving() {
		f.ready.Do(func() { close(f.serving) })
	}
}

// wait says when the fleet is ready and returns when it shall end.
func (f *fleet) wait(ctx context.Context, l net.Listener, failed, served <-chan error) error {
	select {
	case <-f.serving:
		fmt.Fprintf(f.Out, "ready http://%s\n", reachable(f.Listen, l.Addr()))
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-failed:
		return err
	case err := <-served:
		return fmt.Errorf("fleet: the HTTP server ended: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// hurried says whether somebody wants the end at once.
func (f *fleet) hurried() bool {
	select {
	case <-f.Now:
		return true
	default:
		return false
	}
}

// drain lets live requests end. New ones are answered with 503 until the last is through.
func (f *fleet) drain(server *http.Server) error {
	f.Log.Info("draining: no new requests, live ones may end", "after", f.Times.Drain)
	ctx, cancel := context.WithTimeout(context.Background(), f.Times.Drain)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-f.Now:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := f.gateway.Drain(ctx)
	if err == nil {
		// No request is live. What is still connected waits for nothing that we owe it.
		short, done := context.WithTimeout(ctx, time.Second)
		server.Shutdown(short)
		done()
	}
	cancel()
	<-stopped
	short, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	live := 0
	if err != nil {
		live, err = f.gateway.Live(short) // they may have ended in this moment
	}
	f.gateway.Close() // tells the clients of what is left
	switch {
	case live == 0 && err == nil:
		return nil
	case f.hurried():
		return ErrStopped
	case live == 0: // nobody could say
		return nil
	}
	f.Log.Warn("requests were still live when the time to drain was over", "after", f.Times.Drain, "detail", live)
	server.Shutdown(short) // for their last event
	return Cut{live, f.Times.Drain}
}
