package openai

import (
	"bytes"
	"encoding/json"

	"baton/engine/chat/reply"
	"baton/engine/sample"
)

// Usage counts the tokens of a request.
type Usage struct {
	PromptTokens      int               `json:"prompt_tokens"`
	CompletionTokens  int               `json:"completion_tokens"`
	TotalTokens       int               `json:"total_tokens"`
	PromptDetails     PromptDetails     `json:"prompt_tokens_details"`
	CompletionDetails CompletionDetails `json:"completion_tokens_details"`
}

// PromptDetails says how many prompt tokens came from a prefix cache.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// CompletionDetails says how many of the completion's tokens were thought and not said.
type CompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// Count returns the usage of a request with these counts.
func Count(prompt, completion, cached int) Usage {
	return Usage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion, PromptDetails: PromptDetails{cached}}
}

// Piece is what one or more tokens add to one choice of an answer. The zero Finish means that
// more will come.
type Piece struct {
	Choice       int
	Text         string        // content
	Deltas       []reply.Delta // Chat: not empty: these count, in order, and not Text
	IDs          []int32
	Logprobs     []sample.TokenLogprob
	Finish       string // "", FinishStop, FinishLength or FinishCalls
	Matched      string // the stop string that ended it, vLLM's stop_reason
	MatchedToken *int32 // not nil: the stop token that did
}

// How a choice can finish.
const (
	FinishStop   = sample.ReasonStop
	FinishLength = sample.ReasonLength
	FinishCalls  = "tool_calls"
)

// Answer shapes the answer of one request. It is used by one goroutine at a time.
type Answer struct {
	ID          string // chatcmpl-… or cmpl-…
	Model       string
	Fingerprint string // of what serves the model: answers can be compared while it stays; "" is null on the wire
	Created     int64  // seconds since 1970
	Request     *Request
	Prompts     [][]int32 // token ids of each prompt, for return_token_ids
	Echoes      []string  // text of each prompt, for echo; empty without
	offset      []int     // per choice: characters so far, for text_offset
	buf         bytes.Buffer
}

// message is a whole choice of a chat.
type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"` // null: nothing but calls
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

// delta is a piece of one.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type choice struct {
	Index          int      `json:"index"`
	Message        *message `json:"message,omitempty"`
	Delta          any      `json:"delta,omitempty"`
	Text           *string  `json:"text,omitempty"`
	Logprobs       any      `json:"logprobs"`
	FinishReason   *string  `json:"finish_reason"`
	StopReason     any      `json:"stop_reason,omitempty"`
	TokenIDs       []int32  `json:"token_ids,omitempty"`
	PromptTokenIDs []int32  `json:"prompt_token_ids,omitempty"`
}

type body struct {
	ID             string   `json:"id"`
	Object         string   `json:"object"`
	Created        int64    `json:"created"`
	Model          string   `json:"model"`
	Fingerprint    *string  `json:"system_fingerprint"`
	Choices        []choice `json:"choices"`
	PromptTokenIDs []int32  `json:"prompt_token_ids,omitempty"`
	Usage          any      `json:"usage,omitempty"`
}

func (a *Answer) head(streamed bool) body {
	object := "text_completion"
	if a.Request.Endpoint == Chat {
		object = "chat.completion"
		if streamed {
			object = "chat.completion.chunk"
		}
	}
	return body{ID: a.ID, Object: object, Created: a.Created, Model: a.Model, Fingerprint: orNull(a.Fingerprint), Choices: []choice{}}
}

// Whole returns the body of an answer that is not streamed. pieces holds one Piece per choice
// with everything that it said, in order of the choices.
func (a *Answer) Whole(pieces []Piece, u Usage) ([]byte, error) {
	b := a.head(false)
	for i := range pieces {
		p := &pieces[i]
		c := choice{Index: p.Choice, Logprobs: a.logprobs(p), FinishReason: orNull(p.Finish), StopReason: p.stopReason()}
		if a.Request.Endpoint == Chat {
			c.Message = wholeMessage(p)
		} else {
			text := a.echo(p.Choice) + p.Text
			c.Text = &text
		}
		a.tokenIDs(&b, &c, p.IDs, true)
		b.Choices = append(b.Choices, c)
	}
	b.Usage = u
	return a.encode("", b, "")
}

// Opening returns the first event of one choice of a streamed answer, or nil where the
// endpoint has none.
func (a *Answer) Opening(choiceIndex int) ([]byte, error) {
	if a.Request.Endpoint != Chat {
		return nil, nil
	}
	b, nothing := a.head(true), ""
	c := choice{Index: choiceIndex, Delta: delta{Role: "assistant", Content: &nothing}}
	a.tokenIDs(&b, &c, nil, true)
	b.Choices = append(b.Choices, c)
	a.usageOfChunk(&b)
	return a.event(b)
}

// Chunk returns the events of a piece of a streamed answer: its text, and its finish. A piece
// that tells the client nothing (text held back, or the token that ended the answer) has none.
func (a *Answer) Chunk(p *Piece, firstOfChoice bool) ([]byte, error) {
	echo := ""
	if firstOfChoice {
		echo = a.echo(p.Choice)
	}
	silent := echo == "" && p.Text == "" && len(p.Deltas) == 0 && len(p.Logprobs) == 0 && !(a.Request.ReturnTokenIDs && len(p.IDs) > 0)
	if silent && p.Finish == "" {
		return nil, nil
	}
	if a.Request.Endpoint == Chat {
		return a.chatChunk(p, silent)
	}
	b, text := a.head(true), echo+p.Text
	c := choice{Index: p.Choice, Logprobs: a.logprobs(p), Text: &text, FinishReason: orNull(p.Finish), StopReason: p.stopReason()}
	a.tokenIDs(&b, &c, p.IDs, firstOfChoice)
	b.Choices = append(b.Choices, c)
	a.usageOfChunk(&b)
	return a.event(b)
}

// chatChunk prints an event for each delta of a piece, the first with what belongs to its tokens,
// and one for its finish.
func (a *Answer) chatChunk(p *Piece, silent bool) (events []byte, err error) {
	b := a.head(true)
	a.usageOfChunk(&b)
	put := func(c choice) {
		if err != nil {
			return
		}
		var e []byte
		b.Choices = []choice{c}
		e, err = a.event(b)
		events = append(events, e...)
	}
	if !silent {
		deltas := p.Deltas
		if len(deltas) == 0 {
			deltas = []reply.Delta{{Content: p.Text}}
		}
		for i := range deltas {
			c := choice{Index: p.Choice, Delta: deltaOf(&deltas[i])}
			if i == 0 {
				c.Logprobs = a.logprobs(p)
				a.tokenIDs(&b, &c, p.IDs, false)
			}
			put(c)
		}
	}
	if p.Finish != "" {
		put(choice{Index: p.Choice, Delta: struct{}{}, FinishReason: &p.Finish, StopReason: p.stopReason()})
	}
	return events, err
}

// echo is the prompt's text where it stands before a choice's.
func (a *Answer) echo(choiceIndex int) string {
	if len(a.Echoes) == 0 {
		return ""
	}
	return a.Echoes[a.promptOf(choiceIndex)]
}

// promptOf is the prompt of a choice: the choices of one prompt stand together.
func (a *Answer) promptOf(choiceIndex int) int { return choiceIndex / max(a.Request.N, 1) }

// stopReason is vLLM's: the stop string, or the number of the stop token; nil is left out.
func (p *Piece) stopReason() any {
	switch {
	case p.MatchedToken != nil:
		return *p.MatchedToken
	case p.Matched != "":
		return p.Matched
	}
	return nil
}

// Closing returns the last events of a stream that succeeded (O5).
func (a *Answer) Closing(u Usage) ([]byte, error) {
	var events []byte
	if a.Request.IncludeUsage {
		b := a.head(true)
		b.Usage = u
		e, err := a.event(b)
		if err != nil {
			return nil, err
		}
		events = e
	}
	return append(events, "data: [DONE]\n\n"...), nil
}

// ErrorEvent returns the last event of a stream that did not succeed (O5).
func ErrorEvent(e *Error) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		text = []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal"}}`)
	}
	return append(append([]byte("data: "), text...), "\n\n"...)
}

// Keepalive is a comment that keeps an idle stream's connection open; clients skip it.
const Keepalive = ": keepalive\n\n"

// usageOfChunk puts "usage": null on the chunks of a stream that ends with a usage chunk.
func (a *Answer) usageOfChunk(b *body) {
	if a.Request.IncludeUsage {
		b.Usage = json.RawMessage("null")
	}
}

// tokenIDs adds vLLM's return_token_ids fields: a chat's prompt stands on the body, a
// completion's on its choice.
func (a *Answer) tokenIDs(b *body, c *choice, ids []int32, withPrompt bool) {
	if !a.Request.ReturnTokenIDs {
		return
	}
	c.TokenIDs = ids
	switch {
	case !withPrompt:
	case a.Request.Endpoint == Chat:
		b.PromptTokenIDs = a.Prompts[0]
	default:
		c.PromptTokenIDs = a.Prompts[a.promptOf(c.Index)]
	}
}

func (a *Answer) event(b body) ([]byte, error) { return a.encode("data: ", b, "\n") }

// encode prints b without escaping <, > and &, as OpenAI does; the encoder itself ends the
// text with a line feed.
func (a *Answer) encode(before string, b body, after string) ([]byte, error) {
	a.buf.Reset()
	a.buf.WriteString(before)
	e := json.NewEncoder(&a.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		return nil, err
	}
	a.buf.WriteString(after)
	return bytes.Clone(a.buf.Bytes()), nil
}
