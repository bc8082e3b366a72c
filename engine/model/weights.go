package model

import (
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"baton/engine/kernel"
	"baton/engine/weights"
)

// product is one or more matrices that multiply the same activations. Matrices of one format
// are packed as one; others stand side by side, so that a step still splits all panels of the
// product among its threads in one go.
type product struct {
	mats   []*kernel.Matrix
	at     []int // of each matrix: first column of its results in a row of y
	panels int   // of all matrices
	width  int   // of a row of y: the padded rows of all matrices
	forms  kernel.Form
}

// output is a product that is added to the residual stream.
type output struct {
	product
	bias []float32 // [Width], or nil
	post []float32 // [Width] norm of what is added, or nil
}

// layer holds the weights of one transformer layer. What the architecture has not is nil.
type layer struct {
	attnNorm, ffnNorm   []float32 // [Width]
	qNorm, kNorm        []float32 // [HeadDim]
	qkvBias, gateUpBias []float32 // [QWidth+2*KVWidth], [2*FFN]
	qkv, gateUp         product
	out, down           output
}

// parameters holds everything that is read from the file at load.
type parameters struct {
	embed   embedding
	norm    []float32 // [Width]
	head    product
	divisor []float32 // rope_freqs.weight, or nil
	layers  []layer
	arena   arena
	brought string // what was done to tensors whose format has no kernel, "" if there were none
}

// embedding looks tokens up: in the packed output matrix if that holds the same numbers, so that
// the file's copy needs no memory, else in the file.
type embedding struct {
	packed *kernel.Matrix // nil: in the file
	tensor weights.Tensor
	file   weights.File
	looked atomic.Int64 // rows since the file's pages were given back
}

// lookedMax is how many rows are looked up before the pages that they lie on are given back: each
// takes 64 KiB at most, as the system maps neighbours along.
const lookedMax = 256

func (e *embedding) row(dst []float32, id int) {
	if e.packed != nil {
		e.packed.Row(dst, id)
		return
	}
	mustDequant(dst, e.tensor.Type, e.tensor.Row(id))
	if e.looked.Add(1)%lookedMax == 0 {
		e.file.Release(e.tensor.Data)
	}
}

// arena hands out pieces of a few large areas, so that weights lie in huge pages.
type arena struct {
	mu    sync.Mutex
	free  []byte
	areas [][]byte
	next  int // size of the next area
}

// arenaBytesMin is the smallest area: 16 huge pages.
const arenaBytesMin = 32 << 20

// alignBytes keeps every matrix on a cache line.
const alignBytes = 64

func (a *arena) alloc(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = (n + alignBytes - 1) / alignBytes * alignBytes
	if n > len(a.free) {
		area := kernel.Alloc(max(n, a.next))
		a.next = arenaBytesMin
		a.areas = append(a.areas, area)
		a.free = area
	}
	b := a.free[:n:n]
	a.free = a.free[n:]
	return b
}

func (a *arena) release() {
	for _, b := range a.areas {
		kernel.Free(b)
	}
	a.areas, a.free = nil, nil
}

// packing is one product to be packed.
type packing struct {
	dst   *product
	names []string
}

// load packs every matrix of the file, several at a time, and calls progress after each.
func (w *parameters) load(f weights.File, c *Config, o Options) error {
	t := tensors{f, c}
	w.embed.tensor, w.embed.file = t.get("token_embd.weight"), f
	w.norm = t.norm("output_norm.weight")
	if c.RopeFreqs {
		w.divisor = t.vector("rope_freqs.weight")
		for i, d := range w.divisor {
			if !(d > 0) {
				return fmt.Errorf("model: tensor rope_freqs.weight: divisor %d is %g, want more than 0", i, d)
			}
		}
	}
	head := "output.weight"
	if c.Tied {
		head = "token_embd.weight"
	}
	w.layers = make([]layer, c.Layers)
	jobs := []packing{{&w.head, []string{head}}}
	for i := range w.layers {
		l, p := &w.layers[i], layerName(i)
		l.vectors(t, p)
		jobs = append(jobs,
			packing{&l.qkv, []string{p + "attn_q.weight", p + "attn_k.weight", p + "attn_v.weight"}},
			packing{&l.out.product, []string{p + "attn_output.weight"}},
			packing{&l.gateUp, []string{p + "ffn_gate.weight", p + "ffn_up.weight"}},
			packing{&l.down.product, []string{p + "ffn_down.weight"}})
	}
	if err := w.packAll(t, jobs, o); err != nil {
		return err
	}
	if s := newSource(w.embed.tensor, o.Exact); c.Tied && s.same {
		w.embed.packed = w.head.mats[0]
	}
	return nil
}

// vectors reads norms and biases of the layer with that prefix.
func (l *layer) vectors(t tensors, p string) {
	l.attnNorm, l.ffnNorm = t.norm(p+"attn_norm.weight"), t.norm(p+"ffn_norm.weight")
	if t.c.QKNorm {
		l.qNorm, l.kNorm = t.norm(p+"attn_q_norm.weight"), t.norm(p+"attn_k_norm.weight")
	}
	if t.c.PostNorms {
		l.out.post, l.down.post = t.norm(p+"post_attention_norm.weight"), t.norm(p+"post_ffw_norm.weight")
	}
	if t.c.QKVBias {
		l.qkvBias = slices.Concat(t.vector(p+"attn_q.bias"), t.vector(p+"attn_k.bias"), t.vector(p+"attn_v.bias"))
	}
	if t.c.OutBias {
		l.out.bias = t.vector(p + "attn_output.bias")
	}
	if t.c.MLPBias {
		l.gateUpBias = slices.Concat(t.vector(p+"ffn_gate.bias"), t.vector(p+"ffn_up.bias"))
		l.down.bias = t.vector(p + "ffn_down.bias")
	}
}

// packAll runs the jobs on as many goroutines as the machine has processors.
func (w *parameters) packAll(t tensors, jobs []packing, o Options) error {
	var total, done int64
	for _, j := range jobs {
		total += j.bytes(t)
	}
	// Packed sizes equal those in the file, but for formats that are brought to another one.
	w.arena.next = int(total) + len(jobs)*3*alignBytes
	if o.Exact {
		w.arena.next = arenaBytesMin
	}
	var (
		mu    sync.Mutex
		first error
		how   = map[string]int{}
		wg    sync.WaitGroup
		work  = make(chan packing)
	)
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for j := range work {
				notes, err := j.pack(t, o.Exact, &w.arena)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				for _, n := range notes {
					how[n]++
				}
				done += j.bytes(t)
				if o.Progress != nil {
					o.Progress(done, total)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		work <- j
	}
	close(work)
	wg.Wait()
	w.brought = describe(how)
	return first
}

func (j packing) bytes(t tensors) (n int64) {
	for _, name := range j.names {
		n += int64(len(t.get(name).Data))
	}
	return n
}

// pack packs one product and says what was done to tensors that were not taken as they are.
func (j packing) pack(t tensors, exact bool, a *arena) (notes []string, err error) {
	var src []source
	for _, name := range j.names {
		s := newSource(t.get(name), exact)
		if s.how != "" {
			notes = append(notes, s.how)
		}
		src = append(src, s)
	}
	p := j.dst
	for len(src) > 0 {
		n := 1
		for n < len(src) && src[n].format == src[0].format {
			n++
		}
		m, err := packTogether(t.file, src[:n], a)
		if err != nil {
			return nil, fmt.Errorf("model: tensor %s: %w", src[0].tensor.Name, err)
		}
		p.mats, p.at = append(p.mats, m), append(p.at, p.width)
		p.panels += m.Panels()
		p.width += m.PaddedRows()
		p.forms |= m.Format.Form()
		src = src[n:]
	}
	return notes, nil
}

// packTogether packs tensors of one format below one another. All but the last have whole
// panels of rows: widths of heads and of the feed-forward are multiples of a panel.
func packTogether(f weights.File, src []source, a *arena) (*kernel.Matrix, error) {
	rows := 0
	for _, s := range src {
		rows += s.tensor.Rows()
	}
	at, row, done := 0, src[0].rows(), 0
	m, err := kernel.Pack(src[0].format, rows, src[0].tensor.Cols(), func(r int) []byte {
		x := &src[0].tensor
		if r-at == x.Rows() { // rows come in order
			f.Release(x.Data[done:])
			at, done = r, 0
			src = src[1:]
			x, row = &src[0].tensor, src[0].rows()
		}
		// The file must not take memory beside the packed weights.
		if read := len(x.Data) / x.Rows() * (r - at); read-done >= releaseBytes {
			f.Release(x.Data[done:read])
			done = read
		}
		return row(r - at)
	}, a.alloc)
	f.Release(src[0].tensor.Data[done:])
	return m, err
}

// releaseBytes is how much of a tensor is read before its pages are given back.
const releaseBytes = 4 << 20

// describe lists what was done to how many tensors, in a fixed order.
func describe(how map[string]int) string {
	var s []string
	for k, n := range how {
		s = append(s, fmt.Sprintf("%d × %s", n, k))
	}
	sort.Strings(s)
	return strings.Join(s, ", ")
}
