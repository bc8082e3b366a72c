package sample

// Uniform returns a number in [0,1) that depends on nothing but its arguments.
func Uniform(seed uint64, choice, position uint32) float64 { panic("not yet") }

// Choice is the token that Pick chose.
type Choice struct {
	ID      int32
	Logprob float32      // raw log-softmax; 0 unless Params.Logprobs >= 0
	Top     []TopLogprob // the best tokens, best first; belongs to the Scratch until the next Pick
}

// TopLogprob is one of the best tokens of a position.
type TopLogprob struct {
	ID      int32   `json:"id"`
	Bytes   []byte  `json:"bytes,omitempty"` // the token's bytes; filled in by Sequence
	Logprob float32 `json:"logprob"`
}

// Scratch is the working memory of Pick; the zero value is ready. One goroutine at a time.
type Scratch struct{}

// Pick chooses a token for position (the index of the generated token, from 0). logits holds
// one number per token of the vocabulary; it is read only.
func Pick(p *Params, logits []float32, position int, scratch *Scratch) Choice { panic("not yet") }
