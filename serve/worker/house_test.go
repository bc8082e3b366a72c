package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/engine/sample"
	"baton/proof/replay"
	"baton/serve/leg"
	"baton/serve/observe"
)

func TestMain(m *testing.M) {
	slog.SetDefault(quiet())
	goleak.VerifyTestMain(m)
}

var secret = []byte("sixteen bytes or more")

// patience is how long a test waits for what must come; it is no measure of anything.
const patience = 20 * time.Second

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// option changes a Config before its worker starts.
type option func(*Config)

func sizes(running, queued, chunk int) option {
	return func(c *Config) {
		c.Sizes.MaxRunning, c.Sizes.MaxQueued, c.Sizes.ChunkTokens = running, queued, chunk
	}
}

// start runs a worker of the fake until the end of the test. It must end without a complaint.
func start(t testing.TB, role string, blocks int, options ...option) (*Worker, *fake) {
	t.Helper()
	s, f := serveFake(t, blocks, "layout")
	return startServed(t, role, s, options...), f
}

func startServed(t testing.TB, role string, s *Served, options ...option) *Worker {
	t.Helper()
	c := Config{Role: role, Secret: secret, Canary: true, Log: quiet()}
	recording(t, &c)
	for _, o := range options {
		o(&c)
	}
	w, err := New(c, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopNow(w); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	})
	return w
}

// recording has a worker record what its core is told; at the end of the test a fresh core is told
// the same and must do the same. Benchmarks go without.
func recording(t testing.TB, c *Config) {
	if _, ok := t.(*testing.T); !ok {
		return
	}
	c.Record = t.TempDir()
	t.Cleanup(func() {
		if c.Record == "" { // the test wants none, and so a core that lends its memory
			return
		}
		if _, _, err := replay.All(c.Record); err != nil {
			t.Error(err)
		}
	})
}

// stopNow closes a worker without grace.
func stopNow(w *Worker) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return w.Close(ctx)
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// call is a leg under way.
type call struct {
	t      testing.TB
	cancel context.CancelFunc
	ready  chan struct{} // closed: accepted or over
	over   chan struct{} // closed: over

	mu       sync.Mutex
	status   int
	ids      []int32
	text     string
	logprobs []sample.TokenLogprob
	lines    []leg.Line // with output
	waits    int        // lines that said that the room waits
	body     string     // of a refusal
	end      *leg.End
	err      error
}

// open sends a leg; close it by cancel.
func open(t testing.TB, w *Worker, kind string, r leg.Request) *call {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{t: t, cancel: cancel, ready: make(chan struct{}), over: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.HTTP()+"/leg/"+kind, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	go c.run(req)
	t.Cleanup(func() { cancel(); <-c.over })
	return c
}

func (c *call) run(req *http.Request) {
	defer close(c.over)
	ready := sync.OnceFunc(func() { close(c.ready) })
	defer ready()
	resp, err := client.Do(req)
	if err != nil {
		c.set(func() { c.err = err })
		return
	}
	defer resp.Body.Close()
	c.set(func() { c.status = resp.StatusCode })
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(resp.Body)
		if err == nil {
			c.end, err = leg.ParseEnd(b)
		}
		c.set(func() { c.body, c.err = string(b), err })
		return
	}
	lines := leg.NewReader(resp.Body)
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		c.set(func() {
			c.err = err
			c.ids = append(c.ids, l.IDs...)
			c.text += l.Text
			if len(l.IDs) > 0 {
				c.lines = append(c.lines, l)
			}
			if l.Waits {
				c.waits++
			}
			c.logprobs = append(c.logprobs, l.Logprobs...)
			if l.End != nil {
				c.end = l.End
			}
		})
		if err != nil {
			return
		}
		ready()
	}
}

func (c *call) set(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
}

func (c *call) accepted() *call {
	c.t.Helper()
	within(c.t, "the leg to be accepted", c.ready)
	return c
}

// after waits until n tokens have come, or the end.
func (c *call) after(n int) {
	for {
		c.mu.Lock()
		enough := len(c.ids) >= n
		c.mu.Unlock()
		select {
		case <-c.over:
			return
		default:
			if enough {
				return
			}
			runtime.Gosched()
		}
	}
}

// ended waits for the end and compares it; NoCause means success.
func (c *call) ended(cause room.Cause) *call {
	c.t.Helper()
	within(c.t, "the leg to end", c.over)
	if c.err != nil || c.end == nil {
		c.t.Fatalf("the leg ended without an end: status %d, %v", c.status, c.err)
	}
	want := room.Done()
	if cause != room.NoCause {
		want = room.Fail(cause)
	}
	if c.end.Result() != want {
		c.t.Fatalf("the leg ended with %v (%s), want %v", c.end.Result(), c.end.Message, want)
	}
	return c
}

// cut waits until the stream is over and wants no end in it.
func (c *call) cut() {
	c.t.Helper()
	within(c.t, "the leg to be cut", c.over)
	if c.end != nil || c.err == nil {
		c.t.Fatalf("the leg ended with %+v, want a stream that is cut", c.end)
	}
}

func within(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-c:
	case <-late.C:
		t.Fatalf("waited %v for %s", patience, what)
	}
}

// until asks the workers again and again until ok; nothing tells from outside when it holds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); runtime.Gosched() {
		if time.Since(began) > patience {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

func look(t testing.TB, w *Worker) observe.Snapshot {
	t.Helper()
	s, ok := w.Snapshot()
	if !ok {
		t.Fatal("the loop does not answer")
	}
	return s
}

// inQueue waits until the room stands in a queue.
func inQueue(t testing.TB, w *Worker, id room.ID, q room.Queue) {
	t.Helper()
	until(t, w.name+" has the room in "+q.String(), func() bool {
		return slices.ContainsFunc(look(t, w).Rooms, func(r observe.Room) bool {
			return r.Room == id.String() && r.Queue == q.String()
		})
	})
}

// empty waits until no worker holds a room or a block (RELEASE).
func empty(t testing.TB, workers ...*Worker) {
	t.Helper()
	for _, w := range workers {
		until(t, w.name+" is empty", func() bool {
			s := look(t, w)
			b := s.Worker.Blocks
			if err := b.Check(); err != nil {
				t.Fatal(err)
			}
			return len(s.Rooms) == 0 && b.Held == 0 && b.Quarantined == 0
		})
	}
}

func newRoom(r *rand.Rand) room.ID { return room.ID(r.Uint64()&room.IDMask | 1) }

// ask is a greedy request of n prompt tokens for out tokens.
func ask(r *rand.Rand, n, out, vocab int) leg.Request {
	p := sample.Default()
	p.Temperature, p.MaxTokens, p.IgnoreEOS, p.Seed = 0, out, true, r.Uint64()
	q := leg.Request{RID: "rid", Room: newRoom(r), Params: p, LeftMS: time.Minute.Milliseconds()}
	for range n {
		q.Tokens = append(q.Tokens, r.Int32N(int32(vocab)))
	}
	return q
}

// both opens the two legs of a room.
func both(t testing.TB, p, d *Worker, q leg.Request, link string) (pre, dec *call) {
	t.Helper()
	pre = open(t, p, Prefill, q)
	q.Link = link
	return pre, open(t, d, Decode, q)
}

// proxy stands on a link. It can stop passing bytes after a number of them, and be cut.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	left  int64      // guarded by mu; bytes from prefill that still pass; <0: all
	dry   chan struct{}
	done  sync.WaitGroup
}

func newProxy(t testing.TB, target string, left int64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, left: left, dry: make(chan struct{})}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.done.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		a, err := p.listener.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", p.target)
		if err != nil {
			a.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, a, b)
		p.mu.Unlock()
		p.done.Go(func() { io.Copy(b, a); b.Close() })
		p.done.Go(func() { p.pass(a, b); a.Close() })
	}
}

// pass moves what prefill sends.
func (p *proxy) pass(dst, src net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.left >= 0 && int64(n) > p.left {
			n = int(p.left)
			select {
			case <-p.dry:
			default:
				close(p.dry)
			}
		}
		if p.left >= 0 {
			p.left -= int64(n)
		}
		p.mu.Unlock()
		if n == 0 {
			continue // swallowed: the peer waits
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections; heal lets new ones pass everything.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) heal() {
	p.mu.Lock()
	p.left = -1
	p.mu.Unlock()
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func lineOf(id int32) leg.Line { return leg.Line{IDs: []int32{id}} }

func entryTo(link string) *entry { return &entry{req: &leg.Request{Link: link}} }
