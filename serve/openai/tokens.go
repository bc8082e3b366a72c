package openai

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
	Messages   []Message // not nil: these count
	AddSpecial bool      // put the model's first token before a prompt, if it has one; of messages the chat template decides
	Strings    bool      // also return the tokens' texts
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
		o.fail(invalid("messages", CodeValue, "messages: give prompt or messages, not both"))
	case hasMessages:
		r.Messages = readMessages(o)
		refuseUnsupported(o, Chat)
	case hasPrompt:
		refuseUnsupported(o, Completion)
	default:
		o.fail(invalid("prompt", CodeMissing, "prompt: required (or messages)"))
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
		o.fail(invalid("tokens", CodeMissing, "tokens: required"))
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

// CheckContext refuses a prompt that with max tokens does not fit into the context, and gives
// a request that named no maximum the rest of it. what is "messages" or "prompt".
func (r *Request) CheckContext(prompt, context int) *Error {
	field := "prompt"
	if r.Endpoint == Chat {
		field = "messages"
	}
	if prompt == 0 {
		return invalid(field, CodeValue, "%s: gives no tokens at all; want at least one", field)
	}
	if prompt >= context {
		return invalid(field, CodeContext, "%s: %d tokens leave no room for an answer in the context of %d tokens", field, prompt, context)
	}
	if r.Params.MaxTokens == 0 {
		r.Params.MaxTokens = context - prompt
	}
	if prompt+r.Params.MaxTokens > context {
		if r.MaxTokensParam == "" { // a default of ours, which nobody asked for
			r.Params.MaxTokens = context - prompt
			return nil
		}
		return invalid(r.MaxTokensParam, CodeContext, "%s: %d, with a prompt of %d tokens, is over the context of %d tokens; at most %d is possible",
			r.MaxTokensParam, r.Params.MaxTokens, prompt, context, context-prompt)
	}
	return nil
}
