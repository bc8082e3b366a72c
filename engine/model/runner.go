package model

import (
	"fmt"
	"slices"

	"baton/engine/kernel"
)

// Item is the part of one sequence in a step: a chunk of a prompt, or one token to decode.
type Item struct {
	Tokens []int32   // new tokens, in order
	Pos    int       // position of Tokens[0]; the KV of all earlier ones is in the blocks
	Table  []int32   // physical blocks of the sequence from its token 0, up to the last new one at least
	Prompt bool      // the tokens are of a prompt, whichever way it is cut: a level may compute them faster (kernel.HasTiles)
	Want   bool      // the logits of the last token are wanted
	All    bool      // the logits of every token are wanted; for tests, allocates
	Logits []float32 // out: [Vocab], or [len(Tokens)][Vocab] for All; nil if not wanted; valid until the runner's next Step
}

// span is what one thread stores or attends to at a time: rows of one item in one block.
type span struct {
	item, row, n, pos int // the item; first row of the step; rows; position of the first
}

// inputForms are the forms of activations that any layer's weights need.
type inputForms struct{ width, att, ffn kernel.Form }

// Runner runs steps over one pool. It owns the activations, which grow to the largest batch
// that it has seen and stay (M3) until Close. A Runner is used by one goroutine at a time.
type Runner struct {
	m        *Model
	kv       *KV
	team     *kernel.Team
	pages    kernel.Pages
	sliding  kernel.Pages         // pages as layers with a window see them
	together int                  // KV heads in a unit of attention
	step     func(*kernel.Worker) // r.forward, made once
	from     int                  // first layer of the run of the team under way, and
	to       int                  // the layer behind its last

	each  func(*kernel.Worker) // calls eachF for 0 to eachN-1, made once
	eachN int
	eachF func(i, thread int)

	closed bool // guarded by m.stepping

	// The batch of the step, rows of all items one after another, those of prompts first.
	items  []Item
	tiled  int     // rows of prompts, if they are computed in tiles
	ids    []int32 // [rows] token
	pos    []int32 // [rows] position
	of     []int32 // [rows] item
	rows   []int32 // [rows] 0, 1, 2, …
	spans  []span
	want   []int32 // rows whose logits are wanted, ascending
	single bool    // no item has more than one token: span i is row i
	forms  inputForms

	// Activations. The rows of y are as wide as the product that wrote it.
	x                             []float32 // [rows][Width] residual stream
	h                             []float32 // [rows][Width] normed
	y                             []float32 // [rows][width of the product]
	widest                        int       // of all products of a layer
	att                           []float32 // [rows][QWidth]
	cos, sin                      []float32 // [turns][rows][RopeDim/2]
	logits                        []float32 // [want][width of the head]
	inWidth, inAtt, inFFN, inHead kernel.Input
	scratch                       []kernel.AttendScratch // per worker
}

// NewRunner makes a runner over a pool of this model. Steps of all runners of a model take turns.
// Its activations lie outside the collector's heap: Close gives them back, or the model's Close.
func (m *Model) NewRunner(kv *KV) *Runner { return m.newRunner(kv, m.team) }

func (m *Model) newRunner(kv *KV, team *kernel.Team) *Runner {
	c := &m.config
	r := &Runner{m: m, kv: kv, team: team, scratch: make([]kernel.AttendScratch, team.Size())}
	r.pages = kernel.Pages{Layout: kv.layout, Base: kv.area, Heads: c.Heads, Scale: c.AttnScale, SoftCap: c.AttnCap}
	r.sliding = r.pages
	r.sliding.Window = c.Window
	for i := range m.weights.layers {
		l := &m.weights.layers[i]
		r.widest = max(r.widest, l.qkv.width, l.out.width, l.gateUp.width, l.down.width)
		r.forms.width |= l.qkv.forms | l.gateUp.forms
		r.forms.att |= l.out.forms
		r.forms.ffn |= l.down.forms
	}
	r.together = headsTogether(c)
	r.step = r.forward
	m.stepping.Lock()
	defer m.stepping.Unlock()
	m.runners = append(m.runners, r)
	return r
}

// Close gives the activations back, and with them the logits of the last Step. No Step may be
// under way. It is done at most once; later Steps return an error.
func (r *Runner) Close() {
	r.m.stepping.Lock()
	defer r.m.stepping.Unlock()
	r.m.runners = slices.DeleteFunc(r.m.runners, func(x *Runner) bool { return x == r })
	r.release()
}

// release gives back what grow took.
func (r *Runner) release() {
	r.closed = true
	for _, b := range []*[]float32{&r.x, &r.h, &r.y, &r.att, &r.cos, &r.sin, &r.logits} {
		kernel.Free(*b)
		*b = nil
	}
	for _, in := range []*kernel.Input{&r.inWidth, &r.inAtt, &r.inFFN, &r.inHead} {
		in.Free()
	}
	for i := range r.scratch {
		r.scratch[i].Free()
	}
}

// Step runs all items: their new tokens' keys and values are stored in their blocks and the
// wanted logits computed. Items may be chunks of prompts and single tokens in any mix; no two
// of them may be of one sequence. A row's result does not depend on the others (M1).
// An error means that nothing was computed or stored.
func (r *Runner) Step(items []Item) error {
	if err := r.plan(items); err != nil {
		return err
	}
	if len(r.ids) == 0 {
		return nil
	}
	r.m.stepping.Lock()
	defer r.m.stepping.Unlock()
	if r.closed || r.m.team == nil {
		return fmt.Errorf("model: step on a closed model or runner")
	}
	r.grow()
	r.items = items
	layers, run := len(r.m.weights.layers), len(r.m.weights.layers)
	if len(r.ids) >= longRows {
		run = 1
	}
	for r.from = 0; r.from < layers; r.from = r.to {
		r.to = min(r.from+run, layers)
		r.team.Run(r.step)
	}
	r.items = nil
	r.handOut(items)
	return nil
}

// longRows is from how many rows on each layer is a run of the team, which costs two microseconds
// more: with as many even a small model's layer takes hundreds, and a worker that was sent home for
// want of a processor comes back within the step.
const longRows = 32

// plan checks the items and lays their rows out.
func (r *Runner) plan(items []Item) error {
	r.ids, r.pos, r.of, r.rows = r.ids[:0], r.pos[:0], r.of[:0], r.rows[:0]
	r.spans, r.want, r.single = r.spans[:0], r.want[:0], true
	for _, prompts := range promptsFirst {
		for i := range items {
			if items[i].Prompt != prompts {
				continue
			}
			if err := r.lay(i, &items[i]); err != nil {
				return err
			}
		}
		if prompts {
			r.tiled = len(r.ids)
		}
	}
	if len(r.ids) > r.m.chunkMax {
		return fmt.Errorf("model: a step of %d tokens, at most %d", len(r.ids), r.m.chunkMax)
	}
	return nil
}

// promptsFirst is the order of items in the rows of a step.
var promptsFirst = [2]bool{true, false}

// lay appends the rows of an item.
func (r *Runner) lay(i int, it *Item) error {
	it.Logits = nil
	if err := r.check(i, it); err != nil {
		return err
	}
	r.single = r.single && len(it.Tokens) == 1
	for t := 0; t < len(it.Tokens); {
		n := min(len(it.Tokens)-t, BlockTokens-(it.Pos+t)%BlockTokens)
		r.spans = append(r.spans, span{i, len(r.ids) + t, n, it.Pos + t})
		t += n
	}
	for t, id := range it.Tokens {
		if it.All || it.Want && t == len(it.Tokens)-1 {
			r.want = append(r.want, int32(len(r.ids)))
		}
		r.rows = append(r.rows, int32(len(r.ids)))
		r.ids, r.pos, r.of = append(r.ids, id), append(r.pos, int32(it.Pos+t)), append(r.of, int32(i))
	}
	return nil
}

// inputs prepares the inputs of a layer for n rows, the first tiled of which are of prompts.
func (r *Runner) inputs(n, tiled int) {
	c := &r.m.config
	r.inWidth.Reset(n, c.Width, r.forms.width)
	r.inAtt.Reset(n, c.QWidth(), r.forms.att)
	r.inFFN.Reset(n, c.FFN, r.forms.ffn)
	if r.m.tiles {
		r.inWidth.Tile(tiled)
		r.inAtt.Tile(tiled)
		r.inFFN.Tile(tiled)
	}
}

// check compares an item with the model's and the pool's bounds.
func (r *Runner) check(i int, it *Item) error {
	c := &r.m.config
	if len(it.Tokens) == 0 {
		return fmt.Errorf("model: item %d has no tokens", i)
	}
	if it.Pos < 0 || len(it.Tokens) > c.Context || it.Pos > c.Context-len(it.Tokens) {
		return fmt.Errorf("model: item %d has tokens at positions %d to %d, the model's context ends at %d", i, it.Pos, it.Pos+len(it.Tokens)-1, c.Context-1)
	}
	need := (it.Pos + len(it.Tokens) + BlockTokens - 1) / BlockTokens
	if len(it.Table) < need {
		return fmt.Errorf("model: item %d has %d blocks, its %d tokens need %d", i, len(it.Table), it.Pos+len(it.Tokens), need)
	}
	for _, b := range it.Table[:need] {
		if b < 0 || int(b) >= r.kv.blocks {
			return fmt.Errorf("model: item %d names block %d, the pool has %d", i, b, r.kv.blocks)
		}
	}
	for _, id := range it.Tokens {
		if id < 0 || int(id) >= c.Rows {
			return fmt.Errorf("model: item %d has token %d, the vocabulary ends at %d", i, id, c.Rows-1)
		}
	}
	return nil
}

// grow makes room for the planned step.
func (r *Runner) grow() {
	c, w, n := &r.m.config, &r.m.weights, len(r.ids)
	turned := len(r.m.turns) * n * c.RopeDim / 2
	r.x, r.h = kernel.Sized(r.x, n*c.Width), kernel.Sized(r.h, n*c.Width)
	r.att = kernel.Sized(r.att, n*c.QWidth())
	r.cos, r.sin = kernel.Sized(r.cos, turned), kernel.Sized(r.sin, turned)
	r.logits = kernel.Sized(r.logits, len(r.want)*w.head.width)
	r.y = kernel.Sized(r.y, n*r.widest)
	r.inputs(n, r.tiled)
	if len(r.want) > 0 {
		r.inHead.Reset(len(r.want), c.Width, w.head.forms)
	}
	tokens := 0
	for _, p := range r.pos {
		tokens = max(tokens, int(p)+1)
	}
	for i := range r.scratch {
		r.scratch[i].Grow(tokens, c.HeadDim)
	}
}

// handOut points the items at their logits.
func (r *Runner) handOut(items []Item) {
	vocab, width := r.m.config.Vocab, r.m.weights.head.width
	at := 0
	row := func() []float32 {
		l := r.logits[at*width:][:vocab:vocab]
		at++
		return l
	}
	for _, prompts := range promptsFirst {
		for i := range items {
			it := &items[i]
			switch {
			case it.Prompt != prompts:
			case it.All:
				it.Logits = make([]float32, 0, len(it.Tokens)*vocab)
				for range it.Tokens {
					it.Logits = append(it.Logits, row()...)
				}
			case it.Want:
				it.Logits = row()
			}
		}
	}
}
