package model

import (
	"testing"

	"baton/engine/kernel"
)

// TestActivationsAreGivenBack (M6): batches that grow step by step, as under rising load, leave
// behind one set of activations, and closing leaves none. They lie outside the collector's
// heap, so nothing else would ever free them.
func TestActivationsAreGivenBack(t *testing.T) {
	wide := odd
	wide.layers, wide.width, wide.ffn, wide.vocab = 1, 512, 1024, 4096
	m, err := Open(wide.build(t, 6, nil), Options{Threads: 1, ChunkTokensMax: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	weights := kernel.Outside()
	kv := pool(t, m, 512)
	withPool := kernel.Outside()
	r, other := m.NewRunner(kv), m.NewRunner(kv)
	grow := func(r *Runner) {
		for n := 16; n <= 512; n += 16 {
			items := make([]Item, n)
			for i := range items {
				items[i] = Item{Tokens: []int32{int32(i)}, Table: table(i, 1), Want: true}
			}
			if err := r.Step(items); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(r)
	// Of a row: x, h, att, y, logits, and three inputs in float32; a power of two is at most twice that.
	row := int64(4 * (2*wide.width + wide.heads*wide.headDim + 2*wide.ffn + wide.vocab + 16 + 2*wide.width + wide.heads*wide.headDim + wide.ffn))
	held := kernel.Outside() - withPool
	if held == 0 || held > 2*512*row {
		t.Errorf("a runner holds %d bytes behind steps of at most 512 rows, want more than 0 and at most %d", held, 2*512*row)
	}
	r.Close()
	if got := kernel.Outside(); got != withPool {
		t.Errorf("%d bytes are held after the runner was closed", got-withPool)
	}
	if err := r.Step([]Item{{Tokens: []int32{0}, Table: table(0, 1)}}); err == nil {
		t.Error("a closed runner ran a step")
	}
	if err := other.Step([]Item{{Tokens: make([]int32, 512), Table: table(0, 32), Want: true}}); err != nil {
		t.Fatal(err)
	}
	m.Close()
	kv.Close()
	if got := kernel.Outside(); got > weights {
		t.Errorf("%d bytes are held after model and pool were closed", got-weights)
	}
}
