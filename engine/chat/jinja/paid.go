package jinja

import "unicode/utf8"

// paid is a builder that pays for what it adds before it adds it (J2). Behind the first thing that
// is too much it adds nothing more.
type paid struct {
	r   *run
	b   builder
	err error
}

func (r *run) builder() *paid { return &paid{r: r} }

// affords pays for n bytes.
func (p *paid) affords(n int) bool {
	if p.err == nil {
		p.err = p.r.pay(n)
	}
	return p.err == nil
}

func (p *paid) add(t Text) {
	if p.affords(t.size()) {
		p.b.add(t)
	}
}

// lit adds what is the template's own.
func (p *paid) lit(s string) { p.put(s, false) }

// markBytes is what the marks of one stretch take.
const markBytes = 8

// put adds s, by a client or not.
func (p *paid) put(s string, client bool) {
	if p.affords(len(s) + markBytes) {
		p.b.put(s, client)
	}
}

// pieceBytes is how much is mapped at once, and so may be made without being paid for.
const pieceBytes = 1 << 10

// mapped adds t with f applied to piece by piece of it, from left to right. No piece begins or ends
// inside of a character, or lies on both sides of a mark.
func (p *paid) mapped(t Text, f func(string) string) {
	for s, client := range t.Parts() {
		for s != "" && p.err == nil {
			n := len(s)
			if n > pieceBytes {
				for n = pieceBytes; n > pieceBytes-utf8.UTFMax && !utf8.RuneStart(s[n]); n-- {
				}
			}
			p.put(f(s[:n]), client)
			s = s[n:]
		}
	}
}

// text returns what was added, unless it cost too much.
func (p *paid) text() (Text, error) {
	if p.err != nil {
		return Text{}, p.err
	}
	return p.b.text(), nil
}

// value is text for those who return any value.
func (p *paid) value() (Value, error) {
	t, err := p.text()
	return t, err
}

// concat pays for a and b together and joins them.
func (r *run) concat(a, b Text) (Text, error) {
	if err := r.pay(a.size() + b.size()); err != nil {
		return Text{}, err
	}
	return concat(a, b), nil
}

// mapped pays for what f makes of a text.
func (r *run) mapped(t Text, f func(string) string) (Text, error) {
	b := r.builder()
	b.mapped(t, f)
	return b.text()
}
