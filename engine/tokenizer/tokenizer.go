package tokenizer

import (
	"slices"
	"unicode/utf8"

	"baton/engine/tokenizer/split"
)

// Tokenizer is safe for use by several goroutines.
type Tokenizer struct {
	text  []string // by id: the bytes that the token stands for; of a special token, its name
	kind  []Kind   // by id
	whole []bool   // by id: text is valid UTF-8 by itself

	// From text to tokens: added tokens are cut out, what is between them is normalised, cut
	// into pieces, and each piece is merged from its symbols.
	added       *added                            // found in the text as it is; nil: none
	normalize   func(string, *split.Limit) string // nil: the text stays as it is
	addedNormal *added                            // found in the normalised text; nil: none
	split       split.Func                        // nil: use stage
	stage       func(atStart bool) split.Stage    // nil: each section is one piece; atStart: it begins the text
	wholes      map[string]int32                  // pieces that are never merged from parts (ignore_merges)
	chars       *charTable                        // token of a single character; nil: symbols are bytes
	bytes       [256]int32                        // token of a single byte, -1 if the vocabulary lacks it
	unknown     int32                             // token of a character that the vocabulary lacks, -1: left out
	fuse        bool                              // several of them in a row are one token
	merges      mergeTable
	borders     borders // nil: pieces are not cut any further
	cache       cache

	bos     int32
	addBOS  bool
	eos     []int32 // all that end a generation, ascending
	mainEOS int32   // the one that the file names, -1 if none
	digest  uint64
}

// Decode returns the text of ids; with skipSpecial, special tokens give nothing. Each byte that
// is not part of valid UTF-8 becomes U+FFFD. Ids beyond the vocabulary give nothing (the logits
// of some models have more rows than the vocabulary has tokens).
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var b []byte
	for _, id := range ids {
		if t.known(id) && !(skipSpecial && t.kind[id].Special()) {
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
func (t *Tokenizer) IsSpecial(id int32) bool { return t.known(id) && t.kind[id].Special() }

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
func (t *Tokenizer) MissingBytes() []byte {
	var missing []byte
	for b, id := range t.bytes {
		if id < 0 {
			missing = append(missing, byte(b))
		}
	}
	return missing
}

// CutSpecial cuts text at the name of its first special token: what stands before it, the
// token, what stands after it. ok is false if there is none.
func (t *Tokenizer) CutSpecial(text string) (before string, id int32, after string, ok bool) {
	for _, a := range []*added{t.added, t.addedNormal} {
		if a == nil {
			continue
		}
		special := func(_, _ int, id int32) bool { return t.kind[id].Special() }
		if m, found := a.find(text, 0, special); found && (!ok || m.lo < len(before)) {
			before, id, after, ok = text[:m.lo], m.id, text[m.hi:], true
		}
	}
	if !ok {
		return text, -1, "", false
	}
	return before, id, after, true
}
