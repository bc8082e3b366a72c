package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/core/decode"
	"baton/core/room"
	"baton/engine/checkpoint"
	"baton/engine/kernel"
	"baton/engine/model"
	"baton/engine/sample"
	"baton/engine/tokenizer"
	"baton/transfer"
)

// Engine computes, and owns the pool of KV blocks. One goroutine calls Step; Block is called by
// the link's goroutines for blocks that no step is using.
type Engine interface {
	transfer.Memory
	// Step runs all items and fills the logits of those that want them, valid until the next
	// Step. After an error every room of the step has failed.
	Step(items []model.Item) error
	Blocks() int
	// Close gives the pool and the weights back; nothing may be called afterwards.
	Close() error
}

// Crew is an Engine that lends its threads between two steps.
type Crew interface {
	// Each calls f for 0 to n-1, several at a time, with the number of the thread, which is below
	// Threads.
	Each(n int, f func(i, thread int))
	Threads() int
}

// Served is a loaded model with its pool.
type Served struct {
	Engine    Engine
	Tokenizer *tokenizer.Tokenizer
	Name      string
	Vocab     int    // logits of a position
	Context   int    // most tokens of prompt and output together
	StepBytes int64  // of weights that one step reads; 0: not known
	Manifest  []byte // what the bytes of a block mean; equal on both ends of a link
}

// Load opens the model of c, which must have its defaults and have passed Check.
func Load(c Config) (*Served, error) {
	p, err := checkpoint.Open(c.Model)
	if err != nil {
		return nil, fmt.Errorf("worker: model: %w", err)
	}
	s, err := load(c, p)
	if err != nil {
		p.Close()
		return nil, err
	}
	return s, nil
}

func load(c Config, p *checkpoint.Checkpoint) (*Served, error) {
	kv, err := kernel.ParseKVType(c.Sizes.KV)
	if err != nil {
		return nil, fmt.Errorf("worker: kv: %w", err)
	}
	m, err := p.Load(model.Options{KV: kv, Threads: c.Sizes.Threads, ChunkTokensMax: c.Sizes.ChunkTokens + c.Sizes.MaxRunning,
		Deterministic: c.Deterministic, Progress: c.Loading})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if b := m.Brought(); b != "" {
		c.Log.Info("weights brought to formats that have kernels", "detail", b)
	}
	if notes := kernel.Notes(); len(notes) > 0 {
		c.Log.Info("kernels that this machine could have are not used", "detail", strings.Join(notes, "; "))
	}
	manifest, cfg := m.Manifest(), m.Config()
	blocks, err := poolBlocks(c, manifest.BlockBytes, cfg.Context, availableBytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	pool, err := m.NewKV(blocks)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("worker: model %s: %w", p.Name, err)
	}
	return &Served{
		Engine:    &engine{pool, m.NewRunner(pool), m, p},
		Tokenizer: p.Tokenizer, Name: p.Name, Vocab: cfg.Vocab,
		// A prompt and its output must fit into the pool, else they could never run.
		Context:   min(cfg.Context, blocks*room.BlockTokens, room.TokensMax),
		StepBytes: m.StepBytes(), Manifest: manifest.Bytes(),
	}, nil
}

// kvType is the type of a name that Check has passed.
func kvType(name string) model.DType {
	t, err := kernel.ParseKVType(name)
	if err != nil {
		panic("worker: " + err.Error())
	}
	return t
}

// engine is the real Engine.
type engine struct {
	*model.KV
	*model.Runner
	model      *model.Model
	checkpoint *checkpoint.Checkpoint
}

func (e *engine) Threads() int { return e.model.Threads() }

func (e *engine) Close() error {
	e.KV.Close()
	return errors.Join(e.model.Close(), e.checkpoint.Close())
}

// job is one engine step on its way to the engine and back. The entries in it are lent: the
// core ends no room that has a step in flight. A worker has one, used again for every step.
type job struct {
	copies  []decode.Copy // of blocks, before the step
	items   []model.Item
	parts   []part          // same order
	results []decode.Result // same order; of a decode node
	err     error
	took    time.Duration
	back    input // brings it home
}

// part is what one room puts into a step and gets from it.
type part struct {
	room     room.ID
	entry    *entry
	branch   int32
	generate bool // a token of the running output: push it into the sequence
	again    bool // of a room that was retracted
	sums     bool // blocks filled here will be moved
	dead     bool // generate: no token was allowed
	unsound  bool // what the model computed is no number; see sound
	id       int32
	piece    sample.Piece
	firsts   []sample.Choice // not generate, the last of the prompt: the first token of each choice
	sum      []uint64        // of the blocks of Tokens, in order
}

// clear makes the job ready for n items and lets go of what the last step held.
func (j *job) clear(n int) {
	clear(j.items)
	clear(j.parts)
	j.items, j.parts, j.results, j.copies, j.err = slices.Grow(j.items[:0], n)[:n], slices.Grow(j.parts[:0], n)[:n], j.results[:0], nil, nil
}

// eachMin is how many logits there must be to look at for more than one thread to be worth its while:
// what one looks at in some microseconds.
const eachMin = 1 << 13

// compute runs steps until jobs is closed.
func (w *Worker) compute() {
	defer close(w.computed)
	crew, _ := w.served.Engine.(Crew)
	threads := 1
	if crew != nil {
		threads = crew.Threads()
	}
	scratch := make([]sample.Scratch, threads)
	harvest := func(i, thread int) { w.harvest(&w.job.items[i], &w.job.parts[i], &scratch[thread]) }
	for j := range w.jobs {
		began := w.now()
		w.stepping.Store(int64(began) + 1)
		for _, c := range j.copies {
			copy(w.served.Engine.Block(c.To), w.served.Engine.Block(c.From))
		}
		j.err = w.served.Engine.Step(j.items)
		switch {
		case j.err != nil:
		case crew == nil || len(j.items)*w.served.Vocab < eachMin:
			for i := range j.items {
				harvest(i, 0)
			}
		default:
			crew.Each(len(j.items), harvest)
		}
		j.took = w.now() - began
		w.stepping.Store(0)
		j.back = input{step: j}
		w.send(&j.back)
	}
}

// harvest takes from a finished item what must be taken before the next step (W5).
func (w *Worker) harvest(it *model.Item, p *part, scratch *sample.Scratch) {
	switch {
	case it.Want && !sound(it.Logits):
		p.unsound = true
	case it.Want && p.generate:
		seq := p.entry.branches[p.branch].seq
		c := seq.Pick(it.Logits, scratch)
		piece, ok := sample.Piece{}, false
		if c.ID != sample.NoToken {
			piece, ok = seq.Push(c)
		}
		p.id, p.piece, p.dead = c.ID, piece, !ok
	case it.Want:
		for i := range p.entry.branches {
			c := p.entry.branches[i].seq.Pick(it.Logits, scratch)
			c.Top = append([]sample.TopLogprob(nil), c.Top...) // the scratch's until the next Pick
			p.firsts = append(p.firsts, c)
		}
	}
	if p.sums {
		to := it.Pos + len(it.Tokens)
		for _, b := range it.Table[it.Pos/room.BlockTokens : room.BlocksFor(to)] {
			p.sum = append(p.sum, transfer.Sum(w.served.Engine.Block(b)))
		}
	}
}
