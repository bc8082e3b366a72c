package sample

import (
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

// Sequence is the state of one choice of a request: its tokens, the text that is held back, and
// whether it has finished. One goroutine at a time.
type Sequence struct {
	p        Params
	tok      *tokenizer.Tokenizer
	stream   *tokenizer.Stream
	ids      []int32
	held     string // text that may be the start of a stop string
	finished bool
}

// idsFirst is how many tokens a sequence has room for before its list grows for the first time.
const idsFirst = 256

// NewSequence starts a sequence. p must have passed Validate.
func NewSequence(p Params, tok *tokenizer.Tokenizer) *Sequence {
	return &Sequence{p: p, tok: tok, stream: tok.Stream(), ids: make([]int32, 0, min(p.MaxTokens, idsFirst))}
}

// Len returns how many tokens were pushed: the position of the next Pick.
func (s *Sequence) Len() int { return len(s.ids) }

// Finished says whether the sequence has ended.
func (s *Sequence) Finished() bool { return s.finished }

// Push adds a chosen token. After a Piece with Finished no more may be pushed (P4).
func (s *Sequence) Push(c Choice) Piece {
	if s.finished {
		panic("sample: a token after the end of its sequence")
	}
	s.ids = append(s.ids, c.ID)
	n := len(s.ids)
	p := Piece{IDs: s.ids[n-1 : n : n], Logprobs: s.logprobs(c)}
	if !s.p.IgnoreEOS && s.tok.IsEOS(c.ID) {
		s.end(&p, s.stream.Flush(), ReasonStop, "")
		return p
	}
	if slices.Contains(s.p.StopIDs, c.ID) {
		s.end(&p, s.stream.Flush(), ReasonStop, s.tok.Text(c.ID))
		return p
	}
	text := s.stream.Push(c.ID)
	if n >= s.p.MaxTokens {
		s.end(&p, text+s.stream.Flush(), ReasonLength, "")
		return p
	}
	text, stop := s.sift(text)
	p.Text = text
	if stop != "" {
		s.finished, p.Finished, p.Reason, p.Matched = true, true, ReasonStop, stop
	}
	return p
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
// complete (P3). Of several the one that ends first counts, of these the longest: so the
// outcome depends on the text alone, not on how it was cut into tokens.
func (s *Sequence) sift(text string) (out, stop string) {
	if len(s.p.Stop) == 0 {
		return text, ""
	}
	text = s.held + text
	s.held = ""
	end, start := len(text)+1, 0
	for _, w := range s.p.Stop {
		i := strings.Index(text, w)
		if i < 0 {
			continue
		}
		if e := i + len(w); e < end || e == end && i < start {
			end, start, stop = e, i, w
		}
	}
	if stop != "" {
		return text[:start], stop
	}
	keep := s.beginning(text)
	s.held = text[len(text)-keep:]
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
