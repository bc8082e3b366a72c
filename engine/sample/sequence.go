package sample

import "baton/engine/tokenizer"

// TokenLogprob is what the API reports about one generated token.
type TokenLogprob struct {
	ID      int32        `json:"id"`
	Bytes   []byte       `json:"bytes,omitempty"`
	Logprob float32      `json:"logprob"`
	Top     []TopLogprob `json:"top,omitempty"`
}

// Piece is what one token adds to the answer. Its slices are never written again, so a Piece
// may be given to another goroutine.
type Piece struct {
	Text     string         // may be empty: incomplete UTF-8, or the start of a stop string is held back
	IDs      []int32        // the token just pushed; also the one that ended the generation
	Logprobs []TokenLogprob // nil unless asked for
	Finished bool
	Reason   string // "stop" or "length", "" unless Finished
	Matched  string // the stop string, or the text of the stop token; "" for the model's own end
}

// Sequence is the state of one choice of a request. One goroutine at a time.
type Sequence struct{}

// NewSequence starts a sequence. p must have passed Validate.
func NewSequence(p Params, tok *tokenizer.Tokenizer) *Sequence { panic("not yet") }

// Push adds a chosen token. After a Piece with Finished no more may be pushed.
func (s *Sequence) Push(c Choice) Piece { panic("not yet") }

// Flush ends the sequence from outside (cancelled, failed) and returns the text still held.
func (s *Sequence) Flush() Piece { panic("not yet") }

// Len returns how many tokens were pushed: the position of the next Pick.
func (s *Sequence) Len() int { panic("not yet") }
