package openai

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/sample"
)

// Endpoint says which route a request came by; it decides the shape of the answer.
type Endpoint uint8

const (
	Chat       Endpoint = iota // /v1/chat/completions
	Completion                 // /v1/completions
)

// Prompt is one prompt of a completion: text, or token ids as they are.
type Prompt struct {
	Text   string
	Tokens []int32 // not nil: these are the prompt
}

// Request is a checked request of either endpoint.
type Request struct {
	Endpoint       Endpoint
	Model          string            // "" takes what is served
	Chat           chat.Conversation // Chat; without tools if they may not be called
	Tools          []Tool            // Chat; those that were named
	ToolUse        ToolUse
	ToolName       string   // ToolNamed
	OneCall        bool     // parallel_tool_calls is false: at most one call
	Thoughts       Thoughts // what becomes of the model's thoughts
	Prompts        []Prompt // Completion; N choices each, in order
	N              int      // choices for each prompt, at least 1
	Echo           bool     // Completion: the prompt's text stands before each choice's
	Params         sample.Params
	BadWords       []string // texts that are never said; whoever has the tokenizer adds them to Params.Bad
	FormatParam    string   // the field that Params.Grammar came from; "" without one
	MaxTokensParam string   // the field that MaxTokens came from; "" when it is a default
	Stream         bool
	IncludeUsage   bool          // one more chunk with the usage
	ReturnTokenIDs bool          // vLLM's return_token_ids
	CacheSalt      string        // vLLM's cache_salt: what the prefix cache holds of this prompt is found under the same salt alone
	CachePin       time.Duration // cache_pin: for how long after its end its prefix is evicted last
	Stripped       []string      // fields of the client that only a gateway may send, for the log (O4)
}

// Thoughts says what becomes of what a model thinks before it answers.
type Thoughts uint8

const (
	ThoughtsApart  Thoughts = iota // reasoning_content
	ThoughtsHidden                 // vLLM's include_reasoning false: generated, counted, and not sent
	ThoughtsInText                 // SGLang's separate_reasoning false: content, as the model wrote them
)

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
		readConversation(o, r)
		readThoughts(o, r)
		o.elsewhere("prompt", "messages")
	} else {
		o.elsewhere("messages", "prompt")
		r.Prompts = readPrompts(o, lim)
		r.Echo = o.bool("echo", false)
	}
	r.Stream = o.bool("stream", false)
	r.ReturnTokenIDs = o.bool("return_token_ids", false)
	if r.CacheSalt, _ = o.string("cache_salt"); len(r.CacheSalt) > CacheSaltMax {
		o.bad("cache_salt", CodeValue, "%d bytes, at most %d", len(r.CacheSalt), CacheSaltMax)
	}
	r.CachePin = time.Duration(math.Ceil(o.number("cache_pin", 0, room.PinMax.Seconds(), false, 0)*1000)) * time.Millisecond
	readStreamOptions(o, r)
	readChoices(o, r)
	readSampling(o, r, lim)
	readFormat(o, r)
	refuseUnsupported(o, e)
	r.Stripped = o.handOff()
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

func readStreamOptions(o *object, r *Request) {
	const name = "stream_options"
	v, ok := o.raw(name)
	if !ok {
		return
	}
	inner, ok := o.inside(name, v)
	if !ok {
		return
	}
	if !r.Stream {
		o.bad(name, CodeValue, "only allowed when stream is true")
		return
	}
	r.IncludeUsage = inner.bool("include_usage", false)
	if inner.bool("continuous_usage_stats", false) {
		inner.bad("continuous_usage_stats", CodeUnsupported, "not supported; usage comes once, at the end of the stream")
	}
	o.took(inner)
}

// readChoices reads n, and best_of, which can be honoured where nothing is left out.
func readChoices(o *object, r *Request) {
	r.N = 1
	if n, ok := o.integer("n", 1, ChoicesMax); ok {
		r.N = int(n)
	}
	if best, ok := o.integer("best_of", 1, ChoicesMax); ok && o.err == nil && int(best) != r.N {
		o.bad("best_of", CodeUnsupported, "%d is not supported with n %d: every choice that is made is returned; leave it out", best, r.N)
	}
}

func readThoughts(o *object, r *Request) {
	switch include, separate := o.bool("include_reasoning", true), o.bool("separate_reasoning", true); {
	case !separate:
		r.Thoughts = ThoughtsInText
	case !include:
		r.Thoughts = ThoughtsHidden
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
	p.PresencePenalty = o.number("presence_penalty", -sample.PenaltyMax, sample.PenaltyMax, false, 0)
	p.FrequencyPenalty = o.number("frequency_penalty", -sample.PenaltyMax, sample.PenaltyMax, false, 0)
	p.RepetitionPenalty = o.number("repetition_penalty", sample.RepetitionMin, sample.RepetitionMax, false, 1)
	p.LogitBias = readLogitBias(o, lim)
	if v, ok := o.raw("allowed_token_ids"); ok {
		p.AllowedIDs = o.tokenIDs("allowed_token_ids", v, sample.AllowedMax, lim.Vocab)
		if len(p.AllowedIDs) == 0 {
			o.bad("allowed_token_ids", CodeValue, "empty: no token could be generated; leave it out, or name some")
		}
		slices.Sort(p.AllowedIDs)
		p.AllowedIDs = slices.Compact(p.AllowedIDs)
	}
	if v, ok := o.raw("bad_words"); ok {
		r.BadWords = o.strings("bad_words", v, BadWordsMax, StopBytesMax)
	}
	p.IgnoreEOS = o.bool("ignore_eos", false)
	p.KeepSpecial = !o.bool("skip_special_tokens", true)
	p.Stop = readStop(o)
	if v, ok := o.raw("stop_token_ids"); ok {
		p.StopIDs = o.tokenIDs("stop_token_ids", v, StopIDsMax, lim.Vocab)
	}
	p.IncludeStop = o.bool("include_stop_str_in_output", false) // vLLM's name
	if o.bool("no_stop_trim", false) {                          // SGLang's
		p.IncludeStop = true
	}
	readMaxTokens(o, r)
	readLogprobs(o, r)
}

// readLogitBias reads {"token id": bias}.
func readLogitBias(o *object, lim Limits) []sample.Bias {
	const name = "logit_bias"
	v, ok := o.raw(name)
	if !ok {
		return nil
	}
	if first(v) != '{' {
		o.wrongType(name, `an object {"token id": bias}`, v)
		return nil
	}
	byID := map[int32]float64{} // of two with one name the last counts, as everywhere
	walkObject(v, func(key string, e json.RawMessage) bool {
		var add float64
		id, err := strconv.ParseInt(key, 10, 32)
		switch {
		case err != nil, strconv.FormatInt(id, 10) != key: // two keys would be one token
			o.bad(name, CodeValue, "%q is not a token id", cut(key))
		case id < 0 || int(id) >= lim.Vocab:
			o.bad(name, CodeValue, "token id %d is not between 0 and %d", id, lim.Vocab-1)
		case isNull(e) || json.Unmarshal(e, &add) != nil:
			o.wrongType(name, "numbers", e)
		case !(add >= -sample.BiasMax && add <= sample.BiasMax):
			o.bad(name, CodeValue, "%v of token %d is not in [-%d, %d]", add, id, sample.BiasMax, sample.BiasMax)
		default:
			byID[int32(id)] = add
		}
		if len(byID) > sample.BiasesMax {
			o.bad(name, CodeValue, "more than %d tokens, which is all that are allowed", sample.BiasesMax)
		}
		return o.err == nil
	})
	if o.err != nil {
		return nil
	}
	biases := make([]sample.Bias, 0, len(byID))
	for id, add := range byID {
		biases = append(biases, sample.Bias{ID: id, Add: add})
	}
	slices.SortFunc(biases, func(a, b sample.Bias) int { return int(a.ID) - int(b.ID) })
	return biases
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
	if n, ok := o.integer("min_tokens", 0, math.MaxInt32); ok {
		r.Params.MinTokens = int(n)
	}
}

// readLogprobs reads the two dialects: a flag and a count for chat, a count for completions.
func readLogprobs(o *object, r *Request) {
	r.Params.Logprobs = -1
	if r.Endpoint == Completion {
		if n, ok := o.integer("logprobs", 0, LogprobsMax); ok {
			r.Params.Logprobs = int(n)
			if r.Echo {
				o.bad("echo", CodeUnsupported, "not supported together with logprobs: the log-probabilities of a prompt are not computed; leave one of them out")
			}
		}
		return
	}
	on := o.bool("logprobs", false)
	if on {
		r.Params.Logprobs = 0
	}
	if n, ok := o.integer("top_logprobs", 0, TopLogprobsMax); ok {
		if !on && n > 0 {
			o.bad("top_logprobs", CodeValue, "only allowed when logprobs is true")
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
	switch first(v) {
	case '"':
		s, _ := o.string("stop")
		if s == "" || len(s) > StopBytesMax {
			o.bad("stop", CodeValue, "a string of %d bytes, want 1 to %d", len(s), StopBytesMax)
		}
		return []string{s}
	case '[':
		return o.strings("stop", v, StopMax, StopBytesMax)
	}
	o.wrongType("stop", "a string or a list of strings", v)
	return nil
}

// randomSeed is drawn for a request that named none; it goes to the workers, so that a retry
// draws the same tokens.
func randomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
