package jinja

import (
	"fmt"
	"slices"
)

// Error is what a template does wrong: its text, or what it does to the values it got.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Template is a parsed template, safe for use by several goroutines.
type Template struct {
	body []stmt
	src  string
}

// Parse reads a template. The error is an *Error.
func Parse(src string) (*Template, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := parser{toks: toks}
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEOF {
		return nil, p.fail("unexpected %s", t)
	}
	return &Template{body: body, src: src}, nil
}

type parser struct {
	toks  []token
	at    int
	depth int // of blocks, and of what recurses inside of one expression
	loops int
	seen  []string // names used in the macro that is being read
}

func (p *parser) peek() token { return p.toks[p.at] }

func (p *parser) take() token {
	t := p.toks[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

// skip takes the word or sign if it comes next.
func (p *parser) skip(text string) bool {
	if p.peek().is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{Line: p.peek().line, Message: fmt.Sprintf(format, args...)}
}

func (p *parser) expect(text string) error {
	if !p.skip(text) {
		return p.fail("expected %q, got %s", text, p.peek())
	}
	return nil
}

func (p *parser) kind(k tokenKind, what string) (token, error) {
	if p.peek().kind != k {
		return token{}, p.fail("expected %s, got %s", what, p.peek())
	}
	return p.take(), nil
}

func (p *parser) end() error {
	_, err := p.kind(tokEnd, "end of statement block")
	return err
}

// deeper is called where the parser recurses (J4).
func (p *parser) deeper() error {
	if p.depth++; p.depth > 2*nestingMax {
		return p.fail("expressions or blocks are nested more than %d deep", 2*nestingMax)
	}
	return nil
}

// body reads statements up to one of ends, of which it takes the word.
func (p *parser) body(ends ...string) (out []stmt, err error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	for {
		t := p.peek()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				return nil, p.fail("unexpected end of template, expected %q", ends[len(ends)-1])
			}
			return out, nil
		case tokData:
			p.take()
			out = append(out, data{Literal(t.text)})
			continue
		case tokOpen:
			p.take()
			x, err := p.tuple(true)
			if err != nil {
				return nil, err
			}
			if _, err := p.kind(tokClose, "end of print statement"); err != nil {
				return nil, err
			}
			out = append(out, output{x, t.line})
			continue
		}
		p.take() // {%
		word, err := p.kind(tokName, "a statement")
		if err != nil {
			return nil, err
		}
		if slices.Contains(ends, word.text) {
			p.at-- // for the caller to see which
			return out, nil
		}
		s, err := p.statement(word)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
}

// closed reads a body up to the end of its block.
func (p *parser) closed(end string) ([]stmt, error) {
	body, err := p.body(end)
	if err != nil {
		return nil, err
	}
	p.take()
	return body, p.end()
}

func (p *parser) statement(word token) (stmt, error) {
	switch word.text {
	case "if":
		return p.ifs()
	case "for":
		return p.loop(word.line)
	case "set":
		return p.set(word.line)
	case "macro":
		m, err := p.macro()
		return define{m}, err
	case "call":
		return p.callBlock(word.line)
	case "filter":
		f, err := p.filters(true)
		if err != nil {
			return nil, err
		}
		if err := p.end(); err != nil {
			return nil, err
		}
		body, err := p.closed("endfilter")
		return filterBlock{f, body, word.line}, err
	case "with":
		return p.with(word.line)
	case "generation":
		if err := p.end(); err != nil {
			return nil, err
		}
		body, err := p.closed("endgeneration")
		return block{body}, err
	case "autoescape":
		if _, err := p.expression(); err != nil {
			return nil, err
		}
		if err := p.end(); err != nil {
			return nil, err
		}
		body, err := p.closed("endautoescape")
		return block{body}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("%s outside of a loop", word.text)
		}
		s := jump{breaks}
		if word.text == "continue" {
			s.s = continues
		}
		return s, p.end()
	}
	p.at--
	return nil, p.fail("unknown statement %q", word.text)
}
