package jinja

import "slices"

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
