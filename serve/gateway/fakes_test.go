package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/engine/chat"
	"baton/proof/replay"
	"baton/serve/leg"
	"baton/serve/observe/logrules"
)

// byteText is a Text whose tokens are bytes.
type byteText struct{}

func (byteText) Chat(c chat.Conversation) (*chat.Prompt, error) {
	var all strings.Builder
	for _, m := range c.Messages {
		all.WriteString(m.Content)
	}
	return &chat.Prompt{IDs: idsOf(all.String())}, nil
}

func (byteText) Prompt(text string, _ bool) ([]int32, error) { return idsOf(text), nil }

func idsOf(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

func (byteText) Decode(ids []int32) string {
	b := make([]byte, len(ids))
	for i, id := range ids {
		b[i] = byte(id)
	}
	return string(b)
}

func (byteText) Token(id int32) []byte { return []byte{byte(id)} }
func (byteText) Vocab() int            { return 256 }

// fakeLeg is a leg at a fake worker: a script speaks through it.
type fakeLeg struct {
	t   *testing.T
	req *leg.Request
	ctx context.Context // done when the gateway closes the leg
	w   http.ResponseWriter
}

func (l *fakeLeg) line(v leg.Line) {
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Error(err)
	}
	l.raw(string(b) + "\n")
}

func (l *fakeLeg) raw(s string) {
	io.WriteString(l.w, s)
	l.w.(http.Flusher).Flush()
}

func (l *fakeLeg) accept() { l.line(leg.Line{Accepted: true}) }
func (l *fakeLeg) piece(text string) {
	l.line(leg.Line{Text: text, IDs: idsOf(text)})
}

func (l *fakeLeg) done(out int) {
	l.line(leg.Line{End: &leg.End{Outcome: room.Success, Finish: "stop", PromptTokens: len(l.req.Tokens), OutputTokens: out}})
}

func (l *fakeLeg) fail(c room.Cause) {
	l.line(leg.Line{End: &leg.End{Outcome: room.Fail(c).Kind, Cause: c, Message: "said so"}})
}

func (l *fakeLeg) refuse(status int, body string) {
	l.w.WriteHeader(status)
	io.WriteString(l.w, body)
}

func (l *fakeLeg) cut() { panic(http.ErrAbortHandler) }

// wait is silence until the gateway closes the leg.
func (l *fakeLeg) wait() { <-l.ctx.Done() }

// script is what a fake worker does with a leg.
type script func(*fakeLeg)

// computed holds a channel per room, closed when its prefill is through.
var computed sync.Map

func (l *fakeLeg) kv() chan struct{} {
	c, _ := computed.LoadOrStore(l.req.Room, make(chan struct{}))
	return c.(chan struct{})
}

// goodPrefill accepts and is through; goodDecode waits for it and answers "hello" in two pieces.
func goodPrefill(l *fakeLeg) {
	l.accept()
	close(l.kv())
	l.line(leg.Line{End: &leg.End{Outcome: room.Success, PromptTokens: len(l.req.Tokens)}})
}

func goodDecode(l *fakeLeg) {
	l.accept()
	if l.req.Link != "" {
		select {
		case <-l.kv():
		case <-l.ctx.Done():
			return
		}
	}
	l.piece("hel")
	l.piece("lo")
	l.done(5)
}

// fakeWorker counts what is open at it.
type fakeWorker struct {
	t      *testing.T
	server *httptest.Server
	mu     sync.Mutex
	script script          // guarded by mu
	rooms  map[room.ID]int // guarded by mu; legs per room
	last   *leg.Request    // guarded by mu
	legs   atomic.Int32    // ever
	open   int             // guarded by mu; legs
	closed *sync.Cond      // of mu: open changed
	id     int32           // on the roster
}

func newFake(t *testing.T, s script) *fakeWorker {
	f := &fakeWorker{t: t, script: s, rooms: map[room.ID]int{}}
	f.closed = sync.NewCond(&f.mu)
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeWorker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/debug/rooms" {
		io.WriteString(w, `{"worker":{"worker":"x","role":"decode","boot":"b","pid":7,"queues":{"running":{"len":1,"oldest_ms":3}},"blocks":{"total":4,"free":4,"cached":0,"held":0,"quarantined":0}},"rooms":[{"room":"0000000000000007","rid":"r","role":"decode","queue":"running","phase":"running","poll":"Success","age_ms":1,"waits_for":"","worker":"x"}]}`)
		return
	}
	f.count(1)
	defer f.count(-1)
	req, err := leg.ReadRequest(r.Body)
	if err != nil {
		f.t.Errorf("a leg that no worker would take: %v", err)
		w.WriteHeader(400)
		return
	}
	f.legs.Add(1)
	f.mu.Lock()
	f.rooms[req.Room]++
	if f.rooms[req.Room] > 1 {
		f.t.Errorf("room %v came twice to one worker (W5)", req.Room)
	}
	f.last = req
	s := f.script
	f.mu.Unlock()
	s(&fakeLeg{f.t, req, r.Context(), w})
}

func (f *fakeWorker) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += n
	f.closed.Broadcast()
}

// empty waits until every leg is closed.
func (f *fakeWorker) empty() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.open > 0 {
		f.closed.Wait()
	}
}

func (f *fakeWorker) play(s script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = s
}

// rig is a gateway with fake workers behind it and a server in front.
type rig struct {
	*testing.T
	g        *Gateway
	url      string
	server   *httptest.Server
	prefills []*fakeWorker
	decodes  []*fakeWorker
	joined   int
}

func newRig(t *testing.T, pairs int, change func(*Config)) *rig {
	c := Config{Model: "fake", Text: byteText{}, Log: logrules.New(t)}
	c.Budgets.Place = time.Millisecond // nobody comes back by himself
	if change != nil {
		change(&c)
	}
	// What the core was told leads a fresh one to the same decisions, whatever the test does.
	c.Record = t.TempDir()
	t.Cleanup(func() {
		if _, _, err := replay.All(c.Record); err != nil {
			t.Error(err)
		}
	})
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, g: g}
	for range pairs {
		r.prefills = append(r.prefills, r.join(RolePrefill, goodPrefill))
		r.decodes = append(r.decodes, r.join(RoleDecode, goodDecode))
	}
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = g.Server()
	r.server.Listener = g.Listener(r.server.Listener)
	r.server.Start()
	r.url = r.server.URL
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		g.Close()
	})
	return r
}

func (r *rig) join(role string, s script) *fakeWorker {
	return r.joinWith(role, s, func(*Worker) {})
}

// joinWith is join of a worker that is otherwise.
func (r *rig) joinWith(role string, s script, change func(*Worker)) *fakeWorker {
	f := newFake(r.T, s)
	addr := strings.TrimPrefix(f.server.URL, "http://")
	name := role
	if r.joined++; r.joined > 2 { // the first pair is called by its roles
		name = fmt.Sprint(role, r.joined)
	}
	w := Worker{Name: name, Role: role, HTTP: addr, Boot: "b", ContextTokens: 1000, Manifest: "0123"}
	if role == RolePrefill {
		w.Link = "127.0.0.1:9"
	}
	change(&w)
	var err error
	if f.id, err = r.g.Join(r.Context(), w); err != nil {
		r.Fatal(err)
	}
	return f
}

// until asks the loop again and again, as long as it says no.
func (r *rig) until(f func(*loop) bool) {
	for yes := false; !yes; {
		if err := r.g.ask(r.Context(), func(l *loop) { yes = f(l) }); err != nil {
			r.Error(err)
			return
		}
	}
}

// streaming says whether some request has brought a token to its client.
func streaming(l *loop) (yes bool) {
	l.core.Rooms(func(v relay.View) bool {
		yes = yes || v.Tokens > 0
		return true
	})
	return yes
}

// quiet waits until the gateway holds nothing, then checks that every leg was released once
// and that every fake worker's legs are closed.
func (r *rig) quiet() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	idle := make(chan struct{})
	if err := r.g.ask(ctx, func(l *loop) { l.idle = append(l.idle, idle) }); err != nil {
		r.Fatal(err)
	}
	select {
	case <-idle:
	case <-ctx.Done():
		r.g.ask(r.Context(), func(l *loop) {
			l.core.Rooms(func(v relay.View) bool { r.Logf("left: %+v", v); return true })
		})
		r.Fatal("requests are left")
	}
	r.g.ask(ctx, func(l *loop) {
		for _, m := range l.roster.members {
			if m.load != 0 {
				r.Errorf("%s %d has load %d", m.Role, m.id, m.load)
			}
		}
		if len(l.calls)+len(l.legs) != 0 {
			r.Errorf("%d calls and %d legs are left", len(l.calls), len(l.legs))
		}
	})
	for _, f := range append(append([]*fakeWorker(nil), r.prefills...), r.decodes...) {
		f.empty()
	}
}

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string   // not a stream
	events []string // a stream's data, in order
	broken error    // the body did not end well
}

const helloBody = `{"model":"fake","messages":[{"role":"user","content":"hi there"}],"max_tokens":8`

func (r *rig) post(path, body string, headers ...string) answer {
	r.Helper()
	resp := r.begin(r.Context(), path, body, headers...)
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(resp.Body)
		a.body, a.broken = string(b), err
		return a
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			a.events = append(a.events, data)
		} else if lines.Text() != "" {
			r.Errorf("a stream that is not silent holds %q", lines.Text())
		}
	}
	a.broken = lines.Err()
	return a
}

func (r *rig) begin(ctx context.Context, path, body string, headers ...string) *http.Response {
	r.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.server.Client().Do(req)
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

func (r *rig) get(path string) answer {
	r.Helper()
	resp, err := r.server.Client().Get(r.url + path)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b), broken: err}
}

// text joins what a stream said.
func (a answer) text() string {
	var all strings.Builder
	for _, e := range a.events {
		var c struct {
			Choices []struct {
				Text  string
				Delta struct{ Content string }
			}
		}
		json.Unmarshal([]byte(e), &c)
		for _, one := range c.Choices {
			all.WriteString(one.Text + one.Delta.Content)
		}
	}
	return all.String()
}

// terminal counts the terminal events of an answer, and says its error code.
func (a answer) terminal() (n int, code string) {
	all := a.events
	if a.status != http.StatusOK {
		all = []string{a.body}
	}
	for _, e := range all {
		var c struct{ Error *struct{ Code string } }
		if e == "[DONE]" {
			n++
		} else if json.Unmarshal([]byte(e), &c) == nil && c.Error != nil {
			n++
			code = c.Error.Code
		}
	}
	return n, code
}
