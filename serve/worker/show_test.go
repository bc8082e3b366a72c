package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/room"
	"baton/engine/sample"
	"baton/serve/leg"
	"baton/serve/observe"
)

func get(t testing.TB, w *Worker, path string) (status int, body string) {
	t.Helper()
	resp, err := client.Get("http://" + w.HTTP() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TRUTH: rows, queue lengths and blocks say the same, and the metrics say it too.
func TestRowsQueuesBlocksAndMetricsAgree(t *testing.T) {
	p, f := start(t, Prefill, 64, sizes(1, 8, 16))
	d, _ := start(t, Decode, 64, sizes(1, 8, 16))
	held, release := f.hold()
	defer release()
	r := rand.New(rand.NewPCG(1, 1))
	var decs []*call
	for range 4 {
		pre, dec := both(t, p, d, ask(r, 40, 3, f.vocab), p.Link())
		pre.accepted()
		decs = append(decs, dec.accepted())
	}
	within(t, "a step", held)
	until(t, "all four are on both workers", func() bool {
		return len(look(t, p).Rooms) == 4 && len(look(t, d).Rooms) == 4
	})
	for _, w := range []*Worker{p, d} {
		s := look(t, w)
		if err := s.Worker.Blocks.Check(); err != nil {
			t.Error(err)
		}
		rows := map[string]int{}
		for _, row := range s.Rooms {
			rows[row.Queue]++
			if row.RID != "rid" || row.Phase == "" || row.Poll == "" || row.WaitsFor == "" || row.Worker != w.name || row.AgeMS < 0 {
				t.Errorf("row %+v", row)
			}
		}
		for q, x := range s.Worker.Queues {
			if x.Len != rows[q] {
				t.Errorf("%s: queue %s has %d, %d rows stand in it", w.name, q, x.Len, rows[q])
			}
		}
	}
	if _, body := get(t, p, "/debug/rooms"); !json.Valid([]byte(body)) || strings.Count(body, `"rid":"rid"`) != 4 {
		t.Errorf("/debug/rooms: %s", body)
	}
	release()
	for _, dec := range decs {
		dec.ended(room.NoCause)
	}
	empty(t, p, d)
	_, body := get(t, d, "/metrics")
	for _, want := range []string{
		`baton_rooms_ended_total{cause="",outcome="success",role="decode"} 4`,
		`baton_output_tokens_total{role="decode"} 12`,
		`baton_blocks{role="decode",state="held"} 0`,
		`baton_queue_length{queue="running",role="decode"} 0`,
		`baton_canary_hits_total{role="decode"} 0`,
		`baton_links{role="decode"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	_, body = get(t, p, "/metrics")
	for _, want := range []string{`baton_prompt_tokens_total{role="prefill"} 160`, `baton_transfer_bytes_total{role="prefill",what="sent"} 12288`} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s in\n%s", want, body)
		}
	}
}

// Health means progress: a step that hangs and a loop that does not answer are told apart from
// a worker that merely waits for others.
func TestHealthMeansProgress(t *testing.T) {
	p, f := start(t, Prefill, 16)
	u, uf := start(t, Unified, 16)
	p.healthMax, u.healthMax = 0, 0
	r := rand.New(rand.NewPCG(1, 1))
	open(t, p, Prefill, ask(r, 20, 2, f.vocab)).accepted() // waits for a decode worker
	if status, body := get(t, p, "/health"); status != http.StatusOK {
		t.Errorf("a worker that waits for another: %d %s", status, body)
	}
	held, release := uf.hold()
	defer release()
	c := open(t, u, Decode, ask(r, 20, 2, f.vocab))
	within(t, "a step", held)
	until(t, "the hanging step shows", func() bool {
		h := u.Health()
		return !h.OK && h.Reason == "an engine step hangs"
	})
	release()
	c.ended(room.NoCause)
	if h := u.Health(); !h.OK {
		t.Errorf("after the step: %+v", h)
	}
	block := make(chan struct{})
	u.send(&input{ask: func() { <-block }})
	if status, body := get(t, u, "/health"); status != http.StatusServiceUnavailable || !strings.Contains(body, "loop") {
		t.Errorf("a loop that hangs: %d %s", status, body)
	}
	if status, _ := get(t, u, "/debug/rooms"); status != http.StatusServiceUnavailable {
		t.Errorf("rooms of a loop that hangs: %d", status)
	}
	if _, body := get(t, u, "/metrics"); strings.Contains(body, "baton_rooms_live") {
		t.Error("gauges of a loop that hangs must be absent (O3)")
	}
	close(block)
}

// A room may wait for others for longer than work may take. When its work begins, that wait is
// no sign that nothing comes home.
func TestAWaitBeforeTheWorkIsNoLackOfProgress(t *testing.T) {
	p, f := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	held, release := f.hold()
	defer release()
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 3, f.vocab)
	pre := open(t, p, Prefill, q).accepted()
	p.progress.Store(int64(p.now() - time.Hour)) // so long ago was anything done here
	q.Link = p.Link()
	dec := open(t, d, Decode, q)
	within(t, "a step", held)
	if h := p.Health(); !h.OK || h.Progress > time.Minute.Milliseconds() {
		t.Errorf("a worker that has just begun to work: %+v", h)
	}
	release()
	dec.ended(room.NoCause)
	pre.ended(room.NoCause)
}

func TestServerInfoNamesWhatMustMatch(t *testing.T) {
	p, _ := start(t, Prefill, 16)
	d, _ := start(t, Decode, 16)
	var a, b observe.About
	for w, into := range map[*Worker]*observe.About{p: &a, d: &b} {
		if _, body := get(t, w, "/server_info"); json.Unmarshal([]byte(body), into) != nil {
			t.Fatal(body)
		}
	}
	if a.Manifest == "" || a.Manifest != b.Manifest || a.Link != p.Link() || a.Role != Prefill || a.MaxModelLen != 256 || a.Boot != p.Boot().String() || a.Boot == b.Boot {
		t.Errorf("prefill %+v, decode %+v", a, b)
	}
}

// W7, turned round: a byte written into a free block must not go unseen.
func TestAWriteToAFreeBlockIsFound(t *testing.T) {
	for _, reuse := range []bool{true, false} {
		s, f := serveFake(t, 4, "layout")
		u, err := New(Config{Role: Unified, Canary: true, Log: quiet()}, s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.blocks {
			f.blocks[i][700] ^= 1
		}
		if reuse {
			open(t, u, Decode, ask(rand.New(rand.NewPCG(1, 1)), 20, 2, f.vocab)).ended(room.NoCause)
			if _, body := get(t, u, "/metrics"); strings.Contains(body, `baton_canary_hits_total{role="unified"} 0`) {
				t.Error("no hit counted at the block's next use")
			}
		}
		if err := u.Close(context.Background()); !errors.Is(err, ErrCanary) {
			t.Errorf("Close: %v, want ErrCanary", err)
		}
	}
}

// deaf is a gateway that reads its first line and nothing more: writes hang until they are given a
// short deadline, before or while they do.
type deaf struct {
	header http.Header
	mu     sync.Mutex
	writes int           // guarded by mu
	hurry  bool          // guarded by mu; the last deadline was a short one
	cut    chan struct{} // closed with the first of these: writes fail
}

func (d *deaf) Header() http.Header             { return d.header }
func (d *deaf) WriteHeader(int)                 {}
func (d *deaf) Flush()                          {}
func (d *deaf) SetReadDeadline(time.Time) error { return nil }

func (d *deaf) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hurry && time.Until(at) <= hurryMax {
		d.hurry = true
		close(d.cut)
	}
	return nil
}

func (d *deaf) Write(b []byte) (int, error) {
	d.mu.Lock()
	d.writes++
	first := d.writes == 1
	d.mu.Unlock()
	if first {
		return len(b), nil
	}
	<-d.cut
	return 0, os.ErrDeadlineExceeded
}

// W3: one gateway that does not read costs its own room and nobody else's; the worker's memory
// for it stays bounded.
func TestASlowReaderLosesItsRoomAndStallsNobody(t *testing.T) {
	u, f := start(t, Unified, 256)
	u.answerMax = 100
	r := rand.New(rand.NewPCG(1, 1))
	q := ask(r, 20, 1000, f.vocab)
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{header: http.Header{}, cut: make(chan struct{})}
	left := make(chan struct{})
	go func() {
		defer close(left)
		u.server.Handler.ServeHTTP(d, httptest.NewRequest("POST", "/leg/decode", strings.NewReader(string(body))))
	}()
	other := ask(r, 20, 90, f.vocab)
	if got, want := open(t, u, Decode, other).ended(room.NoCause).ids, oracle(other.Tokens, 90, f.vocab); !slices.Equal(got, want) {
		t.Fatalf("the other room gave %v, want %v", got, want)
	}
	within(t, "the slow reader's handler to leave", left)
	empty(t, u)
	_, metrics := get(t, u, "/metrics")
	for _, want := range []string{`baton_slow_readers_total{role="unified"} 1`, `baton_rooms_ended_total{cause="overload",outcome="failed",role="unified"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// STREAM: the token that finds the buffer full may be the last, and then the core has ended the
// room as a success in the same step. What the gateway gets of it has a gap, so it is none.
func TestALastTokenThatIsDroppedIsNoSuccess(t *testing.T) {
	u, f := start(t, Unified, 16)
	q := ask(rand.New(rand.NewPCG(1, 1)), 20, 3, f.vocab)
	done := make(chan *leg.End, 1)
	u.send(&input{ask: func() {
		n := u.node.(*decodeNode)
		e := &entry{req: &q, branches: make([]branch, 1), peer: decode.Local, answer: newAnswer(1)}
		u.accept(q.Room, e) // the buffer is full
		e.push(0, 7, sample.Piece{Text: "end", IDs: []int32{7}, Finished: true, Reason: "length"})
		n.emit(q.Room, 0)
		n.end(q.Room, room.Done())
		_, _, end := e.answer.take(nil)
		done <- end
	}})
	if end := <-done; end == nil || end.Result() != room.Fail(room.Overload) || end.Finish != "" || end.Message == "" {
		t.Errorf("a stream without its last token ends with %+v, want overload", end)
	}
	if _, body := get(t, u, "/metrics"); !strings.Contains(body, `baton_rooms_ended_total{cause="overload",outcome="failed",role="unified"} 1`) {
		t.Error("it is not counted as what it was")
	}
}

func TestAnAnswerHoldsNoMoreThanItsBound(t *testing.T) {
	a := newAnswer(30)
	refused := 0
	wide := lineOf(1)
	wide.Logprobs = []sample.TokenLogprob{{ID: 1, Top: make([]sample.TopLogprob, 20)}}
	if !a.put(wide) {
		t.Fatal("full at 21 of 30")
	}
	for range 30 {
		if !a.put(lineOf(1)) {
			refused++
		}
	}
	if lines, _, _ := a.take(nil); len(lines) != 10 || refused != 1 {
		t.Fatalf("%d lines kept, told %d times; want 10 and once", len(lines), refused)
	}
	if !a.put(lineOf(1)) {
		t.Fatal("told twice")
	}
	if lines, _, _ := a.take(nil); len(lines) != 0 {
		t.Fatal("a line behind a gap (STREAM)")
	}
}

// The numbers of peers are few and stay with those who use them.
func TestPeerNumbersAreUsedAgainOnlyWhenFree(t *testing.T) {
	p := newPeers(&Worker{log: quiet()})
	p.max = 2
	a, b, c := entryTo("a:1"), entryTo("b:1"), entryTo("c:1")
	if !p.take(a) || !p.take(b) || a.peer == b.peer {
		t.Fatalf("peers %d and %d", a.peer, b.peer)
	}
	if p.take(c) {
		t.Fatal("a third peer where two are kept")
	}
	p.drop(b)
	p.list[b.peer].links = 1
	if p.take(c) {
		t.Fatal("took the number of a link that is up")
	}
	p.list[b.peer].links = 0
	if !p.take(c) || c.peer != b.peer || p.of["b:1"] != 0 || p.list[c.peer].addr != "c:1" {
		t.Fatalf("peer %d, want %d", c.peer, b.peer)
	}
}

// A room that sits out because those behind it wait for prefill (sched.S8) waits for another worker:
// that nothing moves meanwhile is no fault of this one.
func TestARoomThatSitsOutIsNoIllness(t *testing.T) {
	p, pf := start(t, Prefill, 16)
	d, f := start(t, Decode, 4, func(c *Config) { c.Sizes.AheadTokens = 1 })
	r := rand.New(rand.NewPCG(61, 62))
	held, release := f.hold()
	older, younger := ask(r, 15, 40, f.vocab), ask(r, 20, 8, f.vocab)
	_, a := both(t, p, d, older, p.Link())
	within(t, "decode's first step", held)
	_, letGo := pf.hold()
	_, b := both(t, p, d, younger, p.Link())
	inQueue(t, d, younger.Room, room.Transfer)
	release()
	until(t, "the older room sits out", func() bool {
		return slices.ContainsFunc(look(t, d).Rooms, func(x observe.Room) bool {
			return x.Room == older.Room.String() && x.Phase == "generating" && x.WaitsFor == "decode: blocks"
		})
	})
	d.progress.Store(int64(d.now() - time.Hour)) // so long ago was anything done here
	if h := d.Health(); !h.OK || h.Progress < time.Minute.Milliseconds() {
		t.Errorf("%+v", h)
	}
	for id, want := range map[room.ID]int{older.Room: 1, younger.Room: 0} { // its gateway hears of it, or would take it for stuck
		e, _ := asked(d, func() *entry { return d.rooms[id] })
		to := &page{ResponseRecorder: httptest.NewRecorder()}
		(&stream{w: d, e: e, rw: to, rc: http.NewResponseController(to), opened: true}).waits()
		if n := to.count(`"waits":true`); n != want {
			t.Errorf("room %s: it is said %d times that it waits, want %d", id, n, want)
		}
	}
	letGo()
	a.ended(room.NoCause)
	b.ended(room.NoCause)
	empty(t, p, d)
}
