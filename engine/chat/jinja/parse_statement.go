package jinja

import "slices"

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
