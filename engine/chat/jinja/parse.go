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

func (p *parser) ifs() (stmt, error) {
	var out ifs
	for {
		b := branch{line: p.peek().line}
		x, err := p.tuple(false)
		if err != nil {
			return nil, err
		}
		b.test = x
		if err := p.end(); err != nil {
			return nil, err
		}
		if b.body, err = p.body("elif", "else", "endif"); err != nil {
			return nil, err
		}
		out.branches = append(out.branches, b)
		switch p.take().text {
		case "elif":
			continue
		case "else":
			if err := p.end(); err != nil {
				return nil, err
			}
			body, err := p.body("endif")
			if err != nil {
				return nil, err
			}
			p.take()
			out.branches = append(out.branches, branch{body: body})
		}
		return out, p.end()
	}
}

func (p *parser) loop(line int) (_ stmt, err error) {
	l := loop{line: line}
	if l.targets, l.tuple, err = p.names(); err != nil {
		return nil, err
	}
	if slices.Contains(l.targets, "loop") {
		return nil, p.fail("can't assign to the special loop variable")
	}
	if err = p.expect("in"); err != nil {
		return nil, err
	}
	if l.in, err = p.tuple(false, "if", "recursive"); err != nil {
		return nil, err
	}
	if p.skip("if") {
		if l.where, err = p.expression(); err != nil {
			return nil, err
		}
	}
	l.recursive = p.skip("recursive")
	if err = p.end(); err != nil {
		return nil, err
	}
	p.loops++
	l.body, err = p.body("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	if p.take().text == "else" {
		if err = p.end(); err != nil {
			return nil, err
		}
		if l.otherwise, err = p.body("endfor"); err != nil {
			return nil, err
		}
		p.take()
	}
	return l, p.end()
}

// names reads the targets of a loop.
func (p *parser) names() (out []string, tuple bool, err error) {
	paren := p.skip("(")
	for {
		t, err := p.kind(tokName, "a name")
		if err != nil {
			return nil, false, err
		}
		out = append(out, t.text)
		if !p.skip(",") {
			break
		}
		tuple = true
		if p.peek().is("in") || p.peek().is(")") {
			break
		}
	}
	if paren {
		return out, tuple, p.expect(")")
	}
	return out, tuple, nil
}

func (p *parser) target() (target, error) {
	t, err := p.kind(tokName, "a name")
	if err != nil {
		return target{}, err
	}
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, t.text) {
		return target{}, p.fail("can't assign to %q", t.text)
	}
	out := target{name: t.text}
	if p.skip(".") {
		t, err := p.kind(tokName, "a name")
		if err != nil {
			return target{}, err
		}
		out.attr = t.text
	}
	return out, nil
}

func (p *parser) set(line int) (stmt, error) {
	s := set{line: line}
	paren := p.skip("(")
	for {
		t, err := p.target()
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, t)
		if !p.skip(",") {
			break
		}
		s.tuple = true
		if p.peek().is("=") || p.peek().is(")") {
			break
		}
	}
	if paren {
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if p.skip("=") {
		x, err := p.tuple(true)
		if err != nil {
			return nil, err
		}
		s.value = x
		return s, p.end()
	}
	if s.tuple {
		return nil, p.fail("expected \"=\", got %s", p.peek())
	}
	f, err := p.filters(false)
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	body, err := p.closed("endset")
	return setBlock{s.targets[0], f, body, line}, err
}

// filters reads "a | b | c", with a pipe in front unless first.
func (p *parser) filters(first bool) (out []filtered, err error) {
	for first || p.skip("|") {
		first = false
		f, err := p.filter(nil)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// signature reads the parameters of a macro.
func (p *parser) signature(m *macro) error {
	if err := p.expect("("); err != nil {
		return err
	}
	for !p.skip(")") {
		if len(m.params) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
			if p.skip(")") {
				break
			}
		}
		t, err := p.kind(tokName, "a parameter")
		if err != nil {
			return err
		}
		m.params = append(m.params, t.text)
		if p.skip("=") {
			x, err := p.expression()
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, x)
		} else if len(m.defaults) > 0 {
			return p.fail("non-default argument follows default argument")
		}
	}
	return nil
}

// macroBody reads what a macro does, and notes which names it uses.
func (p *parser) macroBody(m *macro, end string) (err error) {
	if err := p.end(); err != nil {
		return err
	}
	outer, loops := p.seen, p.loops
	p.seen, p.loops = nil, 0
	if m.body, err = p.closed(end); err != nil {
		return err
	}
	m.varargs = slices.Contains(p.seen, "varargs")
	m.kwargs = slices.Contains(p.seen, "kwargs")
	m.caller = slices.Contains(p.seen, "caller")
	p.seen, p.loops = append(outer, p.seen...), loops
	return nil
}

func (p *parser) macro() (*macro, error) {
	t, err := p.kind(tokName, "the name of a macro")
	if err != nil {
		return nil, err
	}
	m := &macro{name: t.text}
	if err := p.signature(m); err != nil {
		return nil, err
	}
	return m, p.macroBody(m, "endmacro")
}

func (p *parser) callBlock(line int) (stmt, error) {
	m := &macro{name: "caller"}
	if p.peek().is("(") {
		if err := p.signature(m); err != nil {
			return nil, err
		}
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	f, ok := x.(call)
	if !ok {
		return nil, p.fail("expected call")
	}
	return callBlock{f, m, line}, p.macroBody(m, "endcall")
}

func (p *parser) with(line int) (stmt, error) {
	w := with{line: line}
	for p.peek().kind != tokEnd {
		if len(w.names) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		t, err := p.kind(tokName, "a name")
		if err != nil {
			return nil, err
		}
		if err := p.expect("="); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		w.names, w.values = append(w.names, t.text), append(w.values, x)
	}
	p.take()
	body, err := p.closed("endwith")
	w.body = body
	return w, err
}
