package grammar

import "fmt"

// charRule returns the rule of one character inside a string.
func (b *builder) charRule() int32 {
	if b.char < 0 {
		b.chars = b.charNode()
		b.char = b.ruleOf("a character", b.chars)
	}
	return b.char
}

// textRule returns the rule of any string.
func (b *builder) textRule() int32 {
	if b.text < 0 {
		b.text = b.ruleOf("a string", b.byte('"', b.repeat(b.charRule(), 0, -1, b.byte('"', end))))
	}
	return b.text
}

func (b *builder) stringOf(f *facts) (int32, error) {
	if len(f.patterns) > 1 {
		return 0, fmt.Errorf("%s and %s hold together: one pattern or format is supported", quote(f.patterns[0].at.at()), quote(f.patterns[1].at.at()))
	}
	if len(f.patterns) == 0 {
		if f.minLength == 0 && f.maxLength < 0 {
			return b.call(b.textRule(), end), nil
		}
		if f.maxLength >= 0 && f.minLength > f.maxLength {
			return b.bytes(), nil
		}
		return b.byte('"', b.repeat(b.charRule(), f.minLength, f.maxLength, b.byte('"', end))), nil
	}
	p := f.patterns[0]
	key := fmt.Sprint(p.search, f.minLength, f.maxLength, " ", p.pattern)
	if r, ok := b.patterns[key]; ok {
		return b.call(r, end), nil
	}
	start, err := b.regex(p.pattern, regexForm{json: true, search: p.search, min: f.minLength, max: f.maxLength}, b.byte('"', end))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", quote(p.at.at()), err)
	}
	r := b.ruleOf("a string", b.byte('"', start))
	b.patterns[key] = r
	return b.call(r, end), nil
}
