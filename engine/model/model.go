package model

import "baton/engine/weights/gguf"

// DType is how a cached key or value is stored.
type DType uint8

const (
	BF16 DType = iota // the default: half the memory and half the bytes to move
	F32               // the oracle's
)

// Options are the choices of Open.
type Options struct {
	KV             DType                   // of the KV cache
	Threads        int                     // of a step; 0 means one per CPU that this process may use
	ChunkTokensMax int                     // most tokens in one Step; 0 means ChunkTokens
	Exact          bool                    // weights become float32 and activations stay so: the oracle, slow
	Progress       func(done, total int64) // called now and then while weights are repacked, in bytes of the file
}

// Model is a loaded model.
type Model struct{}

// Open reads f. f must stay open until Close.
func Open(f *gguf.File, o Options) (*Model, error) { panic("not yet") }

func (m *Model) Config() *Config          { panic("not yet") }
func (m *Model) Manifest() Manifest       { panic("not yet") }
func (m *Model) NewKV(blocks int) *KV     { panic("not yet") }
func (m *Model) NewRunner(kv *KV) *Runner { panic("not yet") }
func (m *Model) Close() error             { panic("not yet") }

// KV is a pool of blocks.
type KV struct{}

func (k *KV) Block(i int32) []byte { panic("not yet") }
func (k *KV) Blocks() int          { panic("not yet") }
func (k *KV) BlockBytes() int      { panic("not yet") }

// Item is the part of one sequence in a step.
type Item struct {
	Tokens []int32   // new tokens, in order
	Pos    int       // position of Tokens[0]
	Table  []int32   // physical blocks of the sequence from its token 0, up to the last new one at least
	Want   bool      // the logits of the last token are wanted
	All    bool      // the logits of every token are wanted, [len(Tokens)][Vocab]; for tests
	Logits []float32 // out: valid until the next Step of the runner, nil if not wanted
}

// Runner runs steps.
type Runner struct{}

// Step runs all items.
func (r *Runner) Step(items []Item) error { panic("not yet") }

// Bench measures.
func Bench(m *Model, test string, threads int) (tokensPerSecond float64) { panic("not yet") }
