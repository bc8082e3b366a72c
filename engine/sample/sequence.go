package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"baton/engine/tokenizer"
)

// TokenLogprob is what the API reports about one generated token.
type TokenLogprob struct {
	ID      int32        `json:"id"`
	Bytes   []byte       `json:"bytes,omitempty"`
	Logprob float32      `json:"logprob"`
	Top     []TopLogprob `json:"top,omitempty"`
}

// Reasons why a sequence finished by itself; the words are OpenAI's finish_reason.
const (
	ReasonStop   = "stop"
	ReasonLength = "length"
)

// Piece is what one token adds to the answer. Its slices are never written again, so a Piece
// may be given to another goroutine.
type Piece struct {
	Text     string         // may be empty: incomplete UTF-8, or the start of a stop string, is held back
	IDs      []int32        // the token just pushed, also if it ended the generation
	Logprobs []TokenLogprob // of the token just pushed; nil unless asked for
	Finished bool
	Reason   string // ReasonStop or ReasonLength; "" unless Finished
	Matched  string // the stop string, or the text of the stop token; "" at the model's own end
}

// Automaton says which tokens may come next, by those that came (*grammar.State is one).
type Automaton interface {
	// Words is how many words a mask has at least.
	Words() int
	// Allowed sets the bits of the tokens that may come next, end tokens where it may end. mask is
	// clear and has a bit for each logit.
	Allowed(mask []uint64)
	// Push takes a token, an end token where it may end; false: it was not allowed.
	Push(id int32) bool
	// Done says that nothing but the end may follow.
	Done() bool
}

// Sequence is the state of one choice of a request: its tokens, what they mean for the next one,
// the text that is held back, and whether it has finished. One goroutine at a time.
type Sequence struct {
	p        Params
	tok      *tokenizer.Tokenizer
	stream   *tokenizer.Stream
	position int // of the first token: the length of the prompt
	ids      []int32
	history  history
	grammar  Automaton // nil: any text
	held     string    // text that may be the start of a stop string
	early    int       // bytes of held that are of the first min_tokens tokens
	finished bool
}

// idsFirst is how many tokens a sequence has room for before its list grows for the first time.
const idsFirst = 256

// Start says what a sequence begins with.
type Start struct {
	Params    *Params // copied; must have passed Validate
	Tokenizer *tokenizer.Tokenizer
	Prompt    []int32   // what repetition_penalty looks at, and whose length is the first position; not kept
	Generated []int32   // output that is there already, of an attempt that was cut
	Grammar   Automaton // of the parameters' grammar, at its start; nil without one
}

// ErrGenerated is the error of a Start whose Generated no sequence with its parameters would have.
var ErrGenerated = errors.New("sample: generated tokens do not go on")

// New starts a sequence, behind what was generated before if there is something: nothing of that
// comes out again, but the text that was held back at its end (P6).
func New(b Start) (*Sequence, error) {
	for _, list := range [][]int32{b.Prompt, b.Generated} {
		for i, id := range list {
			if id < 0 || int(id) >= b.Tokenizer.Vocab() {
				return nil, fmt.Errorf("%w: token %d of the prompt or of them is %d; the vocabulary has %d", ErrGenerated, i+1, id, b.Tokenizer.Vocab())
			}
		}
	}
	s := &Sequence{p: *b.Params, tok: b.Tokenizer, stream: b.Tokenizer.StreamKeeping(b.Params.KeepSpecial),
		position: len(b.Prompt), ids: make([]int32, 0, len(b.Generated)+min(b.Params.MaxTokens, idsFirst)),
		history: newHistory(b.Params, b.Tokenizer.Vocab(), b.Prompt), grammar: b.Grammar}
	s.p.Logprobs = -1
	for i, id := range b.Generated {
		p, ok := s.Push(Choice{ID: id})
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: the grammar does not allow token %d of them, which is %d", ErrGenerated, i+1, id)
		case p.Finished:
			return nil, fmt.Errorf("%w: with token %d of %d the output was finished", ErrGenerated, i+1, len(b.Generated))
		}
	}
	s.p.Logprobs = b.Params.Logprobs
	return s, nil
}

// NewSequence starts a sequence of its own, without a prompt and without a grammar. p must have
// passed Validate.
func NewSequence(p Params, tok *tokenizer.Tokenizer) *Sequence {
	s, err := New(Start{Params: &p, Tokenizer: tok})
	if err != nil { // nothing was generated
		panic(err)
	}
	return s
}

// Len returns how many tokens were pushed.
func (s *Sequence) Len() int { return len(s.ids) }

// Pick chooses the next token from the logits behind the last one. It changes nothing: what it
// chose counts once it is pushed. If parameters and grammar leave no token, it is NoToken.
func (s *Sequence) Pick(logits []float32, scratch *Scratch) Choice {
	position := s.position + len(s.ids)
	if s.plain() {
		return Pick(&s.p, logits, position, scratch)
	}
	adjusted := s.adjust(logits, scratch)
	scratch.survey(adjusted)
	best := scratch.bestToken(adjusted)
	if x := adjusted[best]; math.IsInf(float64(x), -1) || x != x {
		return Choice{ID: NoToken}
	}
	c := Choice{ID: scratch.choose(&s.p, adjusted, best, position)}
	if s.p.Logprobs >= 0 {
		scratch.survey(logits)
		scratch.report(&c, logits, logits[scratch.bestToken(logits)], s.p.Logprobs)
	}
	return c
}

// Finished says whether the sequence has ended.
func (s *Sequence) Finished() bool { return s.finished }

// Push adds a chosen token; false if the grammar does not allow it, and then nothing was added.
// After a Piece with Finished no more may be pushed (P4).
func (s *Sequence) Push(c Choice) (p Piece, ok bool) {
	if s.finished {
		panic("sample: a token after the end of its sequence")
	}
	end := (!s.p.IgnoreEOS || s.grammar != nil) && s.tok.IsEOS(c.ID) // behind a grammar there is nothing but the end
	if s.grammar != nil && !s.grammar.Push(c.ID) {
		return Piece{}, false
	}
	s.ids = append(s.ids, c.ID)
	s.history.push(c.ID)
	n := len(s.ids)
	p = Piece{IDs: s.ids[n-1 : n : n], Logprobs: s.logprobs(c)}
	stop := slices.Contains(s.p.StopIDs, c.ID)
	text := ""
	if s.p.IncludeStop || !end && !stop {
		text = s.stream.Push(c.ID)
	}
	switch {
	case end:
		s.end(&p, text+s.stream.Flush(), ReasonStop, "")
	case stop:
		s.end(&p, text+s.stream.Flush(), ReasonStop, s.tok.Text(c.ID))
	case s.grammar != nil && s.grammar.Done():
		s.end(&p, text+s.stream.Flush(), ReasonStop, "")
	case n >= s.p.MaxTokens:
		s.end(&p, text+s.stream.Flush(), ReasonLength, "")
	default:
		var matched string
		if p.Text, matched = s.sift(text); matched != "" {
			s.finished, p.Finished, p.Reason, p.Matched = true, true, ReasonStop, matched
		}
	}
	return p, true
}

// Flush ends the sequence from outside (cancelled, failed, handed on) and returns the text that
// is still held. Of a finished sequence it returns nothing.
func (s *Sequence) Flush() Piece {
	var p Piece
	if !s.finished {
		s.end(&p, s.stream.Flush(), "", "")
	}
	return p
}

// end finishes the sequence with the last of its text. A stop string in that text is the reason
// then, since the text ended there.
func (s *Sequence) end(p *Piece, text, reason, matched string) {
	text, stop := s.sift(text)
	p.Text = text + s.held
	if stop != "" {
		p.Text, reason, matched = text, ReasonStop, stop
	}
	s.held, s.finished = "", true
	p.Finished, p.Reason, p.Matched = true, reason, matched
}

// sift adds text to what is held and returns what may go out, and the stop string if one is
// complete (P3). One that ends in the text of the first min_tokens tokens is none; one that begins
// there and ends later counts, as with vLLM. Of several the one that ends first counts, of these the
// longest: so the outcome depends on the text alone, and on where the first min_tokens tokens end,
// not on how it was cut into tokens.
func (s *Sequence) sift(text string) (out, stop string) {
	if len(s.p.Stop) == 0 {
		return text, ""
	}
	text = s.held + text
	early := s.early
	if len(s.ids) <= s.p.MinTokens {
		early = len(text)
	}
	s.held, s.early = "", 0
	end, start := len(text)+1, 0
	for _, w := range s.p.Stop {
		from := max(0, early-len(w)+1) // the first place from which it ends behind what is early
		i := -1
		if from < len(text) {
			i = strings.Index(text[from:], w)
		}
		if i < 0 {
			continue
		}
		i += from
		if e := i + len(w); e < end || e == end && i < start {
			end, start, stop = e, i, w
		}
	}
	if stop != "" && s.p.IncludeStop {
		return text[:end], stop
	}
	if stop != "" {
		return text[:start], stop
	}
	keep := s.beginning(text)
	s.held = text[len(text)-keep:]
	s.early = max(0, early-(len(text)-keep))
	return text[:len(text)-keep], ""
}

// beginning returns the length of the longest end of text that is the beginning of a stop
// string.
func (s *Sequence) beginning(text string) int {
	longest := 0
	for _, w := range s.p.Stop {
		for n := min(len(w)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, w[:n]) {
				longest = n
			}
		}
	}
	return longest
}

func (s *Sequence) logprobs(c Choice) []TokenLogprob {
	if s.p.Logprobs < 0 {
		return nil
	}
	t := TokenLogprob{ID: c.ID, Bytes: s.tok.Token(c.ID), Logprob: c.Logprob, Top: slices.Clone(c.Top)}
	for i := range t.Top {
		t.Top[i].Bytes = s.tok.Token(t.Top[i].ID)
	}
	return []TokenLogprob{t}
}
