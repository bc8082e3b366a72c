package sample

import (
	"fmt"

	"baton/engine/grammar"
)

// Bounds of the parameters. Those that OpenAI or vLLM set are theirs.
const (
	temperatureMax = 2    // OpenAI
	greedyBelow    = 1e-6 // vLLM treats smaller temperatures as 0, and dividing by them overflows
	// LogprobsMax is how many alternatives a request may ask for (OpenAI: 20).
	LogprobsMax = 20
	// StopMax is how many stop strings a request may have. OpenAI allows 4; clients of vLLM send more.
	StopMax = 16
	// StopBytesMax bounds one stop string, and with it the text that is held back.
	StopBytesMax = 512
	// StopIDsMax bounds the stop tokens, which are searched one by one for every token.
	StopIDsMax = 64
	// MaxTokensMax bounds max_tokens before it is compared with the context of the model: no
	// context in use is longer.
	MaxTokensMax = 1 << 24
	// PenaltyMax bounds presence_penalty and frequency_penalty on both sides (OpenAI).
	PenaltyMax = 2
	// RepetitionMin and RepetitionMax bound repetition_penalty (SGLang: more than 0 up to 2). What is
	// much smaller is 0 as a float32, and logits divided by it are no numbers.
	RepetitionMin = 0.01
	RepetitionMax = 2
	// BiasMax bounds one logit_bias on both sides (OpenAI).
	BiasMax = 100
	// BiasesMax is how many tokens logit_bias may name; OpenAI allows 300. They are gone through
	// for every token.
	BiasesMax = 1024
	// AllowedMax is how many tokens allowed_token_ids may name.
	AllowedMax = 4096
	// BadMax and BadTokensMax bound bad_words: how many, and the tokens of one.
	BadMax       = 128
	BadTokensMax = 32
)

// Params says how tokens are chosen and when to stop. Start from Default.
type Params struct {
	Temperature float64  `json:"temperature"`          // 0…2; below 1e-6 the best token is taken
	TopK        int      `json:"top_k"`                // keep the k best; 0 or -1 keeps all
	TopP        float64  `json:"top_p"`                // (0,1]: keep the fewest best that reach this share
	MinP        float64  `json:"min_p"`                // [0,1]: drop tokens below this share of the best one's
	Seed        uint64   `json:"seed"`                 // see Uniform
	Choice      uint32   `json:"choice,omitempty"`     // which of the choices of a request this is
	MaxTokens   int      `json:"max_tokens"`           // at least 1
	Stop        []string `json:"stop,omitempty"`       // the text ends before the first of these
	StopIDs     []int32  `json:"stop_ids,omitempty"`   // the generation ends with one of these
	Logprobs    int      `json:"logprobs"`             // -1 none; n: the chosen token's and those of the n best
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"` // the model's end tokens do not end the generation

	// What changes the logits before a token is chosen, in this order: LogitBias, AllowedIDs and
	// Bad, MinTokens, Grammar, then the penalties.
	LogitBias         []Bias    `json:"logit_bias,omitempty"`        // added to logits; ids ascending, each once
	AllowedIDs        []int32   `json:"allowed_token_ids,omitempty"` // only these; ids ascending, each once; none: all
	Bad               [][]int32 `json:"bad_words,omitempty"`         // token sequences that are never completed
	MinTokens         int       `json:"min_tokens,omitempty"`        // of so many tokens at first none is an end or a stop token, and none completes a stop string; not against a Grammar that is done, since nothing else may follow
	PresencePenalty   float64   `json:"presence_penalty,omitempty"`  // -2…2: taken from the logit of a token that was generated
	FrequencyPenalty  float64   `json:"frequency_penalty,omitempty"` // -2…2: taken from it for each time
	RepetitionPenalty float64   `json:"repetition_penalty"`          // 0.01…2: divides logits above 0 of tokens in prompt and output, multiplies the others; 1 changes nothing

	// Grammar says what the whole output looks like; nil: any text. Validate leaves it to
	// Spec.Validate and grammar.Compile, since it takes milliseconds.
	Grammar *grammar.Spec `json:"grammar,omitempty"`

	IncludeStop bool `json:"include_stop,omitempty"` // the text keeps the stop string, or the stop token's text
	KeepSpecial bool `json:"keep_special,omitempty"` // special tokens have their text in the output (skip_special_tokens false)
}

// Bias is what logit_bias adds to the logit of one token.
type Bias struct {
	ID  int32   `json:"id"`
	Add float64 `json:"add"` // -100…100
}

// Default returns parameters that change nothing: temperature 1, nothing cut, no stop, no
// log-probabilities, 16 tokens (OpenAI's default for completions).
func Default() Params {
	return Params{Temperature: 1, TopP: 1, MaxTokens: 16, Logprobs: -1, RepetitionPenalty: 1}
}

// Greedy says whether the best token is taken without drawing.
func (p *Params) Greedy() bool { return p.Temperature < greedyBelow }

// Validate returns the API's name of the first parameter that is out of range and a sentence
// that says what is allowed, or "", "". vocab is the number of tokens.
func (p *Params) Validate(vocab int) (param, message string) {
	switch {
	case !(p.Temperature >= 0 && p.Temperature <= temperatureMax):
		return "temperature", fmt.Sprintf("temperature is %v, allowed are 0 to %d", p.Temperature, temperatureMax)
	case p.TopK < -1:
		return "top_k", fmt.Sprintf("top_k is %d, allowed are -1 and 0 (all tokens) and 1 or more", p.TopK)
	case !(p.TopP > 0 && p.TopP <= 1):
		return "top_p", fmt.Sprintf("top_p is %v, allowed is more than 0 up to 1", p.TopP)
	case !(p.MinP >= 0 && p.MinP <= 1):
		return "min_p", fmt.Sprintf("min_p is %v, allowed are 0 to 1", p.MinP)
	case p.MaxTokens < 1 || p.MaxTokens > MaxTokensMax:
		return "max_tokens", fmt.Sprintf("max_tokens is %d, allowed are 1 to %d", p.MaxTokens, MaxTokensMax)
	case p.Logprobs < -1 || p.Logprobs > LogprobsMax:
		return "logprobs", fmt.Sprintf("%d log-probabilities per token are asked for, allowed are 0 to %d", p.Logprobs, LogprobsMax)
	}
	if param, message = p.validateStops(vocab); param != "" {
		return param, message
	}
	return p.validateLogits(vocab)
}

// validateLogits checks what changes the logits.
func (p *Params) validateLogits(vocab int) (param, message string) {
	penalty := func(name string, v float64) {
		if param == "" && !(v >= -PenaltyMax && v <= PenaltyMax) {
			param, message = name, fmt.Sprintf("%s is %v, allowed are -%d to %d", name, v, PenaltyMax, PenaltyMax)
		}
	}
	penalty("presence_penalty", p.PresencePenalty)
	penalty("frequency_penalty", p.FrequencyPenalty)
	switch {
	case param != "":
		return param, message
	case !(p.RepetitionPenalty >= RepetitionMin && p.RepetitionPenalty <= RepetitionMax):
		return "repetition_penalty", fmt.Sprintf("repetition_penalty is %v, allowed are %v to %d", p.RepetitionPenalty, RepetitionMin, RepetitionMax)
	case p.MinTokens < 0 || p.MinTokens > p.MaxTokens:
		return "min_tokens", fmt.Sprintf("min_tokens is %d, allowed are 0 to max_tokens, which is %d", p.MinTokens, p.MaxTokens)
	case len(p.LogitBias) > BiasesMax:
		return "logit_bias", fmt.Sprintf("logit_bias has %d tokens, allowed are %d", len(p.LogitBias), BiasesMax)
	case len(p.AllowedIDs) > AllowedMax:
		return "allowed_token_ids", fmt.Sprintf("allowed_token_ids has %d tokens, allowed are %d", len(p.AllowedIDs), AllowedMax)
	case len(p.Bad) > BadMax:
		return "bad_words", fmt.Sprintf("bad_words has %d entries, allowed are %d", len(p.Bad), BadMax)
	}
	for i, b := range p.LogitBias {
		switch {
		case b.ID < 0 || int(b.ID) >= vocab:
			return "logit_bias", fmt.Sprintf("logit_bias has the token %d, allowed are 0 to %d", b.ID, vocab-1)
		case !(b.Add >= -BiasMax && b.Add <= BiasMax):
			return "logit_bias", fmt.Sprintf("logit_bias of token %d is %v, allowed are -%d to %d", b.ID, b.Add, BiasMax, BiasMax)
		case i > 0 && b.ID <= p.LogitBias[i-1].ID:
			return "logit_bias", fmt.Sprintf("logit_bias has the token %d twice or out of order", b.ID)
		}
	}
	for i, id := range p.AllowedIDs {
		switch {
		case id < 0 || int(id) >= vocab:
			return "allowed_token_ids", fmt.Sprintf("allowed_token_ids has the token %d, allowed are 0 to %d", id, vocab-1)
		case i > 0 && id <= p.AllowedIDs[i-1]:
			return "allowed_token_ids", fmt.Sprintf("allowed_token_ids has the token %d twice or out of order", id)
		}
	}
	for i, w := range p.Bad {
		if len(w) == 0 || len(w) > BadTokensMax {
			return "bad_words", fmt.Sprintf("bad_words has %d tokens in entry %d, allowed are 1 to %d", len(w), i+1, BadTokensMax)
		}
		for _, id := range w {
			if id < 0 || int(id) >= vocab {
				return "bad_words", fmt.Sprintf("bad_words has the token %d, allowed are 0 to %d", id, vocab-1)
			}
		}
	}
	return "", ""
}

func (p *Params) validateStops(vocab int) (param, message string) {
	if len(p.Stop) > StopMax {
		return "stop", fmt.Sprintf("stop has %d strings, allowed are %d", len(p.Stop), StopMax)
	}
	for i, s := range p.Stop {
		if len(s) == 0 || len(s) > StopBytesMax {
			return "stop", fmt.Sprintf("stop string %d has %d bytes, allowed are 1 to %d", i+1, len(s), StopBytesMax)
		}
	}
	if len(p.StopIDs) > StopIDsMax {
		return "stop_token_ids", fmt.Sprintf("stop_token_ids has %d tokens, allowed are %d", len(p.StopIDs), StopIDsMax)
	}
	for _, id := range p.StopIDs {
		if id < 0 || int(id) >= vocab {
			return "stop_token_ids", fmt.Sprintf("stop_token_ids has the token %d, allowed are 0 to %d", id, vocab-1)
		}
	}
	return "", ""
}
