package jinja

import (
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
