package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"baton/core/room"
	"baton/engine/chat"
	"baton/serve/gateway"
	"baton/serve/leg"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come; it measures nothing.
const patience = 20 * time.Second

// byteText is a text whose tokens are bytes.
type byteText struct{}

func (byteText) Chat(c chat.Conversation) (*chat.Prompt, error) {
	var all strings.Builder
	for _, m := range c.Messages {
		all.WriteString(m.Content)
	}
	ids, err := byteText{}.Prompt(all.String(), false)
	return &chat.Prompt{IDs: ids}, err
}

func (byteText) Prompt(text string, _ bool) (ids []int32, err error) {
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids, nil
}

func (byteText) Decode(ids []int32) string {
	var b []byte
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return string(b)
}

func (byteText) Token(id int32) []byte { return []byte{byte(id)} }
func (byteText) Vocab() int            { return 256 }

// fakeLeg is a leg at a worker that speaks by a script.
type fakeLeg struct {
	t   *testing.T
	req *leg.Request
	ctx context.Context // done when the gateway closes the leg
	w   http.ResponseWriter
}

func (l *fakeLeg) raw(s string) {
	io.WriteString(l.w, s)
	l.w.(http.Flusher).Flush()
}

func (l *fakeLeg) line(v leg.Line) {
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Error(err)
	}
	l.raw(string(b) + "\n")
}

func (l *fakeLeg) accept() { l.line(leg.Line{Accepted: true}) }
func (l *fakeLeg) piece(text string) {
	ids, _ := byteText{}.Prompt(text, false)
	l.line(leg.Line{Text: text, IDs: ids})
}
func (l *fakeLeg) done(out int) {
	l.line(leg.Line{End: &leg.End{Outcome: room.Success, Finish: "stop", PromptTokens: len(l.req.Tokens), OutputTokens: out}})
}
func (l *fakeLeg) fail(c room.Cause) { l.line(leg.Line{End: leg.Refusal(c, "said so")}) }
func (l *fakeLeg) refuse(c room.Cause) {
	e := leg.Refusal(c, "said so")
	b, _ := json.Marshal(e)
	l.w.WriteHeader(e.Status())
	l.w.Write(b)
}
func (l *fakeLeg) cut()  { panic(http.ErrAbortHandler) }
func (l *fakeLeg) wait() { <-l.ctx.Done() }

type script func(*fakeLeg)

// computed holds a channel for each room, closed when its prefill is through.
var computed sync.Map

func (l *fakeLeg) kv() chan struct{} {
	c, _ := computed.LoadOrStore(l.req.Room, make(chan struct{}))
	return c.(chan struct{})
}

func goodPrefill(l *fakeLeg) {
	l.accept()
	close(l.kv())
	l.line(leg.Line{End: &leg.End{Outcome: room.Success, PromptTokens: len(l.req.Tokens)}})
}

func goodDecode(l *fakeLeg) {
	l.accept()
	select {
	case <-l.kv():
	case <-l.ctx.Done():
		return
	}
	l.piece("hel")
	l.piece("lo")
	l.done(5)
}

func silent(l *fakeLeg) { l.accept(); l.wait() }

// fakeWorker counts its legs.
type fakeWorker struct {
	t      *testing.T
	server *httptest.Server
	id     int32 // on the roster
	mu     sync.Mutex
	moved  *sync.Cond     // of mu: legs came or went
	script script         // guarded by mu
	seen   []*leg.Request // guarded by mu
	open   int            // guarded by mu
}

func (f *fakeWorker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		io.WriteString(w, `{"worker":{},"rooms":[]}`)
		return
	}
	req, err := leg.ReadRequest(r.Body)
	if err != nil {
		f.t.Errorf("a leg that no worker would take: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.open++
	f.seen = append(f.seen, req)
	s := f.script
	f.moved.Broadcast()
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.open--
		f.moved.Broadcast()
		f.mu.Unlock()
	}()
	s(&fakeLeg{f.t, req, r.Context(), w})
}

// await waits until ok, which is called under the lock.
func (f *fakeWorker) await(ok func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !ok() {
		f.moved.Wait()
	}
}

func (f *fakeWorker) play(s script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = s
}

// legs are the requests that the worker was sent.
func (f *fakeWorker) legs() []*leg.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*leg.Request(nil), f.seen...)
}

// front is a real gateway with workers behind it and a server in front.
type front struct {
	*testing.T
	g                 *gateway.Gateway
	server            *httptest.Server
	prefills, decodes []*fakeWorker
	joined            int
}

func newFront(t *testing.T, pairs int, change func(*gateway.Config)) *front {
	c := gateway.Config{Model: "fake", Text: byteText{}, Log: slog.New(slog.DiscardHandler), Record: recorded(t)}
	c.Budgets.Place = time.Millisecond // nobody comes back by himself
	if change != nil {
		change(&c)
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &front{T: t, g: g}
	for range pairs {
		r.prefills = append(r.prefills, r.join(gateway.RolePrefill, goodPrefill))
		r.decodes = append(r.decodes, r.join(gateway.RoleDecode, goodDecode))
	}
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = g.Server()
	r.server.Listener = g.Listener(r.server.Listener)
	r.server.Start()
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		g.Close()
	})
	return r
}

func (r *front) join(role string, s script) *fakeWorker {
	f := &fakeWorker{t: r.T, script: s}
	f.moved = sync.NewCond(&f.mu)
	f.server = httptest.NewServer(f)
	r.Cleanup(f.server.Close)
	r.joined++
	f.id = r.enlist(gateway.Worker{Name: fmt.Sprint(role, r.joined), Role: role, HTTP: strings.TrimPrefix(f.server.URL, "http://"), Link: "127.0.0.1:9", Boot: "b", ContextTokens: 1000})
	return f
}

func (r *front) enlist(w gateway.Worker) int32 {
	if w.Role != gateway.RolePrefill {
		w.Link = ""
	}
	id, err := r.g.Join(context.Background(), w)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// says has the gateway hear of a worker's health, asked just now.
func (r *front) says(f *fakeWorker, good bool) {
	if err := r.g.Health(context.Background(), f.id, time.Now(), good); err != nil {
		r.Fatal(err)
	}
}

// health reads the gateway's own word.
func (r *front) health() (h gateway.Health) {
	resp, err := r.server.Client().Get(r.server.URL + "/health")
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	json.NewDecoder(resp.Body).Decode(&h)
	return h
}

func (r *front) get(path string) string {
	resp, err := r.server.Client().Get(r.server.URL + path)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// until asks again and again; nothing tells from outside when it holds.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); runtime.Gosched() {
		if time.Since(began) > patience {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// quiet is the Q-check: the gateway comes to rest, no leg is load, no worker has one open.
func (r *front) quiet() {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.g.Drain(ctx); err != nil {
		r.Fatalf("not at rest: %v: %s", err, r.get("/debug/requests"))
	}
	for line := range strings.Lines(r.get("/metrics")) {
		if strings.HasPrefix(line, "baton_worker_legs{") && !strings.HasSuffix(line, " 0\n") {
			r.Errorf("RELEASE: %s", line)
		}
	}
	for _, f := range append(append([]*fakeWorker(nil), r.prefills...), r.decodes...) {
		f.await(func() bool { return f.open == 0 })
	}
}

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string   // not a stream
	events []string // a stream's
	broken error
}

const hello = `{"model":"fake","messages":[{"role":"user","content":"hi there"}],"max_tokens":8`

func (r *front) send(ctx context.Context, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return r.server.Client().Do(req)
}

// chat sends a conversation; more is appended to its fields.
func (r *front) chat(more string, headers ...string) answer {
	return r.post("/v1/chat/completions", hello+more+"}", headers...)
}

func (r *front) post(path, body string, headers ...string) (a answer) {
	resp, err := r.send(context.Background(), path, body, headers...)
	if err != nil {
		return answer{broken: err}
	}
	defer resp.Body.Close()
	a = answer{status: resp.StatusCode, header: resp.Header}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(resp.Body)
		a.body, a.broken = string(b), err
		return a
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			a.events = append(a.events, data)
		}
	}
	a.broken = lines.Err()
	return a
}

// text joins what was said.
func (a answer) text() (all string) {
	for _, e := range append(a.events, a.body) {
		var c struct {
			Choices []struct {
				Text           string
				Delta, Message struct{ Content string }
			}
		}
		json.Unmarshal([]byte(e), &c)
		for _, one := range c.Choices {
			all += one.Text + one.Delta.Content + one.Message.Content
		}
	}
	return all
}

// terminal counts the terminal events, and says the error's code.
func (a answer) terminal() (n int, code string) {
	for _, e := range append(a.events, a.body) {
		var c struct {
			Error   *struct{ Code string }
			Choices []struct{ Message *struct{} }
		}
		switch json.Unmarshal([]byte(e), &c); {
		case e == "[DONE]", len(c.Choices) > 0 && c.Choices[0].Message != nil:
			n++
		case c.Error != nil:
			n++
			code = c.Error.Code
		}
	}
	return n, code
}
