package reply

import (
	"strings"
)

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

// Bounds (P3).
const (
	// CallsMax is how many calls a reply may have; what stands behind them is content.
	CallsMax = 128
	// holdMax bounds the text of a call that is not known to be one yet.
	holdMax = 1 << 20
	// blankMax bounds white space of which nobody knows yet whether markup follows.
	blankMax = 4096
	// brokenMax is how many broken calls are looked behind for a better one.
	brokenMax = 64
)

// The markup.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	callOpen   = "<tool_call>"
	callClose  = "</tool_call>"
	pythonTag  = "<|python_tag|>"
)

const blanks = " \t\n\r"

// Parser reads one reply. Its deltas hold no more text than came in.
type Parser struct {
	style    Style
	options  Options
	state    func(*Parser) bool // reads from in; false: it needs more
	in       string             // not read yet
	closing  bool               // nothing more comes
	thoughts bool               // what is said now are thoughts
	marked   bool               // markup is just behind us: white space that follows is dropped
	blank    string             // white space that is dropped if markup follows
	call     call               // the one under way
	list     bool               // Llama's calls stand in brackets
	calls    int                // so far
	broken   int                // texts that began like a call and are none
	out      []Delta
}

// New begins a reply.
func New(s Style, o Options) *Parser {
	p := &Parser{style: s, options: o, state: (*Parser).begin}
	if s.Open {
		p.thoughts = true
	}
	return p
}

// Thinking says whether what was pushed so far ends inside of thoughts.
func (p *Parser) Thinking() bool { return p.thoughts }

// Push reads the next piece of text, cut anywhere.
func (p *Parser) Push(text string) []Delta {
	p.out = nil
	p.in += text
	for p.state(p) {
	}
	return p.out
}

// Close ends the reply and returns what was held back. Push may not follow.
func (p *Parser) Close() []Delta {
	p.closing = true
	return p.Push("")
}

// begin finds out whether the reply begins with thoughts.
func (p *Parser) begin() bool {
	if p.style.Thinks || p.style.Open {
		rest, fits := p.past(p.in)
		switch {
		case !fits:
		case strings.HasPrefix(rest, thinkOpen): // some models say it again where the prompt did
			p.in, p.thoughts = rest[len(thinkOpen):], true
		case p.mayBecome(rest, thinkOpen):
			return false
		}
	}
	if p.thoughts {
		p.marked, p.state = true, (*Parser).think
		return true
	}
	p.answer()
	return true
}

// past returns s without the white space in front. False: it is too long to wait behind it.
func (p *Parser) past(s string) (rest string, fits bool) {
	rest = strings.TrimLeft(s, blanks)
	return rest, len(s)-len(rest) < blankMax
}

// mayBecome says that s is the beginning of mark, and more may come.
func (p *Parser) mayBecome(s, mark string) bool {
	return !p.closing && strings.HasPrefix(mark, s)
}

// answer begins what stands behind thoughts.
func (p *Parser) answer() {
	p.thoughts = false
	switch p.style.Calls {
	case Hermes:
		p.state = (*Parser).text
	case Llama:
		p.state = (*Parser).head
	default:
		p.state = (*Parser).rest
	}
}

func (p *Parser) think() bool {
	if !p.until(thinkClose) {
		return false
	}
	p.blank, p.marked = "", true
	p.answer()
	return true
}

// text is content between Hermes' calls.
func (p *Parser) text() bool {
	if p.full() {
		p.state = (*Parser).rest
		return true
	}
	if !p.until(callOpen) {
		return false
	}
	p.call = call{raw: []byte(callOpen), mark: len(callOpen)}
	p.state = (*Parser).envelope
	return true
}

// full says that no more text becomes a call.
func (p *Parser) full() bool {
	return p.calls >= CallsMax || p.broken >= brokenMax || p.options.One && p.calls > 0
}

// until says what stands before mark and goes behind it. False: it has not come yet.
func (p *Parser) until(mark string) bool {
	if i := strings.Index(p.in, mark); i >= 0 {
		p.say(p.in[:i])
		p.in = p.in[i+len(mark):]
		return true
	}
	keep := len(mark) - 1
	for ; keep > 0 && !strings.HasSuffix(p.in, mark[:keep]); keep-- {
	}
	if p.closing {
		keep = 0
	}
	cut := len(p.in) - keep
	p.say(p.in[:cut])
	if p.in = p.in[cut:]; p.closing {
		p.emit(p.blank)
		p.blank = ""
	}
	return false
}

// rest is content to the end, whatever it looks like.
func (p *Parser) rest() bool {
	text := p.in
	if p.in = ""; p.marked {
		if text = strings.TrimLeft(text, blanks); text == "" {
			return false
		}
		p.marked = false
	}
	p.emit(p.blank + text)
	p.blank = ""
	return false
}

// say emits a text but for the white space at its end, which waits for what follows. Of a run of it
// only the last blankMax bytes or fewer wait, and which these are depends on its length alone (P1).
func (p *Parser) say(text string) {
	if p.marked {
		if text = strings.TrimLeft(text, blanks); text == "" {
			return
		}
		p.marked = false
	}
	text = p.blank + text
	end := len(strings.TrimRight(text, blanks))
	end += (len(text) - end) / blankMax * blankMax
	p.blank = text[end:]
	p.emit(text[:end])
}

// emit puts a text out: thoughts or content.
func (p *Parser) emit(text string) {
	if text == "" {
		return
	}
	if n := len(p.out); n > 0 {
		switch last := &p.out[n-1]; {
		case p.thoughts && last.Reasoning != "":
			last.Reasoning += text
			return
		case !p.thoughts && last.Content != "":
			last.Content += text
			return
		}
	}
	if p.thoughts {
		p.out = append(p.out, Delta{Reasoning: text})
	} else {
		p.out = append(p.out, Delta{Content: text})
	}
}
