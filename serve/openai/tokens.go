package openai

import (
	"math"

	"baton/core/room"
	"baton/engine/chat"
)

// ModelList is the answer of GET /v1/models.
type ModelList struct {
	Object string  `json:"object"` // "list"
	Data   []Model `json:"data"`
}

// Model is one served model, and the answer of GET /v1/models/{id}.
type Model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`        // "model"
	Created     int64  `json:"created"`       // seconds since 1970
	OwnedBy     string `json:"owned_by"`      // "baton"
	MaxModelLen int    `json:"max_model_len"` // tokens of prompt and answer together
}

// TokenizeRequest is a checked request of POST /tokenize: a prompt, or messages.
type TokenizeRequest struct {
	Model      string
	Prompt     string
	Chat       *chat.Conversation // not nil: this counts
	AddSpecial bool               // put the model's first token before a prompt, if it has one; of messages the chat template decides
	Strings    bool               // also return the tokens' texts
}

// Tokenized is the answer of POST /tokenize, in vLLM's shape.
type Tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

// ParseTokenize reads and checks the body of POST /tokenize. It counts for the endpoint that
// would serve the same: what that one refuses, as another template, is refused here (O1).
func ParseTokenize(body []byte) (*TokenizeRequest, *Error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &TokenizeRequest{}
	r.Model, _ = o.string("model")
	prompt, hasPrompt := o.string("prompt")
	_, hasMessages := o.raw("messages")
	switch {
	case hasPrompt && hasMessages:
		o.bad("messages", CodeValue, "give prompt or messages, not both")
	case hasMessages:
		var as Request
		readConversation(o, &as)
		r.Chat = &as.Chat
		refuseUnsupported(o, Chat)
	case hasPrompt:
		refuseUnsupported(o, Completion)
	default:
		o.bad("prompt", CodeMissing, "required (or messages)")
	}
	r.Prompt = prompt
	r.AddSpecial = o.bool("add_special_tokens", true)
	r.Strings = o.bool("return_token_strs", false)
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// DetokenizeRequest is a checked request of POST /detokenize.
type DetokenizeRequest struct {
	Model  string
	Tokens []int32
}

// Detokenized is the answer of POST /detokenize, in vLLM's shape.
type Detokenized struct {
	Prompt string `json:"prompt"`
}

// ParseDetokenize reads and checks the body of POST /detokenize.
func ParseDetokenize(body []byte, lim Limits) (*DetokenizeRequest, *Error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &DetokenizeRequest{}
	r.Model, _ = o.string("model")
	if v, ok := o.raw("tokens"); ok {
		r.Tokens = o.tokenIDs("tokens", v, TokensMax, lim.Vocab)
	} else {
		o.bad("tokens", CodeMissing, "required")
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// TextTooLong refuses a text whose bytes alone say that it cannot fit into the context.
func TextTooLong(field string, bytes, context, bytesMax int) *Error {
	return invalid(field, CodeContext, "%s: %d bytes of text; the context of %d tokens cannot hold more than %d", field, bytes, context, bytesMax)
}

// Capacity is what the workers can take. Zero values are not known.
type Capacity struct {
	Context int // tokens of a prompt and one answer to it together
	Pool    int // tokens of KV at a worker: several choices of one prompt reserve their memory there in front
	Choices int // choices of one prompt
}

// CheckContext refuses a prompt that with max tokens does not fit into the context, or not with
// all of its choices into a worker's memory, and gives a request that named no maximum what is
// left. prompt is its tokens; each prompt of a request is to be checked.
func (r *Request) CheckContext(prompt int, has Capacity) *Error {
	field := "prompt"
	if r.Endpoint == Chat {
		field, _ = Words(&r.Chat)
	}
	switch {
	case prompt == 0:
		return invalid(field, CodeValue, "%s: gives no tokens at all; want at least one", field)
	case prompt >= has.Context:
		return invalid(field, CodeContext, "%s: %d tokens leave no room for an answer in the context of %d tokens", field, prompt, has.Context)
	case r.N > 1 && has.Choices > 0 && r.N > has.Choices:
		return invalid("n", CodeValue, "n: %d, while this server makes at most %d choices of one prompt", r.N, has.Choices)
	}
	p, most := &r.Params, has.Context-prompt
	if each := r.answerTokens(prompt, has.Pool); each < most {
		most = max(each, 0)
		if most == 0 {
			return invalid("n", CodeContext, "n: %d choices of a prompt of %d tokens are over the %d tokens of a worker's memory", r.N, prompt, has.Pool)
		}
	}
	switch {
	case p.MaxTokens == 0 || p.MaxTokens > most && r.MaxTokensParam == "": // a default of ours, which nobody asked for
		p.MaxTokens = most
	case prompt+p.MaxTokens > has.Context:
		return invalid(r.MaxTokensParam, CodeContext, "%s: %d, with a prompt of %d tokens, is over the context of %d tokens; at most %d is possible",
			r.MaxTokensParam, p.MaxTokens, prompt, has.Context, most)
	case p.MaxTokens > most:
		return invalid(r.MaxTokensParam, CodeContext, "%s: %d for each of %d choices, with a prompt of %d tokens, is over the %d tokens of a worker's memory; at most %d is possible",
			r.MaxTokensParam, p.MaxTokens, r.N, prompt, has.Pool, most)
	}
	if p.MinTokens > p.MaxTokens {
		return invalid("min_tokens", CodeValue, "min_tokens: %d is more than the %d tokens that the answer may have", p.MinTokens, p.MaxTokens)
	}
	return nil
}

// answerTokens is how long each of several choices can be in a pool: they share the whole blocks
// of their prompt. Of one choice the context alone decides, for it needs no memory in front.
func (r *Request) answerTokens(prompt, pool int) int {
	if r.N < 2 || pool == 0 {
		return math.MaxInt
	}
	blocks := pool/room.BlockTokens - prompt/room.BlockTokens
	return blocks/r.N*room.BlockTokens - prompt%room.BlockTokens
}
