package sample

// Params says how tokens are chosen and when to stop. Start from Default.
type Params struct {
	Temperature float64  `json:"temperature"`          // 0…2; below 1e-6 the best token
	TopK        int      `json:"top_k"`                // keep the k best; 0 or -1 off
	TopP        float64  `json:"top_p"`                // (0,1]: keep the best whose sum reaches p
	MinP        float64  `json:"min_p"`                // [0,1]: drop what is below p times the best
	Seed        uint64   `json:"seed"`                 // see Uniform
	Choice      uint32   `json:"choice,omitempty"`     // which of n choices of a request
	MaxTokens   int      `json:"max_tokens"`           // at least 1
	Stop        []string `json:"stop,omitempty"`       // text ends before the first of these
	StopIDs     []int32  `json:"stop_ids,omitempty"`   // generation ends with one of these
	Logprobs    int      `json:"logprobs"`             // -1 off, else how many best tokens to report (0: the chosen one alone)
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"` // end-of-generation tokens are ordinary (and give no text)
}

// Default returns parameters that change nothing: temperature 1, no cut, no stop, no logprobs, 16 tokens.
func Default() Params {
	return Params{Temperature: 1, TopP: 1, MaxTokens: 16, Logprobs: -1}
}

// Validate returns the API name of the first parameter that is out of range and a sentence that
// says what is allowed, or "", "". vocab is the number of logits.
func (p *Params) Validate(vocab int) (param, message string) { panic("not yet") }
