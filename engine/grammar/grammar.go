package grammar

import (
	"fmt"
	"sync"
	"sync/atomic"

	"baton/engine/tokenizer"
)

// Grammar is a compiled Spec for one vocabulary. It is safe for use by several goroutines: its
// states share what was computed once.
type Grammar struct {
	words int
	begin *live
	fixed int64        // bytes of the automaton
	kept  atomic.Int64 // bytes of what was found of it

	mu sync.Mutex
	m  matcher // guarded by mu
}

// Compile builds the automaton of s over the tokens of tok for which there are logits: those with
// ids below logits. s must have passed Validate; the
// error says what Validate would, or what the vocabulary lacks. It takes milliseconds to tens of
// them (the vocabulary is put in order each time: who compiles often uses a Cache), so it does
// not belong on the loop of a worker.
func Compile(s *Spec, tok *tokenizer.Tokenizer, logits int) (*Grammar, error) {
	return compile(s, newVocabulary(tok, logits))
}

func compile(s *Spec, v *vocabulary) (*Grammar, error) {
	n := newNet()
	if err := s.build(n); err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	if len(v.ends) == 0 {
		return nil, fmt.Errorf("grammar: the vocabulary has no end token, so an answer could not end")
	}
	has, marks := v.has, make([]int32, len(n.marks))
	for i, name := range n.marks {
		id, ok := v.control[name]
		if has[markByte+i] = ok; !ok {
			id = -1
		}
		marks[i] = id
	}
	m, err := n.settle(&has)
	if err != nil {
		if _, without := n.settle(allBytes()); without == nil {
			err = fmt.Errorf("%s: every text that fits needs bytes for which the vocabulary has no tokens", s.Kind)
		}
		return nil, fmt.Errorf("grammar: %w", err)
	}
	g := &Grammar{words: v.words, m: matcher{machine: m, vocabulary: v, marks: marks, found: make(bitmap, v.words)}}
	g.begin = m.begin()
	const node, edge, eps, rule, working = 32, 12, 4, 40, 16 << 10
	g.fixed = int64(node*cap(m.nodes) + edge*cap(m.edges) + eps*cap(m.eps) + rule*cap(m.rules) + 8*v.words + working)
	g.kept.Store(int64(m.kept))
	return g, nil
}

// Words returns the length of a mask of this state.
func (s *State) Words() int { return s.g.words }

func (g *Grammar) unlock() {
	g.kept.Store(int64(g.m.kept))
	g.mu.Unlock()
}

// Words returns the length that a mask needs: a bit per token of the vocabulary.
func (g *Grammar) Words() int { return g.words }

// Start returns the state before the first token.
func (g *Grammar) Start() *State { return &State{g: g, at: g.begin} }

// State is where a generation stands in its grammar. It depends on the tokens pushed alone: who
// pushes the same ids into a Grammar of the same Spec and vocabulary, anywhere, has the same
// state. One goroutine at a time.
type State struct {
	g     *Grammar
	at    *live
	ended bool // an end token was pushed
}

// Allowed writes the mask of the tokens that may follow: bit id%64 of mask[id/64]. End tokens
// are set exactly where the text so far is complete; other control tokens never. mask has
// Words() words at least, those beyond are cleared. Before the end at least one bit is set; after
// an end token was pushed none is (G1). In a state that was met before it allocates nothing (G5).
func (s *State) Allowed(mask []uint64) {
	clear(mask)
	if s.ended {
		return
	}
	s.g.mu.Lock()
	defer s.g.unlock()
	m := &s.g.m
	m.tidy()
	s.at = m.masked(s.at)
	if s.at.mask != nil {
		copy(mask, s.at.mask)
	}
	for _, id := range s.at.few {
		bitmap(mask).add(id)
	}
	if s.at.accept {
		for _, id := range m.ends {
			bitmap(mask).add(id)
		}
	}
}

// Push moves on by a token. False, and no change, if it was not allowed (G2).
func (s *State) Push(id int32) bool {
	if s.ended {
		return false
	}
	s.g.mu.Lock()
	defer s.g.unlock()
	m := &s.g.m
	for _, e := range m.ends {
		if e == id {
			s.ended = s.at.accept
			return s.ended
		}
	}
	m.tidy()
	at := m.adopt(s.at)
	for i, k := range m.marks {
		if k == id {
			if at = m.step(at, m.class[markByte+i]); at != &dead {
				s.at = at
			}
			return at != &dead
		}
	}
	text := m.vocabulary.text(id)
	if text == "" {
		return false
	}
	for i := range len(text) {
		if at = m.step(at, m.class[text[i]]); at == &dead {
			return false
		}
		at = m.adopt(at) // a state of before may lead to others of before
	}
	s.at = at
	return true
}

// Done says whether nothing but an end token may follow (or one was pushed already).
func (s *State) Done() bool { return s.ended || s.at.accept && len(s.at.places) == 0 }

// Clone returns an independent copy: for the next choice of the same prompt.
func (s *State) Clone() *State {
	c := *s
	return &c
}

// size is about how many bytes g takes. It grows with use, up to keptMost and what one mask adds.
// It waits for nobody.
func (g *Grammar) size() int64 { return g.fixed + g.kept.Load() }
