package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func event(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

// chatServer serves the model "fake"; chats are answered by answer.
func chatServer(t *testing.T, answer http.HandlerFunc) string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"fake"}]}`) })
	mux.HandleFunc("POST /v1/chat/completions", answer)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestChatPrintsAnswersAndReadableErrors(t *testing.T) {
	for _, row := range []struct {
		name, body string
		status     int
		out, err   string
		kept       int // messages behind it
	}{
		{"an answer", ": keepalive\n\n" + event("hel") + event("lo") + "data: [DONE]\n\n", 200, "hello\n", "", 2},
		{"an error in the stream", event("hel") + "data: {\"error\":{\"message\":\"a worker was lost\"}}\n\n", 200, "hel\n", "a worker was lost", 0},
		{"a cut stream", event("hel"), 200, "hel\n", "was cut", 0},
		{"a refusal", `{"error":{"message":"the server is full"}}`, 429, "", "the server is full (status 429)", 0},
		{"no JSON", "bad gateway", 502, "", "bad gateway (status 502)", 0},
	} {
		c := chatSession{url: chatServer(t, says(row.status, row.body))}
		var out bytes.Buffer
		err := c.run(strings.NewReader("hi\n"), &out)
		if out.String() != row.out || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %q, %v", row.name, out.String(), err)
		}
		if len(c.messages) != row.kept {
			t.Errorf("%s: %d messages are kept, want %d", row.name, len(c.messages), row.kept)
		}
	}
}

// echo answers with the roles and texts that came.
func echo(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Messages []message }
	json.NewDecoder(r.Body).Decode(&asked)
	io.WriteString(w, event(fmt.Sprint(asked.Messages))+"data: [DONE]\n\n")
}

// A person is greeted, and commands, known or not, stay out of the conversation.
func TestChatKeepsCommandsToItself(t *testing.T) {
	c := chatSession{url: chatServer(t, echo), person: true, messages: []message{{"system", "s"}}}
	var out bytes.Buffer
	if err := c.run(strings.NewReader("a\n/help\n/Bye now\n/\n/etc/passwd\n/new\nb\n"), &out); err != nil {
		t.Fatal(err)
	}
	want := `fake answers. Ctrl-C stops an answer; /exit or Ctrl-D leaves; /help says more.
> [{system s} {user a}]
> ` + chatCommands + `
> error: there is no command /Bye; /help lists them
> error: there is no command /; /help lists them
> [{system s} {user a} {assistant [{system s} {user a}]} {user /etc/passwd}]
> > [{system s} {user b}]
> ` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := c.run(strings.NewReader("/exit\nnever read\n"), &out); err != nil || strings.Contains(out.String(), "never") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// Without a server, or with another one, a person hears so before typing a line.
func TestChatGreetsOnlyIfAServerOfModelsIsThere(t *testing.T) {
	s := httptest.NewServer(says(200, "<html>"))
	defer s.Close()
	for url, want := range map[string]string{"http://127.0.0.1:1": "is `baton serve` running there?", s.URL: "is no server of models: <html>"} {
		for _, in := range []string{"hi\n", ""} { // also where nobody says anything
			for _, person := range []bool{true, false} {
				c := chatSession{url: url, person: person}
				var out bytes.Buffer
				if err := c.run(strings.NewReader(in), &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() != 0 {
					t.Errorf("%s, person %v, %q: %v, %q", url, person, in, err, out.String())
				}
			}
		}
	}
}

// unfinished answers one token, then nothing until its client has left.
func unfinished(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // only then the server notices that the client leaves
	io.WriteString(w, event("hel"))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// screen hands what is written to a test that waits for it.
type screen struct {
	wrote chan string
	seen  string // by the test alone
}

func newScreen() *screen { return &screen{wrote: make(chan string, 100)} }

func (s *screen) Write(b []byte) (int, error) {
	s.wrote <- string(b)
	return len(b), nil
}

// until waits for a screen that ends with this.
func (s *screen) until(t *testing.T, end string) {
	t.Helper()
	for !strings.HasSuffix(s.seen, end) {
		more, ok := <-s.wrote
		if !ok {
			t.Fatalf("the screen stays %q, want …%q", s.seen, end)
		}
		s.seen += more
	}
}

// Ctrl-C ends an answer and not the session; the next one, at the prompt, ends that.
func TestCtrlCStopsAnAnswerThenTheSession(t *testing.T) {
	interrupts := make(chan os.Signal, 1)
	c := chatSession{url: chatServer(t, unfinished), person: true, interrupts: interrupts}
	in, typed := io.Pipe()
	defer typed.Close()
	out, ended := newScreen(), make(chan error)
	go func() { ended <- c.run(in, out) }()
	out.until(t, "> ")
	io.WriteString(typed, "hi\n")
	out.until(t, "hel")
	interrupts <- os.Interrupt
	out.until(t, "> hel\n(stopped)\n> ")
	interrupts <- os.Interrupt
	out.until(t, "> \n")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(c.messages); got != "[{user hi} {assistant hel}]" {
		t.Errorf("the conversation is %s", got)
	}
}

// In a script Ctrl-C ends all, with the status that shells know.
func TestCtrlCEndsAScript(t *testing.T) {
	interrupts := make(chan os.Signal, 1)
	c := chatSession{url: chatServer(t, unfinished), interrupts: interrupts}
	out, ended := newScreen(), make(chan error)
	go func() { ended <- c.run(strings.NewReader("hi\nthere\n"), out) }()
	out.until(t, "hel")
	interrupts <- os.Interrupt
	err := <-ended
	if exit, ok := errors.AsType[exitError](err); !ok || exit.code != exitStop || exit.err != nil {
		t.Errorf("ended with %v", err)
	}
}

// What the model thinks is shown dimmed and is no part of the answer; without a terminal it is
// not shown at all.
func TestThoughtsAreShownDimmedAndNotKept(t *testing.T) {
	stream := `data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"reasoning_content":"m"}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"four"}}]}` + "\n\n" + "data: [DONE]\n\n"
	for thoughts, want := range map[bool]string{true: "\x1b[2mhmm\x1b[22m\nfour", false: "four"} {
		var out strings.Builder
		answer, err := readStream(strings.NewReader(stream), &out, thoughts)
		if err != nil || answer != "four" || out.String() != want {
			t.Errorf("%v: %q, %v: printed %q, want %q", thoughts, answer, err, out.String(), want)
		}
	}
}
