package jinja

import (
	"iter"
	"slices"
	"strings"
)

// Text is a string that knows which of its bytes a client brought (J1).
type Text struct {
	s string
	// marks are the offsets at which client's bytes begin, end, begin, end …, strictly ascending.
	marks []int32
	// markup is what the filter safe returns: text added to it is escaped as HTML, as Jinja2 does.
	markup bool
}

// Literal returns a text that is the template's own.
func Literal(s string) Text { return Text{s: s} }

// Client returns a text that a client brought.
func Client(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{s: s, marks: []int32{0, int32(len(s))}}
}

func (t Text) String() string { return t.s }

// Len is the length in bytes.
func (t Text) Len() int { return len(t.s) }

// Parts returns the stretches of the text and whether a client brought them, in turn.
func (t Text) Parts() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		at, client := 0, false
		for _, m := range t.marks {
			if int(m) > at && !yield(t.s[at:m], client) {
				return
			}
			at, client = int(m), !client
		}
		if at < len(t.s) {
			yield(t.s[at:], false)
		}
	}
}

// fromClient says whether a client brought some of the text.
func (t Text) fromClient() bool { return len(t.marks) > 0 }

// Slice returns the bytes from i to j.
func (t Text) Slice(i, j int) Text {
	if i >= j {
		return Text{}
	}
	out := Text{s: t.s[i:j]}
	if len(t.marks) == 0 {
		return out
	}
	k, _ := slices.BinarySearch(t.marks, int32(i)) // the first mark at or behind i
	for k &^= 1; k < len(t.marks) && int(t.marks[k]) < j; k += 2 {
		from, to := max(int(t.marks[k]), i), min(int(t.marks[k+1]), j)
		if from < to {
			out.marks = append(out.marks, int32(from-i), int32(to-i))
		}
	}
	return out
}

// as returns s with the origin of t: for what is made from a text as a whole.
func (t Text) as(s string) Text {
	if t.fromClient() {
		return Client(s)
	}
	return Literal(s)
}

// textBytes is what a text costs in a list, beside its bytes and marks.
const textBytes = 3 * itemBytes

// size is what a text costs of the budget.
func (t Text) size() int { return len(t.s) + 4*len(t.marks) }

// builder joins texts.
type builder struct {
	buf   strings.Builder
	marks []int32
}

func (b *builder) add(t Text) {
	at := int32(b.buf.Len())
	b.buf.WriteString(t.s)
	for i, m := range t.marks {
		if i == 0 && m == 0 && len(b.marks) > 0 && b.marks[len(b.marks)-1] == at {
			b.marks = b.marks[:len(b.marks)-1] // one client stretch goes on
			continue
		}
		b.marks = append(b.marks, at+m)
	}
}

// put adds s, by a client or not.
func (b *builder) put(s string, client bool) {
	if client {
		b.add(Client(s))
	} else {
		b.buf.WriteString(s)
	}
}

func (b *builder) text() Text { return Text{s: b.buf.String(), marks: b.marks} }

func concat(a, b Text) Text {
	if len(a.marks) == 0 && len(b.marks) == 0 {
		return Text{s: a.s + b.s}
	}
	var out builder
	out.buf.Grow(len(a.s) + len(b.s))
	out.add(a)
	out.add(b)
	return out.text()
}

// Append returns t with more behind it.
func (t Text) Append(more Text) Text { return concat(t, more) }
