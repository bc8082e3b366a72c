package reply

import (
	"encoding/json"
	"slices"
	"strings"
)

// call is one that is being read: a JSON object with a name and arguments.
type call struct {
	raw       []byte // what was read of it, with the markup before: content if it is no call. Without arguments that flow
	mark      int    // length of that markup
	scan      scanner
	begun     bool   // behind the bracket that opens it
	at        int    // in raw: where the key or value under way begins
	key       string // of the value under way
	name      string // "": not known yet
	arguments string // held; "": not known yet, or put out as they came
	flowing   bool   // inside of arguments that are put out as they come
	past      int    // in raw: behind the name and the arguments, once these are put out
	told      bool   // the name was put out: it is a call
}

// news is what a byte says of a call.
type news uint8

const (
	nothing news = iota
	wrong        // it is none
	begins       // the arguments begin, and the name is known
	named        // the name is known, and the arguments are
	ends         // the arguments that flow end
	closes       // the call ends
)

// envelope reads a call.
func (p *Parser) envelope() bool {
	c, from := &p.call, 0 // of the arguments that flow
	for i := range len(p.in) {
		b := p.in[i]
		switch {
		case !c.begun && blank(b) && len(c.raw) < holdMax:
			c.raw = append(c.raw, b)
			continue
		case !c.begun && b != '{', !c.flowing && len(c.raw) >= holdMax:
			return p.none(i)
		}
		c.begun = true
		was, depth := c.scan.at, c.scan.depth()
		if !c.scan.step(b) {
			p.flow(p.in[from:i])
			return p.none(i)
		}
		if !c.flowing {
			c.raw = append(c.raw, b)
		}
		switch c.look(b, was, depth, &p.options) {
		case wrong:
			return p.none(i + 1)
		case begins:
			p.tell()
			c.flowing, from = true, i
		case named:
			p.tell()
			c.flowing = true
			p.flow(c.arguments)
			c.flowing, c.past = false, len(c.raw)
		case ends:
			p.flow(p.in[from : i+1])
			c.flowing, c.past = false, len(c.raw)
		case closes:
			p.in = p.in[i+1:]
			p.done()
			return true
		}
	}
	p.flow(p.in[from:])
	p.in = ""
	return p.closing && p.none(0)
}

// look says what a byte means that the scanner has taken: where that was before, and how deep.
func (c *call) look(b byte, was place, depth int, o *Options) news {
	s := &c.scan
	inside := s.depth()
	switch {
	case inside == 0:
		if c.name == "" {
			return wrong
		}
		return closes
	case inside == 1 && s.at == inString && s.key && (was == firstKey || was == wantKey):
		c.at = len(c.raw) - 1
	case inside == 1 && s.at == wantColon && was == inString:
		c.key = unquote(c.raw[c.at:])
	case depth == 1 && was == wantValue && !blank(b):
		return c.value(b, o)
	case inside == 1 && s.at == behind && (depth == 2 || was != behind):
		return c.valueEnds(was, o)
	}
	return nothing
}

// value is the first byte of a value of the call's own object.
func (c *call) value(b byte, o *Options) news {
	c.at = len(c.raw) - 1
	switch {
	case c.key == "name":
		if b != '"' || c.name != "" {
			return wrong
		}
	case isArguments(c.key):
		switch {
		case b != '{' || c.arguments != "" || c.told:
			return wrong
		case c.name != "" && !o.Whole:
			return begins
		}
	}
	return nothing
}

// valueEnds is the last byte of one, if that is no number.
func (c *call) valueEnds(was place, o *Options) news {
	switch {
	case c.flowing:
		return ends
	case c.key == "name" && was == inString:
		c.name = unquote(c.raw[c.at:])
		switch {
		case c.name == "" || len(o.Names) > 0 && !slices.Contains(o.Names, c.name):
			return wrong
		case c.arguments != "" && !o.Whole:
			return named
		}
	case isArguments(c.key) && !c.told:
		c.arguments = string(c.raw[c.at:])
	}
	return nothing
}

func isArguments(key string) bool { return key == "arguments" || key == "parameters" }

// unquote reads a JSON string that the scanner found good.
func unquote(raw []byte) (s string) {
	json.Unmarshal(raw, &s)
	return s
}

// tell puts the name out: from here on it is a call, and white space before it was around markup.
func (p *Parser) tell() {
	p.blank, p.marked, p.call.told = "", false, true
	p.out = append(p.out, Delta{Call: &CallDelta{Index: p.calls, Name: p.call.name}})
}

// flow puts arguments out, if these flow.
func (p *Parser) flow(text string) {
	if !p.call.flowing || text == "" {
		return
	}
	if n := len(p.out); n > 0 && p.out[n-1].Call != nil && p.out[n-1].Call.Name == "" && p.out[n-1].Call.Index == p.calls {
		p.out[n-1].Call.Arguments += text
		return
	}
	p.out = append(p.out, Delta{Call: &CallDelta{Index: p.calls, Arguments: text}})
}

// none ends what is no call, or not any more, in front of the byte i of in. What was not put out as
// a call is content; what stands behind it is looked at anew.
func (p *Parser) none(i int) bool {
	c := p.call
	p.call = call{}
	p.broken++
	switch {
	case c.told:
		p.calls++
		p.marked = !c.flowing
		p.in = p.in[i:]
		if !c.flowing {
			p.in = string(c.raw[c.past:]) + p.in
		}
		p.state = (*Parser).text
	case p.style.Calls == Hermes:
		p.say(string(c.raw[:c.mark]))
		p.in = string(c.raw[c.mark:]) + p.in[i:]
		p.state = (*Parser).text
	default:
		p.in = string(c.raw) + p.in[i:]
	}
	if p.style.Calls != Hermes {
		p.state = (*Parser).rest
	}
	return true
}

// done is the end of a whole call.
func (p *Parser) done() {
	c := &p.call
	if !c.told {
		if c.arguments == "" {
			c.arguments = "{}" // a function without any
		}
		p.tell()
		c.flowing = true
		p.flow(c.arguments)
	}
	p.calls++
	p.call, p.marked = call{}, true
	p.state = (*Parser).between
	if p.style.Calls == Hermes {
		p.state = (*Parser).tail
	}
}

// tail goes behind the end of Hermes' markup, if it is there.
func (p *Parser) tail() bool {
	rest, fits := p.past(p.in)
	switch {
	case fits && strings.HasPrefix(rest, callClose):
		p.in = rest[len(callClose):]
	case fits && p.mayBecome(rest, callClose):
		return false
	}
	p.state = (*Parser).text
	return true
}

// head finds out whether a Llama's reply is calls: a JSON object or a list of them.
func (p *Parser) head() bool {
	s, fits := p.past(p.in)
	if s == "" && fits && !p.closing {
		return false
	}
	if strings.HasPrefix(s, pythonTag) {
		s = s[len(pythonTag):]
	} else if p.mayBecome(s, pythonTag) && fits {
		return false
	}
	s, more := p.past(s)
	if strings.HasPrefix(s, "[") {
		p.list = true
		s, more = p.past(s[1:])
	}
	switch {
	case fits && more && s == "" && !p.closing:
		return false // and it is looked at from the beginning again: all that is held is some white space
	case !fits || !more || !strings.HasPrefix(s, "{"):
		p.state = (*Parser).rest
		return true
	}
	n := len(p.in) - len(s)
	p.call = call{raw: []byte(p.in[:n]), mark: n}
	p.in, p.state = s, (*Parser).envelope
	return true
}

// between is behind a Llama's call: another one, the end of the list, or content.
func (p *Parser) between() bool {
	s, fits := p.past(p.in)
	switch {
	case s == "" && fits:
		if p.closing {
			p.in = ""
		}
		return false
	case fits && p.list && s[0] == ']':
		p.list, p.in = false, s[1:]
		return true
	case fits && !p.full() && (s[0] == ';' || p.list && s[0] == ','):
		next, more := p.past(s[1:])
		if next == "" && more && !p.closing {
			return false
		}
		if more && strings.HasPrefix(next, "{") {
			n := len(p.in) - len(next)
			p.call = call{raw: []byte(p.in[:n]), mark: n}
			p.in, p.state = next, (*Parser).envelope
			return true
		}
	}
	p.state = (*Parser).rest
	return true
}
