package reply

// Delta is a piece of a reply: one of its three fields is set.
type Delta struct {
	Content   string
	Reasoning string
	Call      *CallDelta
}

// CallDelta is a piece of a call: first the name alone, then pieces of the arguments.
type CallDelta struct {
	Index     int // of the call in the reply, from 0
	Name      string
	Arguments string
}

// Parser reads one reply. Its deltas hold no more text than came in.
type Parser struct{}

// New begins a reply.
func New(s Style, o Options) *Parser { return &Parser{} }

// Push reads the next piece of text, cut anywhere.
func (p *Parser) Push(text string) []Delta { return []Delta{{Content: text}} }

// Close ends the reply and returns what was held back. Push may not follow.
func (p *Parser) Close() []Delta { return nil }
