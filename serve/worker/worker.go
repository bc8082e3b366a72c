package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/room"
	"baton/engine/grammar"
	"baton/serve/door"
	"baton/serve/observe"
	"baton/serve/recorder"
	"baton/transfer"
	"baton/transfer/tcp"
)

// Worker is a running worker. Its methods are safe for everybody.
type Worker struct {
	cfg     Config
	name    string
	boot    room.Boot
	began   time.Time // zero of the core's clock
	served  *Served
	log     *slog.Logger
	tracing bool // log has Debug

	// Owned by the loop.
	node       node
	rooms      map[room.ID]*entry
	canary     *canary
	tokenBytes int64           // of keys and values of one token
	waiters    []chan struct{} // to be closed when the node is idle
	computes   bool            // the model has given logits that are numbers

	inbox    chan *input
	jobs     chan *job     // to the engine; holds one
	job      job           // the one; the loop's, or the engine's from the channel until it is back
	stop     chan struct{} // closed: the loop may end
	over     chan struct{} // closed: the loop has ended
	computed chan struct{} // closed: the engine's goroutine has ended

	draining   atomic.Bool
	progress   atomic.Int64 // clock when something last moved
	numberless atomic.Bool  // the model gave logits that are none, and never others
	stepping   atomic.Int64 // clock when the step in flight began, plus 1; 0 without one

	grammars  func() *grammar.Cache         // made when the first grammar comes
	compiled  atomic.Pointer[grammar.Cache] // that one, once it is there
	compiling chan struct{}                 // holds one for each grammar that is being compiled

	metrics  *observe.Metrics
	link     io.Closer // nil for a unified worker
	linkAddr string    // prefill only
	linkStat func() transfer.Stats
	listener net.Listener
	server   *http.Server
	serving  chan struct{} // closed: the server has ended
	legs     chan struct{} // holds one for each leg that is here, its request read
	bodies   door.Bodies   // of requests that are being read

	closing   sync.Once
	closeErr  error
	healthMax time.Duration
	answerMax int // bound of an answer of one choice; tests make it small
}

// compilingMax keeps grammars from taking more than one of the processors that are spare.
const compilingMax = 1

// processorsSpare: one for the loop, one for whoever moves bytes.
const processorsSpare = 2

// Times that no operator needs to choose.
const (
	// endMax: rooms that were aborted end as soon as a step and writes are home; this much is
	// given to tell peers before the link goes.
	endMax = 2 * time.Second
	// stuckMax bounds the wait for a step and for writes of a closed link.
	stuckMax = 30 * time.Second
	// HealthMax is the age from which work without progress is not healthy: above the
	// longest step (see ChunkDefault) and the silence bound of a link.
	HealthMax = 30 * time.Second
)

// New starts a worker that serves s in this process and owns s.Engine from now on, also when
// it fails. c gets its defaults.
func New(c Config, s *Served) (*Worker, error) {
	c = c.WithDefaults()
	w, err := build(c, s)
	if err != nil {
		return nil, errors.Join(err, s.Engine.Close())
	}
	go w.loop()
	go w.compute()
	go func() {
		defer close(w.serving)
		w.serve()
	}()
	w.log.Info("worker started", "worker", w.name, "detail", "model "+s.Name)
	return w, nil
}

func build(c Config, s *Served) (*Worker, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.HTTP)
	if err != nil {
		return nil, listenError("http", c.HTTP, err)
	}
	w := &Worker{
		cfg: c, name: c.Name, boot: newBoot(), began: time.Now(), served: s, log: c.Log,
		rooms: map[room.ID]*entry{},
		inbox: make(chan *input, inboxMax), jobs: make(chan *job, 1),
		stop: make(chan struct{}), over: make(chan struct{}), computed: make(chan struct{}), serving: make(chan struct{}),
		listener: listener, legs: make(chan struct{}, c.Sizes.MaxQueued+c.Sizes.MaxRunning+legsSpare), healthMax: HealthMax, answerMax: answerMax,
		compiling: make(chan struct{}, compilingMax),
	}
	w.grammars = sync.OnceValue(func() *grammar.Cache {
		c := grammar.NewCache(s.Tokenizer, s.Vocab)
		w.compiled.Store(c)
		return c
	})
	w.tokenBytes = int64(len(s.Engine.Block(0)) / room.BlockTokens)
	w.tracing = c.Log.Enabled(context.Background(), slog.LevelDebug)
	if w.name == "" {
		w.name = c.Role + "@" + listener.Addr().String()
	}
	if c.Canary {
		w.canary = newCanary(s.Engine, w.canaryHit)
	}
	from := observe.Sources{Snapshot: w.Snapshot, Grammars: w.cached}
	if c.Role != Unified {
		from.Transfer = func() transfer.Stats { return w.linkStat() }
	}
	w.metrics = observe.NewMetrics(c.Role, from)
	w.server = newServer(w)
	if err := w.connect(); err != nil {
		listener.Close()
		return nil, err
	}
	return w, nil
}

// cached says what the cache of grammars holds.
func (w *Worker) cached() (g observe.Grammars, ok bool) {
	c := w.compiled.Load()
	if c == nil {
		return g, false
	}
	entries, bytes, hits, misses := c.Stats()
	return observe.Grammars{Entries: int64(entries), Bytes: bytes, Hits: hits, Misses: misses}, true
}

// listenError says what to do about an address that cannot be listened on.
func listenError(what, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("worker: %s: %s is taken by another process; stop it, or choose another address with --%s", what, addr, what)
	}
	return fmt.Errorf("worker: %s: listening on %q: %w; --%s wants HOST:PORT of this machine, as 127.0.0.1:9001, or port 0 for any", what, addr, err, what)
}

// connect makes the core with its end of the links.
func (w *Worker) connect() error {
	z, blocks := w.cfg.Sizes, w.served.Engine.Blocks()
	id := transfer.Identity{Boot: w.boot, Secret: w.cfg.Secret, Manifest: w.served.Manifest, Log: w.log.With("worker", w.name)}
	if w.cfg.Role == Prefill {
		cc := prefill.Config{Blocks: blocks, QueuedMax: z.MaxQueued, RunningMax: z.MaxRunning, ChunkTokens: z.ChunkTokens, PinnedMax: blocks / pinnedShare}
		if err := cc.Check(); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
		n := &prefillNode{w: w, core: prefill.New(cc), keys: newPrefixes(&w.cfg), sums: make([]uint64, blocks)}
		w.node = n
		link, err := tcp.Listen(w.cfg.Link, id, w.served.Engine, n)
		if err != nil {
			return listenError("link", w.cfg.Link, err)
		}
		n.link, w.link, w.linkAddr, w.linkStat = link, link, link.Addr(), link.Stats
		n.rec = recorded(w, cc, recorder.NewPrefill)
		return nil
	}
	cc := decode.Config{Boot: w.boot, Blocks: blocks, QueuedMax: z.MaxQueued, RunningMax: z.MaxRunning, ChunkTokens: z.ChunkTokens, AheadTokens: z.AheadTokens, PinnedMax: blocks / pinnedShare,
		Lends: w.cfg.Record == ""} // a recorder writes later what it is given
	if err := cc.Check(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	n := &decodeNode{w: w, core: decode.New(cc), peers: newPeers(w), keys: newPrefixes(&w.cfg)}
	w.node = n
	if w.cfg.Role == Decode {
		link := tcp.NewDecode(id, w.served.Engine, n)
		n.link, w.link, w.linkStat = link, link, link.Stats
	}
	n.rec = recorded(w, cc, recorder.NewDecode)
	return nil
}

// recorded starts the recorder of a core. A worker that cannot record serves without.
func recorded[C, R any](w *Worker, c C, start func(dir string, l recorder.Life, c C) (*R, error)) *R {
	if w.cfg.Record == "" {
		return nil
	}
	r, err := start(w.cfg.Record, recorder.Life{Role: w.cfg.Role, Name: w.name, Boot: w.boot, Began: w.began, Log: w.log.With("worker", w.name)}, c)
	if err != nil {
		w.log.Warn("no trace is recorded", "worker", w.name, "detail", err)
		return nil
	}
	return r
}

func newBoot() room.Boot {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails (crypto/rand)
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return room.Boot(n)
		}
	}
}

// Refusal is the error of a worker that cannot start as it was configured: on this machine, as it
// is now, another start would end the same.
type Refusal struct{ err error }

func (r *Refusal) Error() string { return r.err.Error() }
func (r *Refusal) Unwrap() error { return r.err }

// Run serves c's model until ctx or the parent ends, then drains. What it says of a configuration
// or model that it cannot serve is a *Refusal.
func Run(ctx context.Context, c Config) error {
	c = c.WithDefaults()
	if err := c.Check(); err != nil {
		return &Refusal{err}
	}
	// The engine's threads spin and so keep their processors (kernel.Team): legs, links and
	// the loop need some of their own.
	threads := c.Sizes.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+processorsSpare))
	s, err := Load(c)
	if err != nil {
		return &Refusal{err}
	}
	w, err := New(c, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Parent != nil {
		// This goroutine ends with its reader: for a process's stdin that is the process's own end.
		go func() {
			io.Copy(io.Discard, c.Parent)
			cancel()
		}()
	}
	if c.Ready != nil {
		if err := json.NewEncoder(c.Ready).Encode(w.ready()); err != nil {
			cancel() // nobody will ever call: the parent is gone
		}
	}
	<-ctx.Done()
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), c.Grace)
	defer done()
	return w.Close(grace)
}

func (w *Worker) ready() observe.Ready {
	return observe.Ready{Ready: true, Role: w.cfg.Role, HTTP: w.HTTP(), Link: w.linkAddr, Boot: w.boot.String(), PID: os.Getpid()}
}

// HTTP is the address that takes legs.
func (w *Worker) HTTP() string { return w.listener.Addr().String() }

// Link is the address where decode workers dial; "" unless this is a prefill worker.
func (w *Worker) Link() string { return w.linkAddr }

// Boot names this life of the worker.
func (w *Worker) Boot() room.Boot { return w.boot }

// Drain makes the worker refuse new rooms; live ones go on. It cannot be undone.
func (w *Worker) Drain() {
	if !w.draining.Swap(true) {
		w.log.Info("worker drains", "worker", w.name)
		w.send(&input{ask: func() { w.node.drain() }})
	}
}

// idle returns a channel that is closed when no room is live.
func (w *Worker) idle() <-chan struct{} {
	c := make(chan struct{})
	w.send(&input{ask: func() { w.waiters = append(w.waiters, c) }})
	return c
}

// Close drains until ctx ends, then ends what is left, and gives everything back (W6). It
// returns ErrCanary, or what else is wrong at the end.
func (w *Worker) Close(ctx context.Context) error {
	w.closing.Do(func() { w.closeErr = w.close(ctx) })
	return w.closeErr
}

func (w *Worker) close(ctx context.Context) error {
	w.Drain()
	idle := w.idle()
	if !waitFor(idle, ctx.Done(), nil) {
		w.send(&input{ask: w.abortAll})
		short := time.NewTimer(endMax)
		waitFor(idle, nil, short.C)
		short.Stop()
	}
	var errs []error
	if w.link != nil {
		errs = append(errs, w.link.Close())
	}
	stuck := time.NewTimer(stuckMax)
	defer stuck.Stop()
	if !waitFor(idle, nil, stuck.C) {
		errs = append(errs, fmt.Errorf("worker: rooms have not ended %v after everything was closed", stuckMax))
	}
	if w.link != nil {
		w.link.Close() // again, for the answers to what rooms asked of it meanwhile (transfer T8)
	}
	sctx, cancel := context.WithTimeout(context.Background(), endMax)
	if err := w.server.Shutdown(sctx); err != nil {
		w.server.Close()
	}
	cancel()
	<-w.serving
	close(w.stop)
	<-w.over
	close(w.jobs)
	<-w.computed
	for range cap(w.legs) { // every leg has left, and none comes in any more
		w.legs <- struct{}{}
	}
	errs = append(errs, w.audit(), w.canary.last(), w.served.Engine.Close())
	w.log.Info("worker ended", "worker", w.name)
	return errors.Join(errs...)
}

func waitFor(done <-chan struct{}, cut <-chan struct{}, late <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-cut:
	case <-late:
	}
	return false
}

// abortAll ends every live room: the worker is leaving.
func (w *Worker) abortAll() {
	var live []room.ID
	w.node.rooms(func(v room.View) bool {
		live = append(live, v.Room)
		return true
	})
	for _, id := range live {
		if e := w.rooms[id]; e != nil { // rooms that only a peer spoke of have none
			e.why, e.leaving = "the worker "+w.name+" is leaving", true
		}
		w.node.abort(id, room.WorkerLost)
	}
}

// audit compares the books at the end, when the loop is over.
func (w *Worker) audit() error {
	b := w.node.blocks()
	if len(w.rooms) == 0 && b.Held == 0 && b.Free+b.Cached+b.Quarantined == b.Total {
		return nil
	}
	return fmt.Errorf("worker: at the end %d answers are open and blocks are %+v; want none and none held", len(w.rooms), b)
}

func (w *Worker) canaryHit(block int32, offset int) {
	w.metrics.CanaryHits.Inc()
	w.log.Error("a free block was written to", "worker", w.name, "detail", fmt.Sprintf("block %d at byte %d", block, offset))
}
