package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/tokenizer"
	"baton/serve/door"
	"baton/serve/leg"
	"baton/serve/openai"
)

// dial opens a bare connection.
func (r *rig) dial() net.Conn {
	r.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() })
	return c
}

func (r *rig) do(method, path string) answer {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.url, nil)
	if err != nil {
		r.Fatal(err)
	}
	req.URL.Path = path
	client := *r.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b), broken: err}
}

// Whatever is asked for where nothing is, the answer has the API's shape.
func TestOddMethodsAndPathsGetTheAPIsErrors(t *testing.T) {
	r := newRig(t, 1, nil)
	for _, row := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/v1/chat/completions", 405, "method_not_allowed", "POST"},
		{"DELETE", "/v1/models/fake", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "/health", 405, "method_not_allowed", "GET, HEAD"},
		{"PUT", "/", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "//v1/../v1/completions", 404, "not_found", ""},
		{"GET", "/v1//models", 404, "not_found", ""},
		{"GET", "/nothing", 404, "not_found", ""},
	} {
		a := r.do(row.method, row.path)
		if n, code := a.terminal(); a.status != row.status || n != 1 || code != row.code || a.header.Get("Allow") != row.allow {
			t.Errorf("%s %s: %d %v %s", row.method, row.path, a.status, a.header, a.body)
		}
	}
	c := r.dial()
	io.WriteString(c, "CONNECT elsewhere:80 HTTP/1.1\r\nHost: elsewhere:80\r\nConnection: close\r\n\r\n")
	if b, _ := io.ReadAll(c); !bytes.Contains(b, []byte(`"code":"not_found"`)) {
		t.Errorf("CONNECT: %s", b)
	}
	if a := r.do("GET", "/"); a.status != 200 || !strings.Contains(a.body, `"POST /v1/chat/completions"`) || !strings.Contains(a.body, `"GET /"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A client that leaves closes both legs, whatever came behind its body (W2).
func TestALeavingClientIsSeenBehindItsBody(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true`} {
		r := newRig(t, 1, nil)
		here := make(chan struct{})
		r.prefills[0].play(func(l *fakeLeg) { l.accept(); l.wait() })
		r.decodes[0].play(func(l *fakeLeg) { l.accept(); close(here); l.wait() })
		body := helloBody + stream + "}"
		c := r.dial()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s\r\n", len(body), body)
		<-here
		c.Close()
		r.quiet()
		if got := outcomes(t, r); got != "aborted/cancelled:1" {
			t.Errorf("counted %s", got)
		}
	}
}

// countingText counts what is cut into tokens.
type countingText struct {
	byteText
	mu   sync.Mutex
	most int // guarded by mu
}

func (c *countingText) Prompt(text string, special bool) ([]int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, len(text))
	return c.byteText.Prompt(text, special)
}

func (c *countingText) Chat(of chat.Conversation) (*chat.Prompt, error) {
	ids, err := c.Prompt(fmt.Sprint(of.Messages, of.Tools, of.Documents), false)
	return &chat.Prompt{IDs: ids}, err
}

// Cutting a text into tokens takes time; one that cannot fit whatever they are is not cut.
func TestATextThatCannotFitIsNotTokenised(t *testing.T) {
	text := &countingText{}
	r := newRig(t, 1, func(c *Config) { c.Text = text })
	long := strings.Repeat("x", 1001) // the context is 1000 and a token is a byte
	for path, body := range map[string]string{
		"/v1/completions":       `{"prompt":"` + long + `"}`,
		"/v1/chat/completions":  `{"messages":[{"role":"user","content":"` + long[:600] + `"},{"role":"user","content":"` + long[:600] + `"}]}`,
		"/tokenize":             `{"prompt":"` + long + `"}`,
		"/v1/chat/completions?": `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","description":"` + long + `"}}]}`,
		"/tokenize?":            `{"messages":[{"role":"user","content":"x"}],"documents":[{"text":"` + long + `"}]}`,
	} {
		a := r.post(path, body)
		if want := map[string]string{"/v1/chat/completions?": "tools", "/tokenize?": "documents"}[path]; want != "" && !strings.Contains(a.body, `"param":"`+want+`"`) {
			t.Errorf("%s: %s, want %s named", path, a.body, want)
		}
		if _, code := a.terminal(); a.status != 400 || code != openai.CodeContext {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if text.most > 0 {
		t.Errorf("a text of %d bytes was cut", text.most)
	}
	if a := r.post("/tokenize", `{"prompt":"`+long[:1000]+`"}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// slowText has a tokenizer that takes too long on every text.
type slowText struct{ byteText }

func (slowText) Prompt(string, bool) ([]int32, error) { return nil, tokenizer.ErrSlow }

// A text on which the model's expression takes too long is refused, and its field is named.
func TestATextThatTakesTooLongToCutIsRefused(t *testing.T) {
	r := newRig(t, 1, func(c *Config) { c.Text = slowText{} })
	for _, row := range [][3]string{
		{"/v1/completions", `{"prompt":"x"}`, "prompt"}, {"/tokenize", `{"prompt":"x"}`, "prompt"},
		{"/v1/completions", `{"prompt":[1],"bad_words":["x"]}`, "bad_words"},
	} {
		a := r.post(row[0], row[1])
		var got struct {
			Error struct{ Message, Param string }
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 400 || got.Error.Param != row[2] || !strings.Contains(got.Error.Message, tokenizer.ErrSlow.Error()) {
			t.Errorf("%s: %d %s", row[1], a.status, a.body)
		}
	}
}

// Every path gives the bytes of its body back.
func TestBodiesAreGivenBack(t *testing.T) {
	r := newRig(t, 1, nil)
	for _, row := range [][2]string{{"/v1/chat/completions", helloBody + `}`}, {"/v1/chat/completions", `[]`}, {"/tokenize", `{"prompt":"x"}`},
		{"/tokenize", `{`}, {"/detokenize", `{"tokens":[104]}`}, {"/detokenize", `{}`}, {"/nothing", `{}`}} {
		r.post(row[0], row[1])
	}
	r.server.Close() // waits for the handlers
	if n := r.g.bodies.Held(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// What a socket said of a lost leg is for the log, not for the client.
func TestAClientHearsNothingOfSockets(t *testing.T) {
	var log lines
	r := newRig(t, 1, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece("hel"); l.raw(`{"te`) })
	a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`)
	last := a.events[len(a.events)-1]
	if _, code := a.terminal(); code != "worker_lost" || !strings.Contains(last, `"message":"a worker was lost"`) {
		t.Errorf("%s", last)
	}
	r.quiet()
	if !strings.Contains(log.String(), `detail="leg: the stream ended`) {
		t.Errorf("the log does not say what was seen: %s", log.String())
	}
}

// Nor what a worker said of its own sockets, nor the address by which it knows another.
func TestAClientHearsNothingOfOtherSockets(t *testing.T) {
	for cause, want := range map[room.Cause]string{
		room.WorkerLost:     "a worker was lost",
		room.Internal:       "internal error: link to prefill: the layouts differ",
		room.TransferFailed: "the KV cache could not be moved between workers: link to prefill: the layouts differ",
	} {
		var log lines
		r := newRig(t, 1, func(c *Config) {
			c.Log, c.Limits.MaxTries = slog.New(slog.NewTextHandler(&log, nil)), 1
		})
		r.decodes[0].play(func(l *fakeLeg) {
			l.accept()
			o := room.Fail(cause)
			l.line(leg.Line{End: &leg.End{Outcome: o.Kind, Cause: o.Cause, Message: "link to " + l.req.Link + ": the layouts differ"}})
		})
		a := r.post("/v1/chat/completions", helloBody+`}`)
		if !strings.Contains(a.body, `"message":"`+want+`"`) {
			t.Errorf("%s: %s", cause, a.body)
		}
		r.quiet()
		if cause == room.WorkerLost && !strings.Contains(log.String(), "the layouts differ") {
			t.Errorf("the log does not say what the worker saw: %s", log.String())
		}
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// A request that the gateway's own end cuts off was not cancelled by its client.
func TestTheEndOfTheGatewayIsNoCancellation(t *testing.T) {
	var log lines
	r := newRig(t, 1, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.piece("hel"); l.wait() })
	live := make(chan answer, 1)
	go func() { live <- r.post("/v1/chat/completions", helloBody+`,"stream":true}`) }()
	r.until(streaming)
	r.g.Close()
	a := <-live
	if last := a.events[len(a.events)-1]; !strings.Contains(last, "shutting down") {
		t.Errorf("%s", last)
	}
	if said := log.String(); !strings.Contains(said, "outcome=failed cause=overload") || strings.Contains(said, "cancelled") {
		t.Errorf("%s", said)
	}
}

// A drain is over when the answers are written, not when the core has ended the requests.
func TestADrainWaitsForAnswersToBeWritten(t *testing.T) {
	r := newRig(t, 1, nil)
	r.g.answers.Add(1) // as a handler that is writing
	drained := make(chan error, 1)
	go func() { drained <- r.g.Drain(t.Context()) }()
	r.until(func(l *loop) bool { return len(l.answered) == 1 })
	select {
	case err := <-drained:
		t.Errorf("drained under an answer: %v", err)
	default:
	}
	r.g.answered()
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestRetryAfterIsMadeOfTheQueueAndItsPace(t *testing.T) {
	var p pace
	if got := p.wait(time.Hour, 100); got != retryHint {
		t.Errorf("knowing nothing: %v", got)
	}
	now := time.Minute
	for range 20 {
		p.ended(now, true)
		now += 2 * time.Second
	}
	for queued, want := range map[int]time.Duration{0: 2 * time.Second, 4: 10 * time.Second, 1000: retryMax} {
		if got := p.wait(now-2*time.Second, queued); got != want {
			t.Errorf("%d queued: %v, want %v", queued, got, want)
		}
	}
	if got := p.wait(now+18*time.Second, 1); got != 40*time.Second {
		t.Errorf("20 s without an end: %v", got)
	}
	p.ended(now, false) // the queue is empty: what follows is no pace
	p.ended(now+time.Hour, true)
	if got := p.wait(now+time.Hour, 4); got != 10*time.Second {
		t.Errorf("behind an idle hour: %v", got)
	}
}

// One connection too many is told so in the API's shape.
func TestTheAnswerToOneConnectionTooManyIsOurs(t *testing.T) {
	head, body, _ := bytes.Cut(tooManyConnections(), []byte("\r\n\r\n"))
	var e struct{ Error struct{ Code string } }
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Code != "unavailable" || !bytes.Contains(head, []byte("Retry-After: 1")) {
		t.Errorf("%s %s %v", head, body, err)
	}
}

// A bound of one body above that of all of them would be a promise that nobody keeps.
func TestABodyBoundAboveAllBodiesIsRefused(t *testing.T) {
	if _, err := New(Config{Model: "fake", Text: byteText{}, BodyBytes: door.BytesMax + 1}); err == nil || !strings.Contains(err.Error(), "67108864") {
		t.Errorf("got %v", err)
	}
}
