package leg

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"baton/core/room"
	"baton/engine/sample"
)

// Line is one line of a leg's answer: accepted, a piece of output, or the end (L2).
type Line struct {
	Accepted bool                  `json:"accepted,omitempty"`
	Text     string                `json:"text,omitempty"`     // new text; may be empty while bytes are held back
	IDs      []int32               `json:"ids,omitempty"`      // the tokens that came out
	Logprobs []sample.TokenLogprob `json:"logprobs,omitempty"` // one per id, or none; clamped (sample.Clamp)
	Choice   int                   `json:"choice,omitempty"`   // whose piece this is, 0 to N-1
	Finish   string                `json:"finish,omitempty"`   // with N > 1, on the last piece of a choice: stop or length
	Matched  string                `json:"matched,omitempty"`  // with Finish: the stop string or token that ended it
	Waits    bool                  `json:"waits,omitempty"`    // the room waits for memory and will go on: said now and then until it does
	End      *End                  `json:"end,omitempty"`
}

// End is how a leg ended.
type End struct {
	Outcome      room.Kind  `json:"outcome"`
	Cause        room.Cause `json:"cause,omitempty"`
	Finish       string     `json:"finish,omitempty"`  // stop or length, on a success of decode
	Matched      string     `json:"matched,omitempty"` // the stop string or token that ended it
	PromptTokens int        `json:"prompt_tokens"`
	OutputTokens int        `json:"output_tokens"`
	Cached       int        `json:"cached"`            // prompt tokens that were not computed for this request
	Choices      []Choice   `json:"choices,omitempty"` // with N > 1, on a success of decode: Finish and Matched are empty, OutputTokens is the sum
	Message      string     `json:"message,omitempty"`
	Param        string     `json:"param,omitempty"` // with ClientError: what is wrong, by the names of sample.Params, or "tokens" or "n"
}

// Choice is how one of several choices ended.
type Choice struct {
	Finish       string `json:"finish"`
	Matched      string `json:"matched,omitempty"`
	OutputTokens int    `json:"output_tokens"`
}

// Refusal is the body of an answer that is not a stream.
func Refusal(c room.Cause, message string) *End {
	o := room.Fail(c)
	return &End{Outcome: o.Kind, Cause: o.Cause, Message: Shorten(message)}
}

// Leaving is the body of the refusal of a worker that leaves. It names no outcome: what a worker
// says of losing a worker it says of its peer, and of itself by not being there. So it reads as
// any other 503 does: here is nobody who takes this leg, somebody else may.
type Leaving struct {
	Message string `json:"message"`
}

// LeavingStatus is the HTTP status of Leaving.
const LeavingStatus = http.StatusServiceUnavailable

// Result is the end as an outcome.
func (e *End) Result() room.Outcome { return room.Outcome{Kind: e.Outcome, Cause: e.Cause} }

// Status is the HTTP status of a refusal: 400 for the client's error, 429 where a limit was
// reached, 503 for everything that another worker may do better.
func (e *End) Status() int {
	switch e.Cause {
	case room.ClientError:
		return http.StatusBadRequest
	case room.Overload:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// Shorten cuts a message to MessageBytesMax and makes it valid UTF-8.
func Shorten(s string) string {
	if len(s) > MessageBytesMax {
		s = s[:MessageBytesMax]
		for len(s) > 0 {
			if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return s
}

// AppendLine appends l as one line of JSON. Its floats must be clamped (sample.Clamp).
func AppendLine(b []byte, l *Line) ([]byte, error) {
	j, err := json.Marshal(l)
	if err != nil {
		return b, fmt.Errorf("leg: printing a line: %w", err)
	}
	return append(append(b, j...), '\n'), nil
}

// ParseLine reads one line without its line feed.
func ParseLine(b []byte) (Line, error) {
	var l Line
	if len(b) > LineBytesMax {
		return Line{}, fmt.Errorf("leg: a line of %d bytes, at most %d", len(b), LineBytesMax)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return Line{}, fmt.Errorf("leg: a line is not JSON of a leg: %w", err)
	}
	if err := l.validate(); err != nil {
		return Line{}, err
	}
	return l, nil
}

// ParseEnd reads the body of a refusal.
func ParseEnd(b []byte) (*End, error) {
	if len(b) > LineBytesMax {
		return nil, fmt.Errorf("leg: a refusal of %d bytes, at most %d", len(b), LineBytesMax)
	}
	e := &End{}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("leg: a refusal is not JSON of a leg: %w", err)
	}
	if err := e.validate(); err != nil {
		return nil, err
	}
	return e, nil
}

func (l *Line) validate() error {
	piece := l.Text != "" || len(l.IDs) > 0 || len(l.Logprobs) > 0
	if b2i(l.Accepted)+b2i(piece)+b2i(l.Waits)+b2i(l.End != nil) != 1 {
		return errors.New("leg: a line must be accepted, a piece, waits or an end")
	}
	switch {
	case l.Choice < 0 || l.Choice >= ChoicesMax || l.Choice > 0 && !piece:
		return fmt.Errorf("leg: a line for choice %d, want 0 to %d, and a piece if it is not 0", l.Choice, ChoicesMax-1)
	case l.Finish != "" && (!piece || l.Finish != sample.ReasonStop && l.Finish != sample.ReasonLength):
		return fmt.Errorf("leg: a line with the finish %.20q, want stop or length, on the last piece of a choice", l.Finish)
	case l.Matched != "" && l.Finish == "":
		return errors.New("leg: a line that names what matched, and no finish")
	case len(l.IDs) > PieceIDsMax:
		return fmt.Errorf("leg: a piece of %d tokens, at most %d", len(l.IDs), PieceIDsMax)
	case len(l.Logprobs) > 0 && len(l.Logprobs) != len(l.IDs):
		return fmt.Errorf("leg: a piece of %d tokens with %d log-probabilities", len(l.IDs), len(l.Logprobs))
	}
	for i := range l.IDs {
		if l.IDs[i] < 0 {
			return fmt.Errorf("leg: a piece with the token %d", l.IDs[i])
		}
	}
	for i := range l.Logprobs {
		p := &l.Logprobs[i]
		if p.ID != l.IDs[i] {
			return fmt.Errorf("leg: log-probability of token %d where token %d stands", p.ID, l.IDs[i])
		}
		if len(p.Top) > TopLogprobsMax+1 {
			return fmt.Errorf("leg: %d top log-probabilities, at most %d", len(p.Top), TopLogprobsMax+1)
		}
	}
	if l.End != nil {
		return l.End.validate()
	}
	return nil
}

func (e *End) validate() error {
	ok := e.Outcome == room.Success && e.Cause == room.NoCause ||
		e.Outcome != room.Success && e.Cause != room.NoCause && room.Fail(e.Cause).Kind == e.Outcome
	switch {
	case !ok:
		return fmt.Errorf("leg: an end cannot be %s with the cause %q", e.Outcome, e.Cause)
	case e.PromptTokens < 0 || e.OutputTokens < 0 || e.Cached < 0 || e.Cached > e.PromptTokens:
		return fmt.Errorf("leg: an end with %d prompt, %d output and %d cached tokens", e.PromptTokens, e.OutputTokens, e.Cached)
	case len(e.Message) > MessageBytesMax:
		return fmt.Errorf("leg: a message of %d bytes, at most %d", len(e.Message), MessageBytesMax)
	case len(e.Param) > ParamBytesMax || !printable(e.Param) || e.Param != "" && e.Cause != room.ClientError:
		return fmt.Errorf("leg: an end that names a param of %d bytes, want at most %d that are printable, and the cause client_error", len(e.Param), ParamBytesMax)
	case len(e.Choices) > ChoicesMax:
		return fmt.Errorf("leg: an end of %d choices, at most %d", len(e.Choices), ChoicesMax)
	}
	for i := range e.Choices {
		if c := &e.Choices[i]; c.OutputTokens < 0 {
			return fmt.Errorf("leg: an end with %d tokens of choice %d", c.OutputTokens, i)
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
