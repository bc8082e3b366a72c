package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

// Moment is when a client leaves.
type Moment uint8

const (
	Stay        Moment = iota // the client waits for the end
	AfterDelay                // some time after sending: before headers, queued, prefill, transfer
	AtHeaders                 // when the response's head is there
	AtToken                   // after the n-th piece of text; 1 is the first token
	momentCount               // number of moments
)

var momentNames = [momentCount]string{"stay", "after delay", "at headers", "at token"}

func (m Moment) String() string { return momentNames[m] }

// Ask is one request of the test.
type Ask struct {
	Messages any            // the chat's messages, as JSON wants them
	Fields   map[string]any // further fields of the request's body
	Want     string         // the right answer
	Stream   bool           // server-sent events or one body
	Deadline time.Duration  // sent as X-Request-Timeout
	Leave    Moment         // when the client goes away
	Delay    time.Duration  // AfterDelay: how long after sending
	Token    int            // AtToken: after how many pieces
}

// End is how a request ended at the client.
type End struct {
	Text     string         // what arrived of the first choice; a call of a tool is its name and its arguments
	Finish   string         // the last finish_reason of a complete answer
	Others   []string       // what arrived of the choices after the first
	Finishes map[int]string // finish_reason of each choice
	Logprobs map[int]string // what arrived of each choice's tokens and their log-probabilities
	Error    string         // type and message of the error, when there was one
	Left     bool           // the client went away by itself
	Ends     int            // terminal events seen: must be 1 unless Left
	After    time.Duration  // from sending to the end
	Status   int            // of the HTTP response, 0 if there was none
	Broken   string         // what was wrong with the stream itself
}

type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
}

type chunk struct {
	Choices []struct {
		Index        int
		Delta        part
		Message      part
		Logprobs     struct{ Content []json.RawMessage }
		FinishReason string `json:"finish_reason"`
	}
	Error *apiError
}

// part is what a choice says, or a piece of it.
type part struct {
	Content string
	Calls   []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (p *part) text() string {
	text := p.Content
	for i := range p.Calls {
		text += p.Calls[i].Function.Name + p.Calls[i].Function.Arguments
	}
	return text
}

// Do sends one request and follows it to its end.
func Do(ctx context.Context, client *http.Client, url string, a Ask) End {
	began := time.Now()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if a.Leave == AfterDelay {
		t := time.AfterFunc(a.Delay, leave)
		defer t.Stop()
	}
	fields := map[string]any{"model": "recall", "messages": a.Messages, "stream": a.Stream, "temperature": 0}
	maps.Copy(fields, a.Fields)
	body, err := json.Marshal(fields)
	if err != nil {
		return End{Broken: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return End{Broken: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Timeout", fmt.Sprintf("%.3f", a.Deadline.Seconds()))
	res, err := client.Do(req)
	e := End{Finishes: map[int]string{}, Logprobs: map[int]string{}}
	if err != nil {
		e.Left, e.Broken = ctx.Err() != nil, err.Error()
	} else {
		defer res.Body.Close()
		e.Status = res.StatusCode
		if a.Leave == AtHeaders {
			leave()
		}
		if a.Stream && e.Status == http.StatusOK {
			e.follow(res.Body, a, leave)
		} else {
			e.read(res.Body)
		}
		e.Left = e.Left || ctx.Err() != nil && e.Broken != "" // it left by delay, before the last byte was read
	}
	e.After = time.Since(began)
	return e
}

// read takes a response that is not a stream.
func (e *End) read(body io.Reader) {
	b, err := io.ReadAll(io.LimitReader(body, 1<<20))
	var c chunk
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	switch {
	case err != nil:
		e.Broken = fmt.Sprintf("status %d, body %q: %v", e.Status, b, err)
	case c.Error != nil:
		e.Ends, e.Error = 1, c.Error.Type+": "+c.Error.Message
	case len(c.Choices) > 0 && e.Status == http.StatusOK:
		e.Ends = 1
		for _, ch := range c.Choices {
			e.add(ch.Index, ch.Message.text(), ch.Logprobs.Content)
			e.Finishes[ch.Index], e.Finish = ch.FinishReason, ch.FinishReason
		}
	default:
		e.Broken = fmt.Sprintf("status %d, neither answer nor error: %q", e.Status, b)
	}
}

// add puts text, and what is said of its tokens, to one choice of the answer.
func (e *End) add(choice int, text string, logprobs []json.RawMessage) {
	for _, l := range logprobs {
		e.Logprobs[choice] += string(l)
	}
	if choice == 0 {
		e.Text += text
		return
	}
	for len(e.Others) < choice {
		e.Others = append(e.Others, "")
	}
	e.Others[choice-1] += text
}

// follow reads server-sent events to the end and holds them to the one-end rule.
func (e *End) follow(body io.Reader, a Ask, leave func()) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	pieces, done := 0, false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // blank lines and comments carry no event
		}
		if done {
			e.Broken = "an event after the end: " + data
		}
		if data == "[DONE]" {
			done = true
			e.Ends++
			if n := len(e.Finishes); n == 0 || n != 1+len(e.Others) {
				e.Broken = fmt.Sprintf("[DONE] with %d finish reasons for %d choices", n, 1+len(e.Others))
			}
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			e.Broken = fmt.Sprintf("event %q: %v", data, err)
			continue
		}
		if c.Error != nil {
			e.Ends, e.Error, done = e.Ends+1, c.Error.Type+": "+c.Error.Message, true
			continue
		}
		for _, ch := range c.Choices {
			text := ch.Delta.text()
			if text != "" {
				pieces++
			}
			e.add(ch.Index, text, ch.Logprobs.Content) // also of a choice that says nothing and ends
			if ch.FinishReason != "" {
				if e.Finishes[ch.Index] != "" {
					e.Broken = fmt.Sprintf("choice %d finished twice", ch.Index)
				}
				e.Finishes[ch.Index], e.Finish = ch.FinishReason, ch.FinishReason
			}
		}
		if a.Leave == AtToken && pieces >= a.Token {
			e.Left = true
			leave()
			return
		}
	}
	if err := lines.Err(); err != nil && e.Broken == "" {
		e.Broken = err.Error()
	} else if !done && e.Broken == "" {
		e.Broken = "the stream ended without a word"
	}
}
