package model

import (
	"fmt"
	"runtime"
	"sync"

	"baton/engine/kernel"
	"baton/engine/tokenizer"
	"baton/engine/weights"
	"baton/engine/weights/gguf"
)

// DType is how a cached key or value is stored.
type DType = kernel.KVType

const (
	BF16 = kernel.KVBF16 // the default: half the memory and half the bytes to move
	F32  = kernel.KVF32  // the oracle's
	Q8_0 = kernel.KVQ8_0 // about half of bf16: int8 with a scale per 32 numbers
)

// ChunkTokens is the default of Options.ChunkTokensMax: long enough that the arithmetic and not
// the reading of weights decides the speed of prefill, short enough that a decode token which
// shares the step does not wait long.
const ChunkTokens = 512

// chunkTokensMost bounds Options.ChunkTokensMax; a Runner's buffers grow with it.
const chunkTokensMost = 16384

// Options are the choices of Open.
type Options struct {
	KV             DType                   // of the KV cache
	Threads        int                     // of a step; 0 means one per CPU that this process may use
	ChunkTokensMax int                     // most tokens in one Step; 0 means ChunkTokens
	Exact          bool                    // weights become float32 and activations stay so: the oracle, slow
	Progress       func(done, total int64) // called after each matrix that was repacked, in bytes of the file
	// Tokenizer says which ids can be drawn and is part of the manifest; nil means the file's own,
	// which only GGUF files have.
	Tokenizer *tokenizer.Tokenizer
	// Deterministic uses one family of kernels for every step, prompts included, and names it in the manifest.
	Deterministic bool
}

// Model is a loaded model. Its methods may be called from several goroutines, but for Close.
type Model struct {
	config   Config
	weights  parameters
	layout   kernel.KVLayout
	manifest Manifest
	turns    []turn // how heads turn: in all layers, or in those that see everything and in those that slide
	rope     func(x, cos, sin []float32)
	chunkMax int
	tiles    bool // prompts are computed in tiles

	stepping sync.Mutex // a team runs one step at a time
	team     *kernel.Team
	runners  []*Runner // not closed
}

// Open reads f, checks all of it and repacks its weights. f must stay open until Close: token
// embeddings may be looked up in it. An error names the key or tensor that is wrong.
func Open(f weights.File, o Options) (*Model, error) {
	if err := kernel.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if o.Threads == 0 {
		o.Threads = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	if o.Threads < 1 || o.Threads > kernel.TeamMax {
		return nil, fmt.Errorf("model: %d threads, want 1 to %d, or 0 for one per CPU", o.Threads, kernel.TeamMax)
	}
	if o.ChunkTokensMax == 0 {
		o.ChunkTokensMax = ChunkTokens
	}
	if o.ChunkTokensMax < BlockTokens || o.ChunkTokensMax > chunkTokensMost {
		return nil, fmt.Errorf("model: chunks of %d tokens, want %d to %d", o.ChunkTokensMax, BlockTokens, chunkTokensMost)
	}
	c, err := ReadConfig(f)
	if err != nil {
		return nil, err
	}
	if err := checkTensors(f, &c); err != nil {
		return nil, err
	}
	m := &Model{config: c, chunkMax: o.ChunkTokensMax}
	m.layout = kernel.KVLayout{Layers: c.Layers, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Type: o.KV}
	if err := m.layout.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	tok, err := tokenizerDigest(f, o.Tokenizer, &c)
	if err != nil {
		return nil, err
	}
	m.config.Vocab = c.Vocab
	m.manifest = m.describe(f.Digest(), tok)
	m.tiles = kernel.HasTiles() && !o.Deterministic
	if o.Deterministic {
		m.manifest.Kernels = kernel.Family().String()
	}
	if err := m.weights.load(f, &c, o); err != nil {
		m.weights.arena.release()
		return nil, err
	}
	m.turns = []turn{newTurn(&c, &c.Angles, m.weights.divisor)}
	if c.Local != c.Angles {
		m.turns = append(m.turns, newTurn(&c, &c.Local, nil))
	}
	m.rope = kernel.RopeInterleaved
	if c.RopeStyle == Half {
		m.rope = kernel.RopeHalf
	}
	m.team = kernel.NewTeam(o.Threads)
	return m, nil
}

// rowlessMax is how many tokens may have no row: Gemma's tokenizer.json has one more than its text
// models, for images. They can be neither read nor drawn.
const rowlessMax = 16

// tokenizerDigest is 0 for a file that has no tokenizer at all, as synthetic ones for tests. It
// lowers c.Vocab to the tokens that there are: rows beyond them are padding, which must never be
// drawn.
func tokenizerDigest(f weights.File, t *tokenizer.Tokenizer, c *Config) (uint64, error) {
	if g, ok := f.(*gguf.File); t == nil && ok && g.Kind("tokenizer.ggml.model") != "" {
		var err error
		if t, err = tokenizer.FromGGUF(g); err != nil {
			return 0, fmt.Errorf("model: %w", err)
		}
	}
	if t == nil {
		return 0, nil
	}
	if t.Vocab() > c.Rows+rowlessMax {
		return 0, fmt.Errorf("model: the tokenizer has %d tokens but the embedding only %d rows: they are not of one model", t.Vocab(), c.Rows)
	}
	c.Vocab = min(c.Vocab, t.Vocab())
	return t.Digest(), nil
}

func (m *Model) describe(model, tok uint64) Manifest {
	pool := func(name string) Pool {
		l := m.layout
		return Pool{Name: name, Kind: "paged", Layers: l.Layers, Heads: l.KVHeads, HeadDim: l.HeadDim, Rows: BlockTokens,
			RowBytes: l.RowBytes(), DType: l.Type.String()}
	}
	return Manifest{
		Version: manifestVersion, Pools: []Pool{pool("k"), pool("v")},
		BlockTokens: BlockTokens, BlockBytes: m.layout.BlockBytes(), Rope: m.config.RopeStyle,
		Model: fmt.Sprintf("%016x", model), Tokenizer: fmt.Sprintf("%016x", tok),
	}
}

// Config returns the model's shape. It belongs to the model.
func (m *Model) Config() *Config { return &m.config }

// Manifest says what the bytes of this model's KV blocks mean.
func (m *Model) Manifest() Manifest { return m.manifest }

// Brought says which tensors were brought to a format that has kernels, as "29 × F16 as F32";
// "" if all were taken as they are.
func (m *Model) Brought() string { return m.weights.brought }

// StepBytes returns how many bytes of weights a step reads: every matrix once, rows of embeddings
// not counted.
func (m *Model) StepBytes() (n int64) {
	count := func(p *product) {
		for _, x := range p.mats {
			n += int64(x.Bytes())
		}
	}
	count(&m.weights.head)
	for i := range m.weights.layers {
		l := &m.weights.layers[i]
		for _, p := range []*product{&l.qkv, &l.out.product, &l.gateUp, &l.down.product} {
			count(p)
		}
	}
	return n
}

// Threads returns how many threads a step has.
func (m *Model) Threads() int { return m.team.Size() }

// ChunkTokensMax returns the most tokens that one Step takes.
func (m *Model) ChunkTokensMax() int { return m.chunkMax }

// Close ends the threads and gives the weights and the activations of all runners back. No Step
// may be under way. Pools have a Close of their own.
func (m *Model) Close() error {
	m.stepping.Lock()
	defer m.stepping.Unlock()
	if m.team != nil {
		m.team.Close()
		m.weights.arena.release()
		for _, r := range m.runners {
			r.release()
		}
		m.runners = nil
		m.team = nil
	}
	return nil
}
