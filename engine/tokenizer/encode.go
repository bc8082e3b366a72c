package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"baton/engine/tokenizer/split"
)

// Encode returns the tokens of text. With parseSpecial, the names of special tokens inside it
// become these tokens; without, they are ordinary text (T2). No BOS is added. text need not be
// valid UTF-8. Bytes that the vocabulary lacks (see MissingBytes) are left out, or become the
// unknown token if it has one, as the reference implementations do.
//
// It is for texts that are known to be harmless: it panics with ErrSlow, where EncodeParts returns
// that.
func (t *Tokenizer) Encode(text string, parseSpecial bool) []int32 {
	return t.AppendEncode(make([]int32, 0, len(text)/4+4), text, parseSpecial)
}

// AppendEncode is Encode that appends to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, parseSpecial bool) []int32 {
	e := encoder{t: t, all: parseSpecial, limit: split.NewLimit(len(text))}
	dst = e.append(dst, text)
	if e.limit.Err != nil {
		panic(e.limit.Err)
	}
	return dst
}

// ErrSlow says that a text takes too long to be cut, which only an expression of the model's file
// can that is written out nowhere. The tokens of a text do not depend on time: it has these or none.
var ErrSlow = split.ErrSlow

// Part is a stretch of a text that is encoded as one. A template's own text may hold the names
// of special tokens; what a client wrote may not.
type Part struct {
	Text    string
	Special bool // names of special tokens in here become these tokens
}

// EncodeParts encodes the joined text of parts as Encode does with special tokens, but finds the
// name of a special token only where all of it lies in parts that allow them. So a text is split
// and merged across the borders of parts as if there were none, and no client can write a
// special token, nor the half of one (T2). The error is ErrSlow.
func (t *Tokenizer) EncodeParts(parts []Part) ([]int32, error) {
	var text strings.Builder
	var e encoder
	e.t = t
	for _, p := range parts {
		if p.Special && p.Text != "" {
			lo, hi := text.Len(), text.Len()+len(p.Text)
			if n := len(e.allowed); n > 0 && e.allowed[n-1][1] == lo {
				e.allowed[n-1][1] = hi
			} else {
				e.allowed = append(e.allowed, [2]int{lo, hi})
			}
		}
		text.WriteString(p.Text)
	}
	e.limit = split.NewLimit(text.Len())
	ids := e.append(make([]int32, 0, text.Len()/4+4), text.String())
	if e.limit.Err != nil {
		return nil, e.limit.Err
	}
	return ids, nil
}

// encoder is one call.
type encoder struct {
	t       *Tokenizer
	all     bool     // special tokens are found everywhere
	allowed [][2]int // where else: from, to; ascending, none touches the next
	limit   split.Limit
	m       merger
}

// accepts says whether token id may be found at text[lo:hi].
func (e *encoder) accepts(lo, hi int, id int32) bool {
	return !e.t.kind[id].Special() || e.allows(lo, hi)
}

// allows says whether special tokens may be found at text[lo:hi].
func (e *encoder) allows(lo, hi int) bool {
	if e.all || len(e.allowed) == 0 {
		return e.all
	}
	i, _ := slices.BinarySearchFunc(e.allowed, lo+1, func(part [2]int, at int) int { return part[0] - at })
	return i > 0 && hi <= e.allowed[i-1][1]
}

func (e *encoder) append(dst []int32, text string) []int32 {
	a := e.t.added
	if a == nil {
		return e.section(dst, text, 0)
	}
	for from := 0; from < len(text) && e.limit.Err == nil; {
		m, found := a.find(text, from, e.accepts)
		if !found {
			return e.section(dst, text[from:], from)
		}
		if m.lo > from {
			dst = e.section(dst, text[from:m.lo], from)
		}
		dst, from = append(dst, m.id), m.hi
	}
	return dst
}

// section encodes what stands between two added tokens, from byte at of the text on.
func (e *encoder) section(dst []int32, s string, at int) []int32 {
	n := s
	if e.t.normalize != nil {
		n = e.t.normalize(s, &e.limit)
	}
	a := e.t.addedNormal
	if a == nil {
		return e.pieces(dst, n, at == 0)
	}
	// Where normalising changed the section, nobody knows any more who wrote which part of it.
	accept := func(lo, hi int, id int32) bool { return e.accepts(at+lo, at+hi, id) }
	if n != s {
		whole := e.allows(at, at+len(s))
		accept = func(_, _ int, id int32) bool { return whole || !e.t.kind[id].Special() }
	}
	for from := 0; from < len(n); {
		m, found := a.find(n, from, accept)
		if !found {
			return e.pieces(dst, n[from:], at == 0 && from == 0)
		}
		if m.lo > from {
			dst = e.pieces(dst, n[from:m.lo], at == 0 && from == 0)
		}
		dst, from = append(dst, m.id), m.hi
	}
	return dst
}

// pieces encodes normalised text without added tokens.
func (e *encoder) pieces(dst []int32, s string, atStart bool) []int32 {
	t := e.t
	switch {
	case s == "":
	case t.split != nil:
		for len(s) > 0 {
			n := t.split(s)
			dst = e.piece(dst, s[:n])
			s = s[n:]
		}
	case t.stage != nil:
		t.stage(atStart)(s, &e.limit, func(piece string) { dst = e.piece(dst, piece) })
	default:
		dst = e.piece(dst, s)
	}
	return dst
}

// piece encodes one piece of the pre-tokenizer.
func (e *encoder) piece(dst []int32, piece string) []int32 {
	slot := e.t.cache.slot(piece)
	if slot == nil {
		return e.merge(dst, piece)
	}
	if c := slot.Load(); c.is(piece) {
		return append(dst, c.tokens()...)
	}
	n := len(dst)
	dst = e.merge(dst, piece)
	remember(slot, piece, dst[n:])
	return dst
}

func (e *encoder) merge(dst []int32, piece string) []int32 {
	t := e.t
	if id, ok := t.wholes[piece]; ok {
		return append(dst, id)
	}
	if t.borders != nil {
		for n := t.borders.cut(piece); n < len(piece); n = t.borders.cut(piece) {
			dst = e.piece(dst, piece[:n])
			piece = piece[n:]
		}
	}
	e.m.ids = t.symbols(e.m.ids[:0], piece)
	return e.m.merge(dst, &t.merges)
}

// symbols appends the tokens with which merging begins: one per byte, or one per character. A
// character that the vocabulary lacks is its bytes, or else the unknown token, or nothing.
func (t *Tokenizer) symbols(dst []int32, piece string) []int32 {
	if t.chars == nil {
		for i := 0; i < len(piece); i++ {
			if id := t.bytes[piece[i]]; id >= 0 {
				dst = append(dst, id)
			}
		}
		return dst
	}
	unknown := false // an unknown token waits to be written: more characters may belong to it
	for i := 0; i < len(piece); {
		r, n := utf8.DecodeRuneInString(piece[i:])
		char := piece[i : i+n]
		i += n
		if id := t.chars.find(r); id >= 0 && !(r == utf8.RuneError && n == 1) {
			if unknown {
				dst, unknown = append(dst, t.unknown), false
			}
			dst = append(dst, id)
			continue
		}
		if t.hasBytes(char) {
			for j := range n {
				dst = append(dst, t.bytes[char[j]])
			}
			continue
		}
		if t.unknown >= 0 {
			if unknown && !t.fuse {
				dst = append(dst, t.unknown)
			}
			unknown = true
		}
	}
	if unknown {
		dst = append(dst, t.unknown)
	}
	return dst
}

func (t *Tokenizer) hasBytes(char string) bool {
	for i := range len(char) {
		if t.bytes[char[i]] < 0 {
			return false
		}
	}
	return true
}

// charTable has the token of each character that is one: blocks of 256 characters share pages.
type charTable struct {
	block [(utf8.MaxRune + 1) >> 8]uint16 // page number, 0: none
	page  [][256]int32                    // token + 1
}

func newCharTable() *charTable { return &charTable{page: make([][256]int32, 1)} }

func (c *charTable) add(r rune, id int32) {
	b := &c.block[r>>8]
	if *b == 0 {
		*b = uint16(len(c.page))
		c.page = append(c.page, [256]int32{})
	}
	c.page[*b][r&255] = id + 1
}

func (c *charTable) find(r rune) int32 { return c.page[c.block[r>>8]][r&255] - 1 }
