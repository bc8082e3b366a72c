package tokenizer

import "strings"

// Part is a stretch of a text that is encoded as one. A template's own text may hold the names
// of special tokens; what a client wrote may not.
type Part struct {
	Text    string
	Special bool // names of special tokens in here become these tokens
}

// EncodeParts encodes the joined text of parts as Encode does with special tokens, but finds the
// name of a special token only where all of it lies in parts that allow them. So a text is split
// and merged across the borders of parts as if there were none, and no client can write a
// special token, nor the half of one (T2).
func (t *Tokenizer) EncodeParts(parts []Part) []int32 {
	var ids []int32
	var text strings.Builder
	for _, p := range parts {
		rest := p.Text
		for p.Special {
			before, id, after, ok := t.CutSpecial(rest)
			if !ok {
				break
			}
			text.WriteString(before)
			ids = t.AppendEncode(ids, text.String(), false)
			text.Reset()
			ids = append(ids, id)
			rest = after
		}
		text.WriteString(rest)
	}
	return t.AppendEncode(ids, text.String(), false)
}
