package grammar

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"baton/engine/tokenizer"
)

const (
	// cacheMost is how many grammars a Cache keeps: as many as requests that a worker runs at a
	// time, each with a schema of its own, and some.
	cacheMost = 64
	// cacheBytesMost bounds them by their size; a usual one takes some 100 KiB, one with everything
	// at its bounds 20 MiB.
	cacheBytesMost = 256 << 20
)

// Cache keeps the grammars that a worker used last. It is safe for use by several goroutines;
// two that ask for one Spec at the same time compile it once.
type Cache struct {
	v *vocabulary

	mu           sync.Mutex
	byKey        map[key]*list.Element // guarded by mu
	order        list.List             // guarded by mu; of *entry, the last used in front
	hits, misses uint64                // guarded by mu
}

type key [sha256.Size]byte

// ErrBroken is the error of a Spec at which compiling broke down before.
var ErrBroken = errors.New("grammar: compiling it has failed, which is a mistake of ours")

type entry struct {
	key  key
	once sync.Once
	g    *Grammar // set by once
	err  error
	kept *Grammar // guarded by the Cache's mu: g, once it is known
}

// NewCache returns a cache of grammars over the tokens of tok with ids below logits (see Compile). It puts the vocabulary in order
// (tens to hundreds of milliseconds), once for all that it compiles.
func NewCache(tok *tokenizer.Tokenizer, logits int) *Cache {
	return newCache(newVocabulary(tok, logits))
}

func newCache(v *vocabulary) *Cache { return &Cache{v: v, byKey: map[key]*list.Element{}} }

// Get returns the grammar of s, compiled now or before. It refuses what Validate does, and what
// the vocabulary cannot write. It may take milliseconds to tens of them: not for the loop of a
// worker.
func (c *Cache) Get(s *Spec) (*Grammar, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	e := c.entry(sha256.Sum256(text))
	e.once.Do(func() {
		e.err = ErrBroken // if compile panics, this stands: no grammar at all would be no form at all
		e.g, e.err = compile(s, c.v)
	})
	c.settle(e)
	return e.g, e.err
}

// Known returns the grammar of s if it has been compiled. It never waits for one that is being
// compiled, and takes as long as s is to print.
func (c *Cache) Known(s *Spec) (*Grammar, bool) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[sha256.Sum256(text)]
	if !ok || at.Value.(*entry).kept == nil {
		return nil, false
	}
	c.hits++
	c.order.MoveToFront(at)
	return at.Value.(*entry).kept, true
}

// Stats says how many grammars are kept, about how many bytes they take, and how often one was
// found, or not.
func (c *Cache) Stats() (entries int, bytes int64, hits, misses uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len(), c.bytes(), c.hits, c.misses
}

func (c *Cache) bytes() (n int64) {
	for at := c.order.Front(); at != nil; at = at.Next() {
		if g := at.Value.(*entry).kept; g != nil {
			n += g.size()
		}
	}
	return n
}

func (c *Cache) entry(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.byKey[k]; ok {
		c.hits++
		c.order.MoveToFront(at)
		return at.Value.(*entry)
	}
	c.misses++
	e := &entry{key: k}
	c.byKey[k] = c.order.PushFront(e)
	return e
}

// settle notes what came of e and keeps the bounds. What is refused is not kept.
func (c *Cache) settle(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.kept = e.g; e.err != nil {
		c.drop(e)
	}
	for c.order.Len() > cacheMost || c.order.Len() > 1 && c.bytes() > cacheBytesMost {
		c.drop(c.order.Back().Value.(*entry))
	}
}

func (c *Cache) drop(e *entry) {
	if at, ok := c.byKey[e.key]; ok && at.Value == e {
		delete(c.byKey, e.key)
		c.order.Remove(at)
	}
}
