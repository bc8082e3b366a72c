package grammar

import (
	"errors"

	"baton/engine/tokenizer"
)

// Grammar is a compiled Spec for one vocabulary. It is safe for use by several goroutines: its
// states share what was computed once.
type Grammar struct{}

// Compile builds the automaton of s over the tokens of tok. s must have passed Validate; the
// error says what Validate would, or what the vocabulary lacks. It takes milliseconds to tens of
// them (the vocabulary is put in order each time: who compiles often uses a Cache), so it does
// not belong on the loop of a worker.
func Compile(s *Spec, tok *tokenizer.Tokenizer) (*Grammar, error) {
	return nil, errors.New("grammar: not yet")
}

// Words returns the length that a mask needs: a bit per token of the vocabulary.
func (g *Grammar) Words() int { return 0 }

// Start returns the state before the first token.
func (g *Grammar) Start() *State { return nil }

// State is where a generation stands in its grammar. It depends on the tokens pushed alone: who
// pushes the same ids into a Grammar of the same Spec and vocabulary, anywhere, has the same
// state. One goroutine at a time.
type State struct{}

// Allowed writes the mask of the tokens that may follow: bit id%64 of mask[id/64]. End tokens
// are set exactly where the text so far is complete; other control tokens never. mask has
// Words() words at least, those beyond are cleared. Before the end at least one bit is set; after
// an end token was pushed none is.
func (s *State) Allowed(mask []uint64) {}

// Push moves on by a token. False, and no change, if it was not allowed.
func (s *State) Push(id int32) bool { return false }

// Done says whether nothing but an end token may follow (or one was pushed already).
func (s *State) Done() bool { return false }

// Clone returns an independent copy: for the next choice of the same prompt.
func (s *State) Clone() *State { return nil }

// Cache keeps the grammars that a worker used last. It is safe for use by several goroutines;
// two that ask for one Spec at the same time compile it once.
type Cache struct{}

// NewCache returns a cache of grammars over the tokens of tok. It puts the vocabulary in order
// (tens of milliseconds), once for all that it compiles.
func NewCache(tok *tokenizer.Tokenizer) *Cache { return &Cache{} }

// Get returns the grammar of s, compiled now or before. It may take milliseconds to tens of
// them: not for the loop of a worker.
func (c *Cache) Get(s *Spec) (*Grammar, error) { return nil, errors.New("grammar: not yet") }
