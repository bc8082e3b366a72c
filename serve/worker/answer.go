package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/core/room"
	"baton/engine/grammar"
	"baton/engine/sample"
	"baton/engine/tokenizer"
	"baton/serve/leg"
	"baton/serve/observe"
	"baton/transfer"
)

// entry is what the loop keeps of a room besides what the core knows: its tokens, its output,
// the one who waits for its answer. The loop owns it; a step in flight borrows it.
type entry struct {
	req      *leg.Request
	began    time.Duration // when the request arrived
	tokens   []int32       // prompt, then the output of the first choice
	branches []branch      // the choices, at least one
	peer     int32         // decode: handle of the prefill worker, or decode.Local
	answer   *answer
	digest   digest // of the request, for rooms of two legs
	chain    *chain // of the keys of tokens; nil: nothing of it is found again

	known  bool   // a first step has said how much was cached
	cached int    // prompt tokens that were not computed for this room
	spared bool   // what need not travel was counted
	first  *first // the first tokens, once they are known

	fault   room.Cause // what is wrong with its side data, if it is not the transfer
	why     string     // what a human should know about the end
	param   string     // what the client has wrong, if it is its error
	leaving bool       // the worker ended the room because it leaves; set before its end
}

// branch is one choice of a room.
type branch struct {
	seq    *sample.Sequence
	more   []int32 // its output, but for the first choice, whose output stands behind the prompt
	piece  sample.Piece
	last   sample.Piece // the one that finished the output
	output int          // tokens of output
}

// newEntry makes the entry of a request that passed check, with a sequence for each choice. g is
// the grammar of its parameters, nil for none. The error says what is wrong with its output so far.
func newEntry(r *leg.Request, tok *tokenizer.Tokenizer, g *grammar.Grammar) (*entry, error) {
	e := &entry{req: r, tokens: r.Tokens, branches: make([]branch, r.Choices())}
	p := r.Params
	for i := range e.branches {
		b := sample.Start{Params: &p, Tokenizer: tok, Prompt: r.Tokens[:r.Prompt()], Generated: r.Tokens[r.Prompt():]}
		if g != nil {
			b.Grammar = g.Start()
		}
		seq, err := sample.New(b)
		if err != nil {
			return nil, fmt.Errorf("worker: generated: %w", err)
		}
		e.branches[i] = branch{seq: seq, output: r.Generated}
		p.Choice++
	}
	return e, nil
}

// feed returns the tokens from to to of a choice's prompt and output.
func (e *entry) feed(choice, from, to int32) []int32 {
	if choice == 0 {
		return e.tokens[from:to]
	}
	n := int32(len(e.req.Tokens))
	return e.branches[choice].more[from-n : to-n]
}

// prompts says whether the tokens before to are of the client's prompt alone. Output keeps to the
// kernels of output when it is computed again, whoever made it.
func (e *entry) prompts(to int32) bool { return int(to) <= e.req.Prompt() }

// first is the side data of a room's last chunk: the first token of each choice, and what makes
// sure that both ends draw the same random numbers.
type first struct {
	Choices  []picked `json:"choices"`
	Seed     uint64   `json:"seed"`
	Position int      `json:"position"` // of the tokens: the length of the prompt
	Cached   int      `json:"cached"`
	digest
}

// picked is a token as side data; its ID is sample.NoToken if none was allowed.
type picked struct {
	ID      int32               `json:"id"`
	Logprob float32             `json:"logprob"`
	Top     []sample.TopLogprob `json:"top,omitempty"`
}

// digest names what a room's legs were asked, so that two that are not of one request do not
// make one answer: the KV of another prompt looks like any other.
type digest struct {
	Prompt uint64 `json:"prompt"` // xxh3 of the tokens
	Params uint64 `json:"params"` // xxh3 of the parameters as JSON, but for max_tokens, which prefill does not use, of n and of generated
}

func newDigest(r *leg.Request) digest {
	b := make([]byte, 0, 4*len(r.Tokens))
	for _, t := range r.Tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	p := r.Params
	p.MaxTokens = 0
	params, err := json.Marshal(p)
	if err != nil { // validated: finite numbers, strings, and JSON that was read
		panic("worker: parameters: " + err.Error())
	}
	params = binary.LittleEndian.AppendUint32(params, uint32(r.Choices()))
	params = binary.LittleEndian.AppendUint32(params, uint32(r.Generated))
	return digest{transfer.Sum(b), transfer.Sum(params)}
}

func newFirst(e *entry, choices []sample.Choice) *first {
	f := &first{Seed: e.req.Params.Seed, Position: len(e.req.Tokens), Cached: e.cached, digest: e.digest}
	for _, c := range choices {
		p := picked{ID: c.ID, Logprob: sample.Clamp(c.Logprob)}
		for _, t := range c.Top {
			t.Logprob = sample.Clamp(t.Logprob)
			p.Top = append(p.Top, t)
		}
		f.Choices = append(f.Choices, p)
	}
	return f
}

func (f *first) bytes() []byte {
	b, err := json.Marshal(f)
	if err != nil { // numbers, clamped: always marshals
		panic("worker: side data: " + err.Error())
	}
	return b
}

// errLegsDiffer is the error of legs that are not of one request. That is the doing of whoever
// sent them, and no fault of a worker or a link.
var errLegsDiffer = errors.New("worker: the two legs of the room differ")

// parseFirst reads side data that came over a link and checks it against the room's request.
func parseFirst(b []byte, e *entry, vocab int) (*first, error) {
	f, req := &first{}, e.req
	if len(b) > transfer.SideMax {
		return nil, fmt.Errorf("worker: side data of %d bytes, at most %d", len(b), transfer.SideMax)
	}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, fmt.Errorf("worker: side data: %w", err)
	}
	switch {
	case f.Cached < 0 || f.Cached > f.Position:
		return nil, fmt.Errorf("worker: side data for position %d, %d cached", f.Position, f.Cached)
	case f.Position != len(req.Tokens):
		return nil, fmt.Errorf("%w: prefill's prompt has %d tokens, decode's %d", errLegsDiffer, f.Position, len(req.Tokens))
	case f.Prompt != e.digest.Prompt:
		return nil, fmt.Errorf("%w: prefill computed another prompt of %d tokens", errLegsDiffer, f.Position)
	case f.Seed != req.Params.Seed:
		return nil, fmt.Errorf("%w: prefill drew with the seed %d, decode has %d", errLegsDiffer, f.Seed, req.Params.Seed)
	case f.Params != e.digest.Params:
		return nil, fmt.Errorf("%w: prefill drew the first token with other sampling parameters", errLegsDiffer)
	case len(f.Choices) != req.Choices():
		return nil, fmt.Errorf("worker: side data: first tokens of %d choices, want %d", len(f.Choices), req.Choices())
	}
	for i := range f.Choices {
		if err := f.Choices[i].check(vocab); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (p *picked) check(vocab int) error {
	switch {
	case p.ID != sample.NoToken && (p.ID < 0 || int(p.ID) >= vocab):
		return fmt.Errorf("worker: side data: first token %d of a vocabulary of %d", p.ID, vocab)
	case len(p.Top) > leg.TopLogprobsMax+1:
		return fmt.Errorf("worker: side data: %d log-probabilities, at most %d", len(p.Top), leg.TopLogprobsMax+1)
	}
	for _, t := range p.Top {
		if t.ID < 0 || int(t.ID) >= vocab {
			return fmt.Errorf("worker: side data: token %d of a vocabulary of %d", t.ID, vocab)
		}
	}
	return nil
}

func (p *picked) choice() sample.Choice {
	return sample.Choice{ID: p.ID, Logprob: p.Logprob, Top: p.Top}
}

// push feeds one token of a choice to the entry after its step came home.
func (e *entry) push(choice, id int32, p sample.Piece) {
	b := &e.branches[choice]
	if choice == 0 {
		e.tokens = append(e.tokens, id)
	} else {
		b.more = append(b.more, id)
	}
	b.output++
	b.piece = p
	if p.Finished {
		b.last = p
	}
}

// output counts the tokens of all choices.
func (e *entry) output() (n int) {
	for i := range e.branches {
		n += e.branches[i].output
	}
	return n
}

// end builds the end of the answer.
func (e *entry) end(o room.Outcome) *leg.End {
	end := &leg.End{Outcome: o.Kind, Cause: o.Cause, PromptTokens: e.req.Prompt(), OutputTokens: e.output(),
		Cached: min(e.cached, e.req.Prompt()), Message: leg.Shorten(e.why)}
	if o.Cause == room.ClientError {
		end.Param = e.param
	}
	if o.Kind != room.Success {
		return end
	}
	if len(e.branches) == 1 {
		end.Finish, end.Matched = e.branches[0].last.Reason, e.branches[0].last.Matched
		return end
	}
	for i := range e.branches {
		b := &e.branches[i]
		end.Choices = append(end.Choices, leg.Choice{Finish: b.last.Reason, Matched: b.last.Matched, OutputTokens: b.output})
	}
	return end
}

// spare counts, once for a room, the tokens whose KV decode has: a word may be said again.
func (e *entry) spare(m *observe.Metrics, tokens int) {
	if !e.spared {
		e.spared = true
		m.Spared.Add(float64(tokens))
	}
}

// answerMax bounds what an answer holds for a gateway that does not read (W3), in lines and
// alternatives: a token with 20 log-probabilities counts 21, each is about 100 bytes. It is one
// second of the fastest stream (a small model makes ten thousand tokens a second), so that a
// machine that is busy for a moment ends no room. The kernel's socket buffers come on top. Each choice
// of a room has that much; there are at most room.BranchesMax, so answerMost is the bound of all.
const (
	answerMax  = 1 << 14
	answerMost = answerMax * room.BranchesMax
)

// answer is what the loop has to say to one leg, until its HTTP goroutine takes it.
type answer struct {
	wake chan struct{} // one token: there is something new
	max  int           // bound of weight

	mu      sync.Mutex
	lines   []leg.Line // guarded by mu
	weight  int        // guarded by mu; of lines, at most max
	refused *refusal   // guarded by mu
	end     *leg.End   // guarded by mu
	waits   bool       // guarded by mu; the room waits for memory, no piece has come since
	full    bool       // guarded by mu; lines were dropped, the stream may only fail now
	hurry   func()     // guarded by mu; cuts a write that hangs; nil when nobody writes
}

// refusal is an answer before the stream.
type refusal struct {
	end    any // a *leg.End, or a leg.Leaving
	status int // of HTTP
}

func newAnswer(max int) *answer { return &answer{wake: make(chan struct{}, 1), max: max} }

// weigh counts a line as answerMax does.
func weigh(l *leg.Line) int {
	n := 1
	for i := range l.Logprobs {
		n += len(l.Logprobs[i].Top)
	}
	return n
}

func (a *answer) tell(f func()) {
	a.mu.Lock()
	f()
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default: // the last one is still to be taken
	}
}

// put adds a line; it says false once, when the buffer has just become full.
func (a *answer) put(l leg.Line) bool {
	ok := true
	a.tell(func() {
		a.waits = l.Waits
		switch {
		case a.full:
		case a.weight+weigh(&l) > a.max:
			a.full, ok = true, false
			if a.hurry != nil {
				a.hurry()
			}
		default:
			a.lines = append(a.lines, l)
			a.weight += weigh(&l)
		}
	})
	return ok
}

// waiting says that the last that was put is that the room waits.
func (a *answer) waiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waits && a.end == nil && !a.full
}

// gap says that lines were dropped.
func (a *answer) gap() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full
}

func (a *answer) refuse(r *refusal) { a.tell(func() { a.refused = r }) }
func (a *answer) finish(e *leg.End) { a.tell(func() { a.end = e }) }

// take returns what is new. into's memory is reused.
func (a *answer) take(into []leg.Line) (lines []leg.Line, refused *refusal, end *leg.End) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines = append(into[:0], a.lines...)
	clear(a.lines) // let go of their text
	a.lines, a.weight = a.lines[:0], 0
	return lines, a.refused, a.end
}

func (a *answer) onFull(f func()) {
	a.mu.Lock()
	a.hurry = f
	a.mu.Unlock()
}

// start notes, at the first step of a room, how many tokens were there already, and says whether
// it is the first.
func (e *entry) start(from int32) bool {
	if e.known || e.first != nil {
		return false
	}
	e.known, e.cached = true, int(from)
	return true
}
