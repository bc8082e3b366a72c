package scenario

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"

	"baton/core/room"
	"baton/engine/model"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/engine/tokenizer"
	"baton/proof/replay"
	"baton/serve/leg"
	"baton/serve/observe"
	"baton/serve/worker"
)

// rowBytes is the KV of one token.
const rowBytes = 16

// oracle is an engine whose next token is a function of every byte that it reads: a block that
// is missing, stale or another room's gives another answer.
type oracle struct {
	vocab  int
	blocks [][]byte
	mu     sync.Mutex
	gate   chan struct{} // guarded by mu; steps wait until it is closed
	held   chan struct{} // guarded by mu; closed when a step waits
	steps  int           // guarded by mu
	tokens int           // guarded by mu; computed
}

// computed says how many tokens steps had.
func (o *oracle) computed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens
}

func (o *oracle) Block(i int32) []byte { return o.blocks[i] }
func (o *oracle) Blocks() int          { return len(o.blocks) }
func (o *oracle) Close() error         { return nil }

// hold makes steps wait; held is closed when one does.
func (o *oracle) hold() (held chan struct{}, release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gate := make(chan struct{})
	o.gate, o.held = gate, make(chan struct{})
	return o.held, sync.OnceFunc(func() {
		o.mu.Lock()
		o.gate = nil
		o.mu.Unlock()
		close(gate)
	})
}

func (o *oracle) Step(items []model.Item) error {
	o.mu.Lock()
	gate, held := o.gate, o.held
	o.steps++
	for i := range items {
		o.tokens += len(items[i].Tokens)
	}
	o.mu.Unlock()
	if gate != nil {
		select {
		case <-held:
		default:
			close(held)
		}
		<-gate
	}
	for i := range items {
		it := &items[i]
		for k, tok := range it.Tokens {
			pos := it.Pos + k
			b := o.blocks[it.Table[pos/room.BlockTokens]]
			if pos%room.BlockTokens == 0 {
				clear(b)
			}
			binary.LittleEndian.PutUint64(b[pos%room.BlockTokens*rowBytes:], uint64(tok)<<32|uint64(pos+1))
		}
		if it.Want {
			var seen []int32
			for pos := range it.Pos + len(it.Tokens) {
				row := o.blocks[it.Table[pos/room.BlockTokens]][pos%room.BlockTokens*rowBytes:]
				if x := binary.LittleEndian.Uint64(row); uint32(x) == uint32(pos+1) {
					seen = append(seen, int32(x>>32))
				} else {
					seen = append(seen, -1) // not the KV of this position
				}
			}
			it.Logits = make([]float32, o.vocab)
			it.Logits[next(seen, o.vocab)] = 8
		}
	}
	return nil
}

// next is the token that follows these.
func next(tokens []int32, vocab int) int32 {
	sum := uint64(1)
	for _, t := range tokens {
		sum = (sum ^ uint64(uint32(t))) * 0x9e3779b97f4a7c15
		sum ^= sum >> 29
	}
	return int32(sum % uint64(vocab))
}

// follow returns the n tokens that must follow a prompt.
func follow(prompt []int32, n, vocab int) []int32 {
	all := append([]int32(nil), prompt...)
	for range n {
		all = append(all, next(all, vocab))
	}
	return all[len(prompt):]
}

var recallTokenizer = sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
	f := recall.Open()
	return tokenizer.FromGGUF(f)
})

// recorded is a directory for the trace of one process; whatever the test does to it, a fresh core
// that is told the same must do the same.
func recorded(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		if _, _, err := replay.All(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// startWorker runs a real worker with an oracle until the end of the test.
func startWorker(t *testing.T, role string, blocks int, manifest string) (*worker.Worker, *oracle) {
	t.Helper()
	tok, err := recallTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{vocab: tok.Vocab(), blocks: make([][]byte, blocks)}
	for i := range o.blocks {
		o.blocks[i] = make([]byte, rowBytes*room.BlockTokens)
	}
	c := worker.Config{Role: role, Secret: []byte("sixteen bytes or more"), Canary: true, Log: slog.New(slog.DiscardHandler), Record: recorded(t)}
	c.Sizes.MaxRunning, c.Sizes.MaxQueued, c.Sizes.ChunkTokens = 4, 64, 32
	w, err := worker.New(c, &worker.Served{Engine: o, Tokenizer: tok, Name: "oracle", Vocab: o.vocab, Context: blocks * room.BlockTokens, Manifest: []byte(manifest)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := w.Close(ctx); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	})
	return w, o
}

var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// call is a leg under way at a real worker.
type call struct {
	t      *testing.T
	cancel context.CancelFunc
	over   chan struct{} // closed: the rest may be read
	ids    []int32
	text   string
	end    *leg.End // nil: the stream was cut
	err    error
}

// open sends a leg as a gateway does.
func open(t *testing.T, w *worker.Worker, kind string, q leg.Request) *call {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c := &call{t: t, cancel: cancel, over: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.HTTP()+"/leg/"+kind, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.over)
		defer cancel()
		c.read(req)
	}()
	t.Cleanup(func() { cancel(); <-c.over })
	return c
}

func (c *call) read(req *http.Request) {
	resp, err := plain.Do(req)
	if err != nil {
		c.err = err
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var b []byte
		if b, c.err = io.ReadAll(resp.Body); c.err == nil {
			c.end, c.err = leg.ParseEnd(b)
		}
		return
	}
	for lines := leg.NewReader(resp.Body); c.end == nil && c.err == nil; {
		var l leg.Line
		l, c.err = lines.Next()
		c.ids, c.text, c.end = append(c.ids, l.IDs...), c.text+l.Text, l.End
	}
}

// ended waits for the end and compares its cause; NoCause is a success.
func (c *call) ended(cause room.Cause) *call {
	c.t.Helper()
	<-c.over
	if c.end == nil || c.end.Cause != cause {
		c.t.Fatalf("the leg ended in %+v, %v; want the cause %q", c.end, c.err, cause)
	}
	return c
}

var rooms room.ID = 1 << 40

// legOf is a greedy request.
func legOf(prompt []int32, out int) leg.Request {
	rooms++
	p := sample.Default()
	p.Temperature, p.MaxTokens, p.IgnoreEOS = 0, out, true
	return leg.Request{RID: "rid", Room: rooms, Tokens: prompt, Params: p, LeftMS: patience.Milliseconds()}
}

// prompt is n tokens of their own.
func prompt(n int) (ids []int32) {
	rooms++
	for i := range n {
		ids = append(ids, int32((int(rooms)*31+i*7)%200+50))
	}
	return ids
}

// both opens the legs of a room.
func both(t *testing.T, p, d *worker.Worker, q leg.Request) (pre, dec *call) {
	t.Helper()
	pre = open(t, p, worker.Prefill, q)
	q.Link = p.Link()
	return pre, open(t, d, worker.Decode, q)
}

func snapshot(t *testing.T, w *worker.Worker) observe.Snapshot {
	s, ok := w.Snapshot()
	if !ok {
		t.Fatal("the worker's loop does not answer")
	}
	return s
}

// empty waits until the workers hold no room and no block.
func empty(t *testing.T, all ...*worker.Worker) {
	t.Helper()
	for _, w := range all {
		until(t, "the worker is empty", func() bool {
			s := snapshot(t, w)
			return len(s.Rooms) == 0 && s.Worker.Blocks.Held == 0 && s.Worker.Blocks.Quarantined == 0
		})
	}
}

// wire stands on a link and lets a test put bytes into it.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu; towards prefill, in order of their dials
	all      sync.WaitGroup
}

func newWire(t *testing.T, target string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l}
	w.all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, far)
			w.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				w.all.Go(func() { io.Copy(way[1], way[0]); way[0].Close(); way[1].Close() })
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		w.all.Wait()
	})
	return w
}

// inject puts bytes into every connection towards prefill.
func (w *wire) inject(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Write(b)
	}
}
