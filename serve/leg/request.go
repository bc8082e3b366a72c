package leg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"baton/core/room"
	"baton/engine/sample"
)

// Request is the body of POST /leg/prefill and POST /leg/decode.
type Request struct {
	RID    string        `json:"rid"`
	Room   room.ID       `json:"room"`
	Tokens []int32       `json:"tokens"` // the prompt, ids of the worker's vocabulary
	Params sample.Params `json:"params"`
	LeftMS int64         `json:"left_ms"` // time left of the request's deadline when this was sent
	// Salt keeps what the prefix cache holds of this prompt from requests with another salt.
	Salt string `json:"salt,omitempty"`
	// PinMS is how long after the room's end its prefix is to be evicted last, at most room.PinMax;
	// 0: it is like any other.
	PinMS int64 `json:"pin_ms,omitempty"`
	// N is how many choices are generated from the one prompt; 0 is 1. Choice i draws as Params
	// with Choice + i do.
	N int `json:"n,omitempty"`
	// Generated is how many of the last Tokens are output already, of an attempt that was cut: the
	// random numbers, penalties, min_tokens, stop strings and the grammar go on behind them as if
	// nothing had happened, usage counts them as output, Params.MaxTokens counts them, and
	// nothing of them is said again. Only with one choice.
	Generated int `json:"generated,omitempty"`
	// Link is where the room's prefill worker takes links, host:port. Decode only; empty means
	// that the worker computes the prompt itself.
	Link string `json:"link,omitempty"`
}

// ReadRequest reads a body to its end and returns the request. The error says what is wrong
// with it, for the client of this leg.
func ReadRequest(body io.Reader) (*Request, error) {
	b, err := io.ReadAll(io.LimitReader(body, BodyBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("leg: reading the body: %w", err)
	}
	return ParseRequest(b)
}

// ParseRequest reads one JSON object. Unknown fields are ignored (a newer gateway may drive an
// older worker); what stands behind the object is an error.
func ParseRequest(b []byte) (*Request, error) {
	if len(b) > BodyBytesMax {
		return nil, fmt.Errorf("leg: the body is longer than %d bytes", BodyBytesMax)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	r := &Request{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("leg: the body is not a leg request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("leg: the body holds more than one JSON value")
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// Validate holds L1. What depends on a model (vocabulary, context) is the worker's to check.
func (r *Request) Validate() error {
	switch {
	case r.Room == 0 || r.Room > room.IDMask:
		return fmt.Errorf("leg: room: %d is not a room: want 63 random bits, not zero", uint64(r.Room))
	case len(r.RID) > RIDBytesMax:
		return fmt.Errorf("leg: rid: %d bytes, at most %d", len(r.RID), RIDBytesMax)
	case !printable(r.RID):
		return errors.New("leg: rid: want printable UTF-8")
	case len(r.Salt) > SaltBytesMax:
		return fmt.Errorf("leg: salt: %d bytes, at most %d", len(r.Salt), SaltBytesMax)
	case len(r.Tokens) == 0:
		return errors.New("leg: tokens: the prompt is empty")
	case len(r.Tokens) > TokensMax:
		return fmt.Errorf("leg: tokens: %d, at most %d", len(r.Tokens), TokensMax)
	case r.N < 0 || r.N > ChoicesMax:
		return fmt.Errorf("leg: n: %d, want 0 (one) to %d", r.N, ChoicesMax)
	case r.Generated < 0 || r.Generated >= len(r.Tokens):
		return fmt.Errorf("leg: generated: %d of %d tokens, want 0 to %d: the first is of the prompt", r.Generated, len(r.Tokens), len(r.Tokens)-1)
	case r.Generated > 0 && r.N > 1:
		return fmt.Errorf("leg: generated: %d with n %d, only one choice is continued", r.Generated, r.N)
	case r.Generated > 0 && r.Generated >= r.Params.MaxTokens:
		return fmt.Errorf("leg: generated: %d of max_tokens %d, nothing is left to say", r.Generated, r.Params.MaxTokens)
	case r.PinMS < 0 || r.PinMS > room.PinMax.Milliseconds():
		return fmt.Errorf("leg: pin_ms: %d, want 0 to %d", r.PinMS, room.PinMax.Milliseconds())
	case r.LeftMS < 0 || r.LeftMS > LeftMax.Milliseconds():
		return fmt.Errorf("leg: left_ms: %d, want 0 to %d", r.LeftMS, LeftMax.Milliseconds())
	}
	for i, t := range r.Tokens {
		if t < 0 {
			return fmt.Errorf("leg: tokens[%d]: %d is not a token", i, t)
		}
	}
	if err := validLink(r.Link); err != nil {
		return err
	}
	return validParams(&r.Params)
}

// Choices is how many choices are generated, at least 1.
func (r *Request) Choices() int { return max(r.N, 1) }

// Prompt is how many of Tokens are the client's prompt.
func (r *Request) Prompt() int { return len(r.Tokens) - r.Generated }

// Left is the time left when the request was sent.
func (r *Request) Left() time.Duration { return time.Duration(r.LeftMS) * time.Millisecond }

// Pin is how long its prefix is to be evicted last.
func (r *Request) Pin() time.Duration { return time.Duration(r.PinMS) * time.Millisecond }

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) < 0
}

func validLink(link string) error {
	if link == "" {
		return nil
	}
	if len(link) > LinkBytesMax {
		return fmt.Errorf("leg: link: %d bytes, at most %d", len(link), LinkBytesMax)
	}
	host, port, err := net.SplitHostPort(link)
	if err != nil || host == "" || !printable(host) {
		return fmt.Errorf("leg: link: %q is not host:port", link)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("leg: link: %q has no port from 1 to 65535", link)
	}
	return nil
}

// validParams bounds sizes; ranges are sample.Params' own to check, with the vocabulary at hand.
func validParams(p *sample.Params) error {
	switch {
	case p.MaxTokens < 1 || p.MaxTokens > MaxTokensMax:
		return fmt.Errorf("leg: params: max_tokens: %d, want 1 to %d", p.MaxTokens, MaxTokensMax)
	case len(p.Stop) > StopsMax:
		return fmt.Errorf("leg: params: stop: %d strings, at most %d", len(p.Stop), StopsMax)
	case len(p.StopIDs) > StopIDsMax:
		return fmt.Errorf("leg: params: stop_ids: %d, at most %d", len(p.StopIDs), StopIDsMax)
	case p.Logprobs < -1 || p.Logprobs > TopLogprobsMax:
		return fmt.Errorf("leg: params: logprobs: %d, want -1 (off) to %d", p.Logprobs, TopLogprobsMax)
	}
	switch { // the bounds of lists; package sample has them
	case len(p.LogitBias) > sample.BiasesMax:
		return fmt.Errorf("leg: params: logit_bias: %d tokens, at most %d", len(p.LogitBias), sample.BiasesMax)
	case len(p.AllowedIDs) > sample.AllowedMax:
		return fmt.Errorf("leg: params: allowed_token_ids: %d, at most %d", len(p.AllowedIDs), sample.AllowedMax)
	case len(p.Bad) > sample.BadMax:
		return fmt.Errorf("leg: params: bad_words: %d, at most %d", len(p.Bad), sample.BadMax)
	}
	for i, s := range p.Stop {
		if s == "" || len(s) > StopBytesMax || !utf8.ValidString(s) {
			return fmt.Errorf("leg: params: stop[%d]: %d bytes, want 1 to %d of UTF-8", i, len(s), StopBytesMax)
		}
	}
	return nil
}
