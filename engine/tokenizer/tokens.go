package tokenizer

import "iter"

// Kind says what a token is for.
type Kind uint8

// The kinds; the numbers are those of tokenizer.ggml.token_type.
const (
	Normal  Kind = 1 // text
	Unknown Kind = 2 // stands for what the vocabulary lacks: special
	Control Kind = 3 // special: never found in a text unless asked for
	User    Kind = 4 // a whole text of its own (<think>, a run of newlines): found in every text
	Unused  Kind = 5 // a hole in the vocabulary: never the result of encoding
	Byte    Kind = 6 // one byte, for characters that the vocabulary lacks (byte fallback)
)

// Special says whether tokens of this kind have no text of their own: Decode leaves them out on
// demand, and they come out of a text only where special tokens are asked for.
func (k Kind) Special() bool { return k == Control || k == Unknown }

// Token is one entry of the vocabulary.
type Token struct {
	ID   int32
	Kind Kind
	Text string // the bytes that it adds to a text, maybe a part of a character; of a special token, its name
}

// All yields every token in the order of ids: all ids from 0 to Vocab()-1.
func (t *Tokenizer) All() iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for id, text := range t.text {
			if !yield(Token{int32(id), t.kind[id], text}) {
				return
			}
		}
	}
}

// Kind returns the kind of a token, 0 if there is no such id.
func (t *Tokenizer) Kind(id int32) Kind {
	if !t.known(id) {
		return 0
	}
	return t.kind[id]
}
