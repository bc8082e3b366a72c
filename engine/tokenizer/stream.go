package tokenizer

import "unicode/utf8"

// Stream decodes token by token, skips special tokens (unless it keeps them) and holds incomplete UTF-8 back. One
// goroutine at a time.
type Stream struct {
	t    *Tokenizer
	keep bool
	held []byte // the beginning of a character: at most utf8.UTFMax-1 bytes
	out  []byte
}

// Stream returns a decoder that takes one token at a time and skips special tokens.
func (t *Tokenizer) Stream() *Stream { return &Stream{t: t} }

// StreamKeeping returns a decoder that gives special tokens their text, if keep is set.
func (t *Tokenizer) StreamKeeping(keep bool) *Stream { return &Stream{t: t, keep: keep} }

// Push adds a token and returns the text that is now complete. It allocates only for a piece
// that is not a whole token.
func (s *Stream) Push(id int32) string {
	if !s.t.known(id) || !s.keep && s.t.kind[id].Special() {
		return ""
	}
	if len(s.held) == 0 && s.t.whole[id] {
		return s.t.text[id]
	}
	s.held = append(s.held, s.t.text[id]...)
	var rest []byte
	s.out, rest = appendValid(s.out[:0], s.held)
	s.held = append(s.held[:0], rest...)
	return string(s.out)
}

// Flush returns what is held, each byte as U+FFFD, and leaves the stream as new.
func (s *Stream) Flush() string {
	out := appendReplaced(nil, s.held)
	s.held = s.held[:0]
	return string(out)
}

// appendValid appends the text of b to dst, each byte that cannot belong to a character as
// U+FFFD, and returns the incomplete character at the end of b, if there is one.
func appendValid(dst, b []byte) (text, rest []byte) {
	for len(b) > 0 && utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst, b
}

// appendReplaced appends one U+FFFD per byte of b.
func appendReplaced(dst, b []byte) []byte {
	for range b {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	return dst
}
