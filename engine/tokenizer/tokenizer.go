package tokenizer

import (
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// Tokenizer is safe for use by several goroutines.
type Tokenizer struct {
	text    []string // by id: the bytes that the token stands for; of a special token, its name
	kind    []kind   // by id
	whole   []bool   // by id: text is valid UTF-8 by itself
	byText  map[string]int32
	merges  mergeTable
	bytes   [256]int32 // token of a single byte, -1 if the vocabulary lacks it
	split   splitter
	wholes  bool           // a piece that is a token is never merged from parts (ignore_merges)
	reached []atomic.Int32 // by id: does merging the token's own text give the token? 0 not known

	user     *trie // user-defined tokens: found in every text
	special  *trie // these and the special ones: found if the caller asks
	bos      int32
	addBOS   bool
	eos      []int32 // all that end a generation, ascending
	mainEOS  int32   // the one that the file names, -1 if none
	digest   uint64
	unmapped []byte
}

// kind is what tokenizer.ggml.token_type says about a token.
type kind uint8

const (
	kindNormal  kind = 1
	kindUnknown kind = 2
	kindControl kind = 3
	kindUser    kind = 4
	kindUnused  kind = 5
	kindByte    kind = 6
)

// special tokens have no text of their own and are never found in text unless asked for.
func (k kind) special() bool { return k == kindControl || k == kindUnknown }

const (
	reachedYes = 1
	reachedNo  = 2
)

// Encode returns the tokens of text. With parseSpecial, the names of special tokens inside it
// become these tokens; without, they are ordinary text (T2). No BOS is added. text need not be
// valid UTF-8. Bytes that the vocabulary lacks (see MissingBytes) are left out, as the
// reference implementations do.
func (t *Tokenizer) Encode(text string, parseSpecial bool) []int32 {
	return t.AppendEncode(make([]int32, 0, len(text)/4+4), text, parseSpecial)
}

// AppendEncode is Encode that appends to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, parseSpecial bool) []int32 {
	added := t.user
	if parseSpecial {
		added = t.special
	}
	var m merger
	for len(text) > 0 {
		at, n, id := added.find(text)
		for rest := text[:at]; len(rest) > 0; {
			p := t.split(rest)
			dst = t.appendPiece(dst, rest[:p], &m)
			rest = rest[p:]
		}
		if n > 0 {
			dst = append(dst, id)
		}
		text = text[at+n:]
	}
	return dst
}

// appendPiece encodes one piece of the pre-tokenizer.
func (t *Tokenizer) appendPiece(dst []int32, piece string, m *merger) []int32 {
	id, known := t.byText[piece]
	if !known {
		return m.merge(dst, t, piece)
	}
	if t.wholes {
		return append(dst, id)
	}
	// A token that merging its own text gives is the answer; for one that merges cannot reach,
	// or reach otherwise, the merges count. Which it is is found out once per token.
	switch t.reached[id].Load() {
	case reachedYes:
		return append(dst, id)
	case reachedNo:
		return m.merge(dst, t, piece)
	}
	n := len(dst)
	dst = m.merge(dst, t, piece)
	if len(dst) == n+1 && dst[n] == id {
		t.reached[id].Store(reachedYes)
	} else {
		t.reached[id].Store(reachedNo)
	}
	return dst
}

// Decode returns the text of ids; with skipSpecial, special tokens give nothing. Each byte that
// is not part of valid UTF-8 becomes U+FFFD. Ids beyond the vocabulary give nothing (the logits
// of some models have more rows than the vocabulary has tokens).
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var b []byte
	for _, id := range ids {
		if t.known(id) && !(skipSpecial && t.kind[id].special()) {
			b = append(b, t.text[id]...)
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	out, rest := appendValid(nil, b)
	return string(appendReplaced(out, rest))
}

func (t *Tokenizer) known(id int32) bool { return id >= 0 && int(id) < len(t.text) }

// Vocab returns the number of tokens.
func (t *Tokenizer) Vocab() int { return len(t.text) }

// Digest returns a sum over everything that decides which ids a text gets and what they mean.
func (t *Tokenizer) Digest() uint64 { return t.digest }

// Token returns the bytes of a token (of a special one, its name), nil if there is no such id.
func (t *Tokenizer) Token(id int32) []byte {
	if !t.known(id) {
		return nil
	}
	return []byte(t.text[id])
}

// Text is Token without a copy; the string may hold a part of a character.
func (t *Tokenizer) Text(id int32) string {
	if !t.known(id) {
		return ""
	}
	return t.text[id]
}

// IsSpecial says whether id is a control token (or the unknown token).
func (t *Tokenizer) IsSpecial(id int32) bool { return t.known(id) && t.kind[id].special() }

// AddBOS says whether the model wants the token BOS() in front of a prompt.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// BOS returns the begin token, -1 if there is none.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS returns all tokens that end a generation, ascending. The slice is shared, read only.
func (t *Tokenizer) EOS() []int32 { return t.eos }

// MainEOS returns the end token that the file names (eos_token_id), -1 if there is none.
func (t *Tokenizer) MainEOS() int32 { return t.mainEOS }

// IsEOS says whether id ends a generation.
func (t *Tokenizer) IsEOS(id int32) bool { return slices.Contains(t.eos, id) }

// MissingBytes returns the bytes for which the vocabulary has no token: SmolLM2 lacks some
// control characters and the bytes of planes without characters. T1 holds for texts without them.
func (t *Tokenizer) MissingBytes() []byte { return t.unmapped }

// CutSpecial cuts text at the name of its first special token: what stands before it, the
// token, what stands after it. ok is false if there is none.
func (t *Tokenizer) CutSpecial(text string) (before string, id int32, after string, ok bool) {
	for from := 0; ; {
		at, n, id := t.special.find(text[from:])
		if n == 0 {
			return text, -1, "", false
		}
		at += from
		if t.kind[id].special() {
			return text[:at], id, text[at+n:], true
		}
		from = at + n // a user-defined token: ordinary text
	}
}
