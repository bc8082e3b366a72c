package openai

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"math"

	"baton/engine/sample"
)

// Endpoint says which route a request came by; it decides the shape of the answer.
type Endpoint uint8

const (
	Chat       Endpoint = iota // /v1/chat/completions
	Completion                 // /v1/completions
)

// Message is one message of a chat with its text parts joined.
type Message struct{ Role, Content string }

// Prompt is one prompt of a completion: text, or token ids as they are.
type Prompt struct {
	Text   string
	Tokens []int32 // not nil: these are the prompt
}

// Request is a checked request of either endpoint.
type Request struct {
	Endpoint       Endpoint
	Model          string    // "" takes what is served
	Messages       []Message // Chat
	Prompts        []Prompt  // Completion; one choice each, in order
	Params         sample.Params
	MaxTokensParam string // the field that MaxTokens came from; "" when it is a default
	Stream         bool
	IncludeUsage   bool     // one more chunk with the usage
	ReturnTokenIDs bool     // vLLM's return_token_ids
	CacheSalt      string   // vLLM's cache_salt: what the prefix cache holds of this prompt is found under the same salt alone
	Stripped       []string // fields of the client that only a gateway may send, for the log (O4)
}

// Limits is what a request is checked against.
type Limits struct {
	Vocab int // token ids are below
}

// CacheSaltMax bounds cache_salt, in bytes: a digest in hexadecimal.
const CacheSaltMax = 128

// completionTokensDefault is OpenAI's default of max_tokens on /v1/completions.
const completionTokensDefault = 16

// Parse reads and checks a request body (O1, O2).
func Parse(e Endpoint, body []byte, lim Limits) (*Request, *Error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &Request{Endpoint: e}
	r.Model, _ = o.string("model")
	if e == Chat {
		r.Messages = readMessages(o)
	} else {
		r.Prompts = readPrompts(o, lim)
	}
	r.Stream = o.bool("stream", false)
	r.ReturnTokenIDs = o.bool("return_token_ids", false)
	if r.CacheSalt, _ = o.string("cache_salt"); len(r.CacheSalt) > CacheSaltMax {
		o.fail(invalid("cache_salt", CodeValue, "cache_salt: %d bytes, at most %d", len(r.CacheSalt), CacheSaltMax))
	}
	readStreamOptions(o, r)
	readSampling(o, r, lim)
	refuseUnsupported(o, e)
	r.Stripped = o.handOff()
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

func readStreamOptions(o *object, r *Request) {
	v, ok := o.raw("stream_options")
	if !ok {
		return
	}
	if first(v) != '{' {
		o.wrongType("stream_options", "an object", v)
		return
	}
	fields, ok := readFields(v)
	if !ok {
		o.fail(invalid("stream_options", CodeValue, "stream_options: more than %d fields", FieldsMax))
		return
	}
	if !r.Stream {
		o.fail(invalid("stream_options", CodeValue, "stream_options: only allowed when stream is true"))
		return
	}
	inner := &object{fields: fields}
	r.IncludeUsage = inner.bool("include_usage", false)
	if inner.bool("continuous_usage_stats", false) {
		inner.fail(invalid("continuous_usage_stats", CodeUnsupported, "continuous_usage_stats: not supported; usage comes once, at the end of the stream"))
	}
	if inner.err != nil {
		inner.err.Param = "stream_options." + inner.err.Param
		o.fail(inner.err)
	}
}

// readSampling fills Params, with OpenAI's defaults where the client said nothing.
func readSampling(o *object, r *Request, lim Limits) {
	p := &r.Params
	p.Temperature = o.number("temperature", 0, 2, false, 1)
	p.TopP = o.number("top_p", 0, 1, true, 1)
	p.MinP = o.number("min_p", 0, 1, false, 0)
	if k, ok := o.integer("top_k", -1, math.MaxInt32); ok && k > 0 {
		p.TopK = int(k)
	}
	if seed, ok := o.integer("seed", math.MinInt64, math.MaxInt64); ok {
		p.Seed = uint64(seed)
	} else {
		p.Seed = randomSeed()
	}
	p.IgnoreEOS = o.bool("ignore_eos", false)
	p.Stop = readStop(o)
	if v, ok := o.raw("stop_token_ids"); ok {
		p.StopIDs = o.tokenIDs("stop_token_ids", v, StopIDsMax, lim.Vocab)
	}
	readMaxTokens(o, r)
	readLogprobs(o, r)
}

// readMaxTokens leaves MaxTokens at 0 when a chat named none: the rest of the context counts.
func readMaxTokens(o *object, r *Request) {
	const newName, oldName = "max_completion_tokens", "max_tokens"
	old, hasOld := o.integer(oldName, 1, math.MaxInt32)
	if hasOld {
		r.Params.MaxTokens, r.MaxTokensParam = int(old), oldName
	} else if r.Endpoint == Completion {
		r.Params.MaxTokens = completionTokensDefault
	}
	if r.Endpoint == Chat {
		if n, ok := o.integer(newName, 1, math.MaxInt32); ok {
			r.Params.MaxTokens, r.MaxTokensParam = int(n), newName
		}
	}
}

// readLogprobs reads the two dialects: a flag and a count for chat, a count for completions.
func readLogprobs(o *object, r *Request) {
	r.Params.Logprobs = -1
	if r.Endpoint == Completion {
		if n, ok := o.integer("logprobs", 0, LogprobsMax); ok {
			r.Params.Logprobs = int(n)
		}
		return
	}
	on := o.bool("logprobs", false)
	if on {
		r.Params.Logprobs = 0
	}
	if n, ok := o.integer("top_logprobs", 0, TopLogprobsMax); ok {
		if !on && n > 0 {
			o.fail(invalid("top_logprobs", CodeValue, "top_logprobs: only allowed when logprobs is true"))
		}
		if on {
			r.Params.Logprobs = int(n)
		}
	}
}

// readStop reads a string or a list of them.
func readStop(o *object) []string {
	v, ok := o.raw("stop")
	if !ok {
		return nil
	}
	var stop []string
	switch first(v) {
	case '"':
		s, _ := o.string("stop")
		stop = []string{s}
	case '[':
		for _, e := range o.elements("stop", v, StopMax) {
			var s string
			if first(e) != '"' || json.Unmarshal(e, &s) != nil {
				o.wrongType("stop", "strings", e)
				return nil
			}
			stop = append(stop, s)
		}
	default:
		o.wrongType("stop", "a string or a list of strings", v)
	}
	for _, s := range stop {
		if s == "" || len(s) > StopBytesMax {
			o.fail(invalid("stop", CodeValue, "stop: a stop string of %d bytes, want 1 to %d", len(s), StopBytesMax))
		}
	}
	return stop
}

// randomSeed is drawn for a request that named none; it goes to the workers, so that a retry
// draws the same tokens.
func randomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
