package model

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"

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

// layer holds the weights of one transformer layer.
type layer struct {
	attnNorm, ffnNorm      []float32 // [Width]
	qkv, out, gateUp, down product
}

// parameters holds everything that is read from the file at load.
type parameters struct {
	embed   weights.Tensor // rows are decoded on lookup, straight from the file
	norm    []float32      // [Width]
	head    product
	divisor []float32 // rope_freqs.weight, or nil
	layers  []layer
	arena   arena
	brought string // what was done to tensors whose format has no kernel, "" if there were none
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
	w.embed, _ = f.Tensor("token_embd.weight")
	w.norm = vector(f, "output_norm.weight")
	if c.RopeFreqs {
		w.divisor = vector(f, "rope_freqs.weight")
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
		l.attnNorm, l.ffnNorm = vector(f, p+"attn_norm.weight"), vector(f, p+"ffn_norm.weight")
		jobs = append(jobs,
			packing{&l.qkv, []string{p + "attn_q.weight", p + "attn_k.weight", p + "attn_v.weight"}},
			packing{&l.out, []string{p + "attn_output.weight"}},
			packing{&l.gateUp, []string{p + "ffn_gate.weight", p + "ffn_up.weight"}},
			packing{&l.down, []string{p + "ffn_down.weight"}})
	}
	return w.packAll(f, jobs, o)
}

// packAll runs the jobs on as many goroutines as the machine has processors.
func (w *parameters) packAll(f weights.File, jobs []packing, o Options) error {
	var total, done int64
	for _, j := range jobs {
		total += j.bytes(f)
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
				notes, err := j.pack(f, o.Exact, &w.arena)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				for _, n := range notes {
					how[n]++
				}
				done += j.bytes(f)
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

func (j packing) bytes(f weights.File) (n int64) {
	for _, name := range j.names {
		t, _ := f.Tensor(name)
		n += int64(len(t.Data))
	}
	return n
}

// pack packs one product and says what was done to tensors that were not taken as they are.
func (j packing) pack(f weights.File, exact bool, a *arena) (notes []string, err error) {
	var src []source
	for _, name := range j.names {
		t, _ := f.Tensor(name)
		s := newSource(t, exact)
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
		m, err := packTogether(src[:n], a)
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
func packTogether(src []source, a *arena) (*kernel.Matrix, error) {
	rows := 0
	for _, s := range src {
		rows += s.tensor.Rows()
	}
	at, row := 0, src[0].rows()
	return kernel.Pack(src[0].format, rows, src[0].tensor.Cols(), func(r int) []byte {
		if r-at == src[0].tensor.Rows() { // rows come in order
			at = r
			src = src[1:]
			row = src[0].rows()
		}
		return row(r - at)
	}, a.alloc)
}

// describe lists what was done to how many tensors, in a fixed order.
func describe(how map[string]int) string {
	var s []string
	for k, n := range how {
		s = append(s, fmt.Sprintf("%d × %s", n, k))
	}
	sort.Strings(s)
	return strings.Join(s, ", ")
}
