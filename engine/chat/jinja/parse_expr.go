package jinja

import (
	"fmt"
	"slices"
	"strconv"
)

// expression reads a whole expression, with "a if b else c".
func (p *parser) expression() (expr, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	x, err := p.or()
	for err == nil && p.skip("if") {
		c := cond{yes: x}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip("else") {
			if c.no, err = p.expression(); err != nil {
				return nil, err
			}
		}
		x = c
	}
	return x, err
}

// tuple reads expressions with commas between them; without conditional, "if" belongs to the
// statement around it. It ends in front of the words of stop.
func (p *parser) tuple(conditional bool, stop ...string) (expr, error) {
	one := p.expression
	if !conditional && len(stop) > 0 {
		one = p.or
	}
	first, err := one()
	if err != nil || !p.peek().is(",") {
		return first, err
	}
	items := []expr{first}
	for p.skip(",") {
		t := p.peek()
		if t.kind == tokEnd || t.kind == tokClose || t.is(")") || slices.ContainsFunc(stop, t.is) {
			break
		}
		x, err := one()
		if err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return list{items, true}, nil
}

func (p *parser) or() (expr, error) {
	a, err := p.and()
	for err == nil && p.skip("or") {
		var b expr
		b, err = p.and()
		a = or{a, b}
	}
	return a, err
}

func (p *parser) and() (expr, error) {
	a, err := p.not()
	for err == nil && p.skip("and") {
		var b expr
		b, err = p.not()
		a = and{a, b}
	}
	return a, err
}

func (p *parser) not() (expr, error) {
	if p.skip("not") {
		if err := p.deeper(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		x, err := p.not()
		return not{x}, err
	}
	return p.comparison()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) comparison() (expr, error) {
	a, err := p.sum()
	if err != nil {
		return nil, err
	}
	var c compare
	for {
		t := p.peek()
		switch {
		case t.kind == tokSign && slices.Contains(comparisons, t.text):
			c.ops = append(c.ops, t.text)
			p.take()
		case t.is("in"):
			c.ops = append(c.ops, "in")
			p.take()
		case t.is("not") && p.toks[p.at+1].is("in"):
			c.ops = append(c.ops, "not in")
			p.at += 2
		default:
			if len(c.ops) == 0 {
				return a, nil
			}
			c.a = a
			return c, nil
		}
		x, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.xs = append(c.xs, x)
	}
}

// chain reads operands with operators of one rank between them.
func (p *parser) chain(operand func() (expr, error), ops ...string) (expr, error) {
	a, err := operand()
	for err == nil {
		t := p.peek()
		if t.kind != tokSign || !slices.Contains(ops, t.text) {
			return a, nil
		}
		p.take()
		var b expr
		b, err = operand()
		a = binary{t.text, a, b}
	}
	return nil, err
}

func (p *parser) sum() (expr, error) { return p.chain(p.concatenation, "+", "-") }

func (p *parser) concatenation() (expr, error) {
	a, err := p.product()
	if err != nil || !p.peek().is("~") {
		return a, err
	}
	xs := []expr{a}
	for p.skip("~") {
		x, err := p.product()
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	return join{xs}, nil
}

func (p *parser) product() (expr, error) { return p.chain(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.chain(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (x expr, err error) {
	switch {
	case p.skip("-"), p.skip("+"):
		minus := p.toks[p.at-1].text == "-"
		if err := p.deeper(); err != nil {
			return nil, err
		}
		x, err = p.unary(false)
		p.depth--
		if minus {
			x = sign{x}
		} else {
			x = plus{x}
		}
	default:
		x, err = p.primary()
	}
	if err == nil {
		x, err = p.postfix(x)
	}
	for filters && err == nil {
		switch t := p.peek(); {
		case t.is("|"):
			p.take()
			x, err = p.filter(x)
		case t.is("is"):
			p.take()
			x, err = p.test(x)
		case t.is("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return x, err
}

func (p *parser) primary() (expr, error) {
	t := p.take()
	switch {
	case t.kind == tokName:
		switch t.text {
		case "true", "True":
			return constant{boolean{v: true}}, nil
		case "false", "False":
			return constant{boolean{}}, nil
		case "none", "None":
			return constant{none{}}, nil
		}
		p.seen = append(p.seen, t.text)
		return name{t.text}, nil
	case t.kind == tokString:
		s := t.text
		for p.peek().kind == tokString {
			s += p.take().text
		}
		return constant{Text{s: s}}, nil
	case t.kind == tokInteger:
		v, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			if v, err = strconv.ParseInt(t.text, 10, 64); err != nil {
				return nil, p.fail("the number %s is too big", t.text)
			}
		}
		return constant{integer{v: v}}, nil
	case t.kind == tokFloat:
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail("the number %s is too big", t.text)
		}
		return constant{float{v: v}}, nil
	case t.is("("):
		if p.skip(")") {
			return list{tuple: true}, nil
		}
		x, err := p.tuple(true)
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	case t.is("["):
		var l list
		for !p.skip("]") {
			if err := p.comma(len(l.items)); err != nil {
				return nil, err
			}
			if p.skip("]") {
				break
			}
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			l.items = append(l.items, x)
		}
		return l, nil
	case t.is("{"):
		return p.dict()
	}
	if t.kind != tokEOF {
		p.at--
	}
	return nil, p.fail("unexpected %s", t)
}

// comma is expected between the n-th thing and the next.
func (p *parser) comma(n int) error {
	if n == 0 {
		return nil
	}
	return p.expect(",")
}

func (p *parser) dict() (expr, error) {
	var d dict
	for !p.skip("}") {
		if err := p.comma(len(d.keys)); err != nil {
			return nil, err
		}
		if p.skip("}") {
			break
		}
		k, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, k), append(d.values, v)
	}
	return d, nil
}

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
