package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// globals are what templates can call.
var globals map[string]Value

func init() {
	globals = map[string]Value{}
	for name, f := range map[string]func(r *run, a arguments) (Value, error){
		"range": rangeOf, "dict": dictOf, "namespace": namespaceOf, "cycler": cycler, "joiner": joiner,
		"raise_exception": raise, "strftime_now": strftimeNow,
	} {
		globals[name] = &function{name, f}
	}
}

// rangeMax is how many items range() may have, as in Jinja2's sandbox.
const rangeMax = 100_000

func rangeOf(r *run, a arguments) (Value, error) {
	var n [3]int64
	client := false
	for i, x := range a.pos {
		v, ok := whole(x)
		if !ok || i >= len(n) {
			return nil, errors.New("range needs 1 to 3 integers")
		}
		n[i] = v
		client = client || fromClient(x)
	}
	from, to, step := int64(0), n[0], int64(1)
	switch len(a.pos) {
	case 0:
		return nil, errors.New("range expected at least 1 argument, got 0")
	case 2:
		from, to = n[0], n[1]
	case 3:
		from, to, step = n[0], n[1], n[2]
	}
	if step == 0 {
		return nil, errors.New("range() arg 3 must not be zero")
	}
	many := steps(from, to, step)
	if many > rangeMax {
		return nil, fmt.Errorf("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", rangeMax)
	}
	if err := r.pay(2 * itemBytes * int(many)); err != nil {
		return nil, err
	}
	out := &List{items: make([]Value, many)}
	for i := range out.items {
		out.items[i] = integer{v: from + int64(i)*step, client: client}
	}
	return out, nil
}

// steps is how many there are from one number to another. The distance of two integers, and the
// size of the smallest, need all 64 bits (J4).
func steps(from, to, step int64) uint64 {
	switch {
	case step > 0 && from < to:
		return (uint64(to)-uint64(from)-1)/uint64(step) + 1
	case step < 0 && from > to:
		return (uint64(from)-uint64(to)-1)/-uint64(step) + 1
	}
	return 0
}

// dictOf makes a dict of pairs or of a dict, and of keywords.
func dictOf(r *run, a arguments) (Value, error) {
	out := NewDict()
	for _, x := range a.pos {
		if d, ok := x.(*Dict); ok {
			for _, e := range d.entries {
				if err := r.put(out, e.key, e.value); err != nil {
					return nil, err
				}
			}
			continue
		}
		items, err := r.items(x)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			pair, err := r.unpack(item, 2)
			if err != nil {
				return nil, err
			}
			if err := r.put(out, pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range a.kw {
		if err := r.put(out, k.name, k.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func namespaceOf(r *run, a arguments) (Value, error) {
	d, err := dictOf(r, a)
	if err != nil {
		return nil, err
	}
	for _, k := range d.(*Dict).Keys() {
		if strings.HasPrefix(k, "_") {
			return nil, fmt.Errorf("Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'. Please rename the attribute.", k)
		}
	}
	_, err = r.made(d)
	return &namespace{*d.(*Dict)}, err
}

func cycler(_ *run, a arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, errors.New("at least one item has to be provided")
	}
	at := 0
	ns := &namespace{}
	ns.d.Set("current", a.pos[0])
	ns.d.Set("next", &function{"next", func(*run, arguments) (Value, error) {
		v := a.pos[at]
		at = (at + 1) % len(a.pos)
		ns.d.Set("current", a.pos[at])
		return v, nil
	}})
	ns.d.Set("reset", &function{"reset", func(*run, arguments) (Value, error) {
		at = 0
		ns.d.Set("current", a.pos[0])
		return none{}, nil
	}})
	return ns, nil
}

func joiner(_ *run, a arguments) (Value, error) {
	p, err := a.named("joiner", "sep")
	if err != nil {
		return nil, err
	}
	var sep Value = Text{s: ", "}
	if p[0] != nil {
		sep = p[0]
	}
	used := false
	return &function{"joiner", func(*run, arguments) (Value, error) {
		if used {
			return sep, nil
		}
		used = true
		return Text{}, nil
	}}, nil
}

func raise(r *run, a arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, &Raised{}
	}
	t, err := r.str(a.pos[0])
	if err != nil {
		return nil, err
	}
	return nil, &Raised{short(t.s)}
}

// strftimeMost is how much a byte of a format can become: %c has 24.
const strftimeMost = 12

func strftimeNow(r *run, a arguments) (Value, error) {
	t, err := one("strftime_now", a)
	if err != nil {
		return nil, err
	}
	if err := r.pay(strftimeMost * len(t.s)); err != nil {
		return nil, err
	}
	return t.as(strftime(r.now(), t.s)), nil
}

// strftime writes a time as Python's strftime does in the C locale; what it does not know stays.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	pad := func(n, width int, fill string) {
		s := strconv.Itoa(n)
		b.WriteString(strings.Repeat(fill, max(0, width-len(s))) + s)
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		fill := "0"
		if (format[i] == '-' || format[i] == '_') && i+1 < len(format) {
			fill = map[byte]string{'-': "", '_': " "}[format[i]]
			i++
		}
		if layout, ok := layouts[format[i]]; ok {
			b.WriteString(t.Format(layout))
			continue
		}
		switch c := format[i]; c {
		case 'd':
			pad(t.Day(), 2, fill)
		case 'e':
			pad(t.Day(), 2, " ")
		case 'm':
			pad(int(t.Month()), 2, fill)
		case 'Y':
			pad(t.Year(), 4, fill)
		case 'y':
			pad(t.Year()%100, 2, fill)
		case 'H':
			pad(t.Hour(), 2, fill)
		case 'I':
			pad((t.Hour()+11)%12+1, 2, fill)
		case 'M':
			pad(t.Minute(), 2, fill)
		case 'S':
			pad(t.Second(), 2, fill)
		case 'j':
			pad(t.YearDay(), 3, fill)
		case 'f':
			pad(t.Nanosecond()/1000, 6, "0")
		case 'w':
			pad(int(t.Weekday()), 1, "0")
		case 'u':
			pad((int(t.Weekday())+6)%7+1, 1, "0")
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'z', 'Z': // a time without zone, as Hugging Face's
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}

var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'p': "PM", 'c': "Mon Jan _2 15:04:05 2006",
	'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM",
}
