package jinja

import (
	"fmt"
	"slices"
	"strconv"
)

func (p *parser) postfix(x expr) (_ expr, err error) {
	for err == nil {
		switch {
		case p.skip("."):
			t := p.take()
			switch t.kind {
			case tokName:
				x = attribute{x, t.text}
			case tokInteger:
				v, _ := strconv.ParseInt(t.text, 10, 64)
				x = item{x, constant{integer{v: v}}}
			default:
				p.at--
				return nil, p.fail("expected name or number, got %s", t)
			}
		case p.skip("["):
			x, err = p.subscript(x)
		case p.peek().is("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) subscript(of expr) (_ expr, err error) {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		if !p.peek().is(":") && !p.peek().is("]") {
			if parts[n], err = p.expression(); err != nil {
				return nil, err
			}
		}
		if !p.skip(":") {
			break
		}
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	if n > 0 {
		return slice{of, parts[0], parts[1], parts[2]}, nil
	}
	if parts[0] == nil {
		return nil, p.fail("expected subscript expression")
	}
	return item{of, parts[0]}, nil
}

func (p *parser) call(f expr) (expr, error) {
	a, err := p.args()
	return call{f, a}, err
}

func (p *parser) args() (a args, err error) {
	if err := p.expect("("); err != nil {
		return a, err
	}
	for n := 0; !p.skip(")"); n++ {
		if err := p.comma(n); err != nil {
			return a, err
		}
		if p.skip(")") {
			break
		}
		switch {
		case p.skip("*"):
			if a.more, err = p.expression(); err != nil {
				return a, err
			}
			continue
		case p.skip("**"):
			if a.kv, err = p.expression(); err != nil {
				return a, err
			}
			continue
		}
		if t := p.peek(); t.kind == tokName && p.toks[p.at+1].is("=") {
			p.at += 2
			x, err := p.expression()
			if err != nil {
				return a, err
			}
			a.kw = append(a.kw, keywordExpr{t.text, x})
			continue
		}
		if len(a.kw) > 0 {
			return a, p.fail("invalid syntax for function call expression")
		}
		x, err := p.expression()
		if err != nil {
			return a, err
		}
		a.pos = append(a.pos, x)
	}
	return a, nil
}

// filter reads the name and arguments of a filter.
func (p *parser) filter(of expr) (filtered, error) {
	t, err := p.kind(tokName, "the name of a filter")
	if err != nil {
		return filtered{}, err
	}
	f, ok := filters[t.text]
	if !ok { // an error where it is used: templates have branches for other engines
		f = func(*run, Value, arguments) (Value, error) { return nil, fmt.Errorf("No filter named '%s'.", t.text) }
	}
	out := filtered{of: of, f: f, name: t.text}
	if p.peek().is("(") {
		out.args, err = p.args()
	}
	return out, err
}

// test reads what stands behind "is".
func (p *parser) test(of expr) (expr, error) {
	negated := p.skip("not")
	t, err := p.kind(tokName, "the name of a test")
	if err != nil {
		return nil, err
	}
	f, ok := tests[t.text]
	if !ok {
		f = func(*run, Value, arguments) (bool, error) { return false, fmt.Errorf("No test named '%s'.", t.text) }
	}
	out := tested{of: of, f: f, name: t.text}
	switch next := p.peek(); {
	case next.is("("):
		if out.args, err = p.args(); err != nil {
			return nil, err
		}
	case next.kind == tokString || next.kind == tokInteger || next.kind == tokFloat || next.is("[") || next.is("{"),
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in", "recursive"}, next.text):
		x, err := p.primary()
		if err != nil {
			return nil, err
		}
		if x, err = p.postfix(x); err != nil {
			return nil, err
		}
		out.pos = []expr{x}
	}
	if negated {
		return not{out}, nil
	}
	return out, nil
}
