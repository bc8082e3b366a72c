package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/door"
	"baton/serve/openai"
	"baton/serve/recorder"
	"baton/serve/upstream/baton"
)

// Config is what a gateway is made of. Zero values take the defaults below.
type Config struct {
	Model       string // the name that clients use
	Text        Text   // the model's tokenizer and chat template
	Limits      relay.Limits
	Budgets     relay.Budgets
	BodyBytes   int64         // bound of a request body
	ClientBytes int           // bound of what waits for one slow client, for each choice that it asked for
	Keepalive   time.Duration // silence of a stream after which a comment is sent; negative: never
	Log         *slog.Logger
	Record      string // a directory for a trace of all that the core is told and wants (package recorder); "": none
}

// Default budgets. A client can lower the total with X-Request-Timeout.
const (
	queueDefault      = time.Minute      // longer in the queue, and whoever asked has asked again
	connectDefault    = 10 * time.Second // accepting is bookkeeping; a machine that swaps needs seconds
	firstTokenDefault = 3 * time.Minute  // a prompt of 32k tokens at 200 tokens/s, behind others
	gapDefault        = time.Minute      // a decode step behind a worker's longest prefill
	keepaliveDefault  = 15 * time.Second // load balancers cut silent streams after 30 to 60 s
)

// Bounds of the HTTP side.
const (
	writeAfter      = 30 * time.Second   // for one write to a client that does not read
	idleAfter       = 2 * time.Minute    // for a kept connection to a worker
	inspectAfter    = time.Second        // for a worker's or the loop's answer to an operator's question
	retryHint       = time.Second        // Retry-After: a worker is back within a second or two
	retryMax        = time.Minute        // Retry-After: who is told more has gone elsewhere
	ridBytesMax     = 128                // of a client's X-Request-Id; a UUID has 36
	clientBytesMax  = 256 << 10          // waiting for a slow client, for each of its choices: minutes of tokens, seconds with 20 alternatives each
	clientBytesMost = 32 << 20           // and for all of them together: as many prompts and choices as a request may have
	inboxLen        = 1024               // events on their way to the loop; senders wait beyond it
	inspectBytesMax = 16 << 20           // of a worker's answer: 4,096 rooms of 4 KiB
	timeoutMax      = 24 * 7 * time.Hour // what a leg can carry
	timeoutMin      = time.Millisecond   // what a leg can carry
	progressMax     = 2 * time.Second    // the loop's answer to a health question
)

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.BodyBytes <= 0 {
		c.BodyBytes = openai.BodyBytesMax
	}
	if c.ClientBytes <= 0 {
		c.ClientBytes = clientBytesMax
	}
	b := &c.Budgets
	for _, d := range []struct {
		budget *time.Duration
		def    time.Duration
	}{
		{&b.Queue, queueDefault}, {&b.Connect, connectDefault}, {&b.FirstToken, firstTokenDefault},
		{&b.Gap, gapDefault}, {&b.Total, relay.TotalDefault}, {&c.Keepalive, keepaliveDefault},
	} {
		if *d.budget == 0 {
			*d.budget = d.def
		}
	}
	c.Budgets.Total = min(c.Budgets.Total, timeoutMax)
}

// ErrClosed says that the gateway's loop has ended.
var ErrClosed = errors.New("gateway: closed")

// Gateway is one gateway. Start it with New, serve its Handler, end it with Close.
type Gateway struct {
	config  Config
	log     *slog.Logger
	client  *baton.Client
	metrics *metrics
	started time.Time
	inbox   chan input
	cancel  context.CancelFunc
	posting sync.RWMutex           // held shared while something is put into inbox: see Close
	stopped chan struct{}          // closed by Close: nothing is posted any more
	ended   chan struct{}          // closed when the loop is over
	status  atomic.Pointer[status] // what handlers need to know without asking the loop
	lastReq atomic.Uint64
	inspect http.Client
	bodies  door.Bodies  // of requests that are read and have no token ids yet
	answers atomic.Int64 // handlers that owe an answer to an accepted request
	longest int          // bytes of the longest token
	closing sync.Once
}

// status is the loop's word to everybody, replaced when it changes.
type status struct {
	missing  string // which worker a new request would wait for; "" if it could be placed
	draining bool
	capacity openai.Capacity
	manifest string // digest of what is served
}

// New starts a gateway without workers.
func New(c Config) (*Gateway, error) {
	if c.Text == nil || c.Model == "" {
		return nil, errors.New("gateway: a model's name and its Text are needed")
	}
	if c.BodyBytes > door.BytesMax {
		return nil, fmt.Errorf("gateway: a body may have %d bytes: all that are under way have at most %d", c.BodyBytes, int64(door.BytesMax))
	}
	c.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gateway{config: c, log: c.Log, client: baton.New(), started: time.Now(), inbox: make(chan input, inboxLen),
		cancel: cancel, stopped: make(chan struct{}), ended: make(chan struct{})}
	g.inspect.Transport = &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: idleAfter}
	g.status.Store(&status{missing: new(roster).missing()})
	for id := range c.Text.Vocab() {
		g.longest = max(g.longest, len(c.Text.Token(int32(id))))
	}
	g.metrics = newMetrics(g)
	l := &loop{g: g, core: relay.New(c.Limits), rights: cmp.Or(max(c.Limits.MaxRunning, 0), relay.DefaultLimits().MaxRunning), calls: map[uint64]*call{}, legs: map[legKey]context.CancelFunc{}}
	if c.Record != "" {
		life := recorder.Life{Role: "gateway", Name: "gateway", Boot: room.Boot(newRoom()), Began: g.started, Log: g.log}
		var err error
		if l.rec, err = recorder.NewRelay(c.Record, life, c.Limits); err != nil {
			g.log.Warn("no trace is recorded", "detail", err)
		}
	}
	go func() {
		defer close(g.ended)
		l.run(ctx)
	}()
	return g, nil
}

// clock is the time on which the core counts.
func (g *Gateway) clock() time.Duration { return time.Since(g.started) }

// post gives the loop an input and says whether it will take it: false says that Close was
// called. What was posted is taken, also when Close is called at the same time.
func (g *Gateway) post(in input) bool {
	g.posting.RLock()
	defer g.posting.RUnlock()
	if g.closed() {
		return false
	}
	g.inbox <- in // the loop goes on until Close has the lock
	return true
}

// closed says whether Close was called.
func (g *Gateway) closed() bool {
	select {
	case <-g.stopped:
		return true
	default:
		return false
	}
}

// offer is post for those who do not wait longer than ctx.
func (g *Gateway) offer(ctx context.Context, in input) error {
	g.posting.RLock()
	defer g.posting.RUnlock()
	if g.closed() {
		return ErrClosed
	}
	select {
	case g.inbox <- in:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask runs f on the loop and waits for it. After an error f has not run and never will.
func (g *Gateway) ask(ctx context.Context, f func(*loop)) error {
	done := make(chan struct{})
	var claimed atomic.Bool // by the loop, which runs f, or by us, who do not want it any more
	if err := g.offer(ctx, input{do: func(l *loop) {
		if !claimed.CompareAndSwap(false, true) {
			return
		}
		f(l)
		l.publish() // whoever asked sees what it did
		close(done)
	}}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	if claimed.CompareAndSwap(false, true) {
		return ctx.Err()
	}
	<-done // f is at work, and nothing on the loop waits (W7)
	return nil
}

// publish refreshes the status.
func (l *loop) publish() {
	s := status{l.roster.missing(), l.core.Draining(), l.roster.capacity(l.rights), l.roster.manifest()}
	if *l.g.status.Load() != s {
		l.g.status.Store(&s)
	}
}

// Join puts a life of a worker on the roster and returns its id there. Names are places: a
// second worker may have the name only when the first has left, or is retired.
func (g *Gateway) Join(ctx context.Context, w Worker) (int32, error) {
	var id int32
	var ok bool
	if err := g.ask(ctx, func(l *loop) {
		if id, ok = l.roster.join(w); ok {
			l.step(relay.Event{Kind: relay.Roster, Worker: id})
		}
	}); err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("gateway: there is a worker %q already", w.Name)
	}
	g.log.Info("worker joined", "worker", w.Name, "peer", w.HTTP)
	return id, nil
}

// Health tells what a worker's health endpoint answered when it was asked at that time. A good
// answer also ends a suspicion, unless it may have been given before the worker was lost.
func (g *Gateway) Health(ctx context.Context, id int32, asked time.Time, good bool) error {
	return g.ask(ctx, func(l *loop) {
		m := l.roster.find(id)
		if m == nil {
			return
		}
		before := m.usable()
		m.down = !good
		if good && asked.Sub(g.started) > m.blamed {
			m.suspect = false
		}
		if m.usable() && !before {
			l.step(relay.Event{Kind: relay.Roster, Worker: id})
		}
	})
}

// Retire says that a life takes nothing new and will leave by itself. It stays on the roster with
// its legs until Leave; its successor may join beside it.
func (g *Gateway) Retire(ctx context.Context, id int32) error {
	return g.ask(ctx, func(l *loop) {
		if m := l.roster.find(id); m != nil {
			m.retired = true
		}
	})
}

// Leave takes a life of a worker off the roster: nothing is placed on it any more.
func (g *Gateway) Leave(ctx context.Context, id int32) error {
	return g.ask(ctx, func(l *loop) {
		if m := l.roster.find(id); m != nil {
			l.roster.leave(m)
		}
	})
}

// Serving says whether a new request could be placed now.
func (g *Gateway) Serving() bool { return g.status.Load().missing == "" }

// Drain refuses new requests and waits until no accepted one is left and every answer is
// written, or ctx is done.
func (g *Gateway) Drain(ctx context.Context) error {
	idle := make(chan struct{})
	if err := g.ask(ctx, func(l *loop) {
		l.step(relay.Event{Kind: relay.Drain})
		l.answered = append(l.answered, idle)
	}); err != nil {
		return err
	}
	select {
	case <-idle:
		return nil
	case <-g.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends every request that is left, with an error to its client, and the gateway.
func (g *Gateway) Close() {
	g.closing.Do(func() {
		close(g.stopped)
		g.posting.Lock() // whoever was posting is through
		g.cancel()
		g.posting.Unlock()
	})
	<-g.ended
	g.client.Close()
	g.inspect.CloseIdleConnections()
}

// Server returns an HTTP server for the gateway with every bound set. The caller gives it a
// listener of Listener and shuts it down.
func (g *Gateway) Server() *http.Server { return door.Server(g.Handler(), writeAfter, g.log) }

// Listener bounds what comes to a listener, and has clients seen that leave. A request may open
// two connections more, for its legs.
func (g *Gateway) Listener(l net.Listener) net.Listener {
	return door.Listen(l, door.Connections(2), tooManyConnections(), g.log)
}

// tooManyConnections is the answer to a connection that is one too many.
func tooManyConnections() []byte {
	e := unavailable("too many connections are open")
	body, _ := json.Marshal(e) // strings: they always print
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: %d\r\nConnection: close\r\n\r\n%s",
		e.Status, http.StatusText(e.Status), len(body), int(e.RetryAfter.Seconds()), body)
}
