package worker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"baton/core/blocks"
	"baton/core/room"
	"baton/serve/observe"
)

// prefixes makes the keys by which a core finds KV that it has computed before.
//
// The keys are a chain of SHA-256: whoever could make two prompts with one key would be handed
// the KV of somebody else's, and of faster sums such pairs can be made on purpose. The chain
// begins with a salt of this process and with the request's own. The first is random and never
// leaves the process, so that keys in a trace say of prompts only which begin alike, and nobody can
// choose prompts whose keys fall into one chain of the index; of two requests with different salts
// of their own neither can find, or by its speed tell, what the other has left.
type prefixes struct {
	salt [sha256.Size]byte
}

// evictions counts the blocks of a core's cache that gave way.
type evictions struct{ known uint64 }

// note brings the metrics to what the core says.
func (x *evictions) note(m *observe.Metrics, now uint64) {
	if now != x.known {
		m.Evicted.Add(float64(now - x.known))
		x.known = now
	}
}

// found counts the prompt tokens that the first step of a room need not compute.
func (w *Worker) found(tokens int32) {
	if tokens > 0 {
		w.metrics.PrefixHits.Inc()
		w.metrics.Cached.Add(float64(tokens))
	}
}

// newPrefixes returns the keys of one life of a worker, nil for one that is to find nothing.
func newPrefixes(c *Config) *prefixes {
	if c.NoPrefixCache {
		return nil
	}
	p := &prefixes{}
	rand.Read(p.salt[:]) // never fails (crypto/rand)
	return p
}

// keys returns the keys of a prompt's complete blocks, and the chain that goes on behind them; nil
// for what is not to be found.
func (p *prefixes) keys(salt string, tokens []int32) ([]blocks.Key, *chain) {
	if p == nil {
		return nil, nil
	}
	c := &chain{sum: sha256.Sum256(append(p.salt[:len(p.salt):len(p.salt)], salt...))} // of a fixed length, so nothing runs into the tokens
	n := len(tokens) / room.BlockTokens
	if n == 0 {
		return nil, c
	}
	keys := make([]blocks.Key, n)
	for i := range keys {
		keys[i] = c.next(tokens, (i+1)*room.BlockTokens)
	}
	return keys, c
}

// chain makes the keys of a text that grows, block by block. nil makes none.
type chain struct {
	sum    [sha256.Size]byte // behind the blocks so far
	blocks int
}

// next returns the key of tokens up to to if that is the end of the block behind the last one that
// has a key; zero otherwise.
func (c *chain) next(tokens []int32, to int) (k blocks.Key) {
	if c == nil || to != (c.blocks+1)*room.BlockTokens {
		return k
	}
	var b [sha256.Size + 4*room.BlockTokens]byte
	at := append(b[:0], c.sum[:]...)
	for _, t := range tokens[to-room.BlockTokens : to] {
		at = binary.LittleEndian.AppendUint32(at, uint32(t))
	}
	c.sum = sha256.Sum256(at)
	c.blocks++
	copy(k[:], c.sum[:])
	return k
}
