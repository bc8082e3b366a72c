package jinja

import (
	"errors"
	"fmt"
	"strings"
)

func trim(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("trim", "chars")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return r.stripped(t, p[0], true, true)
}

func replace(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("replace", "old", "new", "count")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil || p[0] == nil || p[1] == nil {
		return nil, errors.Join(err, errors.New("replace takes an old and a new text"))
	}
	old, err := r.str(p[0])
	if err != nil {
		return nil, err
	}
	new, err := r.str(p[1])
	if err != nil {
		return nil, err
	}
	return r.replaced(t, old.s, new, p[2])
}

// replaced puts new in the place of old, count times at most.
func (r *run) replaced(t Text, old string, new Text, count Value) (Value, error) {
	n := int64(-1)
	if count != nil {
		if _, none := count.(none); !none {
			var ok bool
			if n, ok = whole(count); !ok {
				return nil, fmt.Errorf("'%s' object cannot be interpreted as an integer", typeName(count))
			}
		}
	}
	b := r.builder()
	at := 0
	for from := 0; n != 0 && b.err == nil; n-- {
		i := strings.Index(t.s[from:], old)
		if i < 0 {
			break
		}
		b.add(t.Slice(at, from+i))
		b.add(new)
		at = from + i + len(old)
		from = at
		if old == "" {
			if at == len(t.s) {
				break
			}
			from += runeLen(t.s[at:])
		}
	}
	b.add(t.Slice(at, len(t.s)))
	return b.value()
}

func indent(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("indent", "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	by, ok := p[0].(Text)
	if !ok {
		n, err := width(p[0], 4)
		if err != nil || n > 1000 {
			return nil, errors.New("indent takes a text or a width of at most 1000")
		}
		by = Text{s: strings.Repeat(" ", n)}
	}
	if t, err = r.concat(t, Literal("\n")); err != nil {
		return nil, err
	}
	all, err := r.lines(t, false)
	if err != nil {
		return nil, err
	}
	b := r.builder()
	for i, line := range all {
		if i > 0 {
			b.lit("\n")
		}
		if i == 0 && p[1] != nil && truth(p[1]) || i > 0 && (line.s != "" || p[2] != nil && truth(p[2])) {
			b.add(by)
		}
		b.add(line)
	}
	return b.value()
}

func center(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("center", "width")
	if err != nil {
		return nil, err
	}
	n, err := width(p[0], 80)
	if err != nil {
		return nil, err
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return r.padded(t, n, Literal(" "), inTheMiddle)
}

// inTheMiddle is how many of the missing characters Python's center puts in front.
func inTheMiddle(missing, width int) int { return missing/2 + missing&width&1 }

// width is how wide something shall be; below nothing is nothing.
func width(v Value, without int) (int, error) {
	if n, ok := whole(v); ok && n < 0 {
		return 0, nil
	}
	return natural(v, without)
}

// padded fills t up to n characters; left says how many of the missing go in front.
func (r *run) padded(t Text, n int, fill Text, left func(missing, width int) int) (Value, error) {
	have := 0
	for i := 0; i < len(t.s); i += runeLen(t.s[i:]) {
		have++
	}
	if have >= n {
		return t, nil
	}
	l := left(n-have, n)
	front, err := r.repeat(fill, integer{v: int64(l)})
	if err != nil {
		return nil, err
	}
	back, err := r.repeat(fill, integer{v: int64(n - have - l)})
	if err != nil {
		return nil, err
	}
	out, err := r.concat(front.(Text), t)
	if err != nil {
		return nil, err
	}
	return r.concat(out, back.(Text))
}

func truncate(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("truncate", "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	n, err := natural(p[0], 255)
	if err != nil {
		return nil, err
	}
	leeway, err := natural(p[3], 5)
	if err != nil {
		return nil, err
	}
	end := Text{s: "..."}
	if e, ok := p[2].(Text); ok {
		end = e
	}
	t, err := r.str(v)
	if err != nil {
		return nil, err
	}
	size, _ := length(r, t, arguments{})
	endSize, _ := length(r, end, arguments{})
	if size.(integer).v <= int64(n+leeway) {
		return t, nil
	}
	to := int64(n) - endSize.(integer).v
	if to < 0 {
		return nil, fmt.Errorf("expected length >= %d, got %d", endSize.(integer).v, n)
	}
	cut, err := r.slice(t, [3]*int64{nil, &to, nil})
	if err != nil {
		return nil, err
	}
	out := cut.(Text)
	if p[1] == nil || !truth(p[1]) {
		if i := strings.LastIndexByte(out.s, ' '); i >= 0 {
			out = out.Slice(0, i)
		}
	}
	return r.concat(out, end)
}

func wordcount(r *run, v Value, _ arguments) (Value, error) {
	t, err := r.str(v)
	n, inside := int64(0), false
	for _, c := range t.s {
		if isWord(c) && !inside {
			n++
		}
		inside = isWord(c)
	}
	return integer{v: n, client: t.fromClient()}, err
}
