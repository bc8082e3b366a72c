package tokenizer

import "baton/engine/weights/gguf"

// Tokenizer is safe for use by several goroutines.
type Tokenizer struct{}

// FromGGUF builds the tokenizer that a model file describes.
func FromGGUF(f *gguf.File) (*Tokenizer, error) { panic("not yet") }

// Encode returns the tokens of text. With parseSpecial, the texts of special tokens inside it
// become these tokens; without, they are ordinary text (T2). No BOS is added.
func (t *Tokenizer) Encode(text string, parseSpecial bool) []int32 { panic("not yet") }

// Decode returns the text of ids; with skipSpecial, special tokens give nothing. Bytes that are
// not valid UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string { panic("not yet") }

// Stream returns a decoder that takes one token at a time and skips special tokens.
func (t *Tokenizer) Stream() *Stream { panic("not yet") }

// Stream decodes token by token and holds incomplete UTF-8 back.
type Stream struct{}

// Push adds a token and returns the text that is now complete.
func (s *Stream) Push(id int32) string { panic("not yet") }

// Flush returns what is held, each byte that cannot be part of a character as U+FFFD.
func (s *Stream) Flush() string { panic("not yet") }

// Vocab returns the number of tokens.
func (t *Tokenizer) Vocab() int { panic("not yet") }

// Digest returns a sum over everything that decides which ids a text gets.
func (t *Tokenizer) Digest() uint64 { panic("not yet") }

// Token returns the bytes of a token (of a special one, its name), nil if there is no such id.
func (t *Tokenizer) Token(id int32) []byte { panic("not yet") }

// IsSpecial says whether id is a control token.
func (t *Tokenizer) IsSpecial(id int32) bool { panic("not yet") }

// AddBOS says whether the model wants the token BOS() in front of a prompt.
func (t *Tokenizer) AddBOS() bool { panic("not yet") }

// BOS returns the begin token, -1 if there is none.
func (t *Tokenizer) BOS() int32 { panic("not yet") }

// EOS returns all tokens that end a generation, ascending.
func (t *Tokenizer) EOS() []int32 { panic("not yet") }

// IsEOS says whether id ends a generation.
func (t *Tokenizer) IsEOS(id int32) bool { panic("not yet") }
