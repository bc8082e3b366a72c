package sample

import "fmt"

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
}

// Default returns parameters that change nothing: temperature 1, nothing cut, no stop, no
// log-probabilities, 16 tokens (OpenAI's default for completions).
func Default() Params {
	return Params{Temperature: 1, TopP: 1, MaxTokens: 16, Logprobs: -1}
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
	return p.validateStops(vocab)
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
