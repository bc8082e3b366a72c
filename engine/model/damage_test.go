package model

import (
	"math/rand/v2"
	"testing"

	"baton/engine/weights/gguf"
)

// TestDamagedBytesNeverPanic: random bytes of the head of a file are changed; whatever opens all
// the same must run a step, with whatever numbers (M4).
func TestDamagedBytesNeverPanic(t *testing.T) {
	s := shape{layers: 1, width: 32, ffn: 32, heads: 2, kvHeads: 1, headDim: 16, vocab: 20, tied: true, ropeFreqs: true}
	var good []byte
	s.build(t, 1, func(d *draft) { good = d.bytes(t) })
	head := 0
	f, err := gguf.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Tensors() {
		head = max(head, len(good)-len(x.Data))
	}
	r := rand.New(rand.NewPCG(6, 6))
	opened, refused := 0, 0
	for range 3000 {
		b := append([]byte(nil), good...)
		for range 1 + r.IntN(3) {
			at := r.IntN(head)
			if r.IntN(2) == 0 {
				b[at] ^= 1 << r.IntN(8)
			} else {
				b[at] = byte(r.Uint32())
			}
		}
		f, err := gguf.Parse(b)
		if err != nil {
			continue
		}
		m, err := Open(f, Options{Threads: 1})
		if err != nil {
			refused++
			continue
		}
		opened++
		kv, err := m.NewKV(2)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.NewRunner(kv).Step([]Item{{Tokens: []int32{0, 1, 2}, Table: []int32{1}, Want: true}}); err != nil && m.config.Context >= 3 {
			t.Errorf("opened, but: %v", err)
		}
		kv.Close()
		m.Close()
	}
	if opened < 20 || refused < 20 {
		t.Errorf("%d opened and %d refused: the damage is not what this test is about", opened, refused)
	}
}
