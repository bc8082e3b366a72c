package worker

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/serve/leg"
)

// pinned runs what a test of pins needs on a pair and on a unified worker, with pools of 64 blocks.
func pinned(t *testing.T, test func(t *testing.T, workers []*Worker, say func(q leg.Request) (cached int))) {
	r := rand.New(rand.NewPCG(51, 52))
	t.Run("pair", func(t *testing.T) {
		p, _ := start(t, Prefill, 64)
		d, _ := start(t, Decode, 64)
		test(t, []*Worker{p, d}, func(q leg.Request) int {
			t.Helper()
			pre, dec := both(t, p, d, again(r, q), p.Link())
			pre.ended(room.NoCause)
			return dec.ended(room.NoCause).end.Cached
		})
	})
	t.Run("unified", func(t *testing.T) {
		u, _ := start(t, Unified, 64)
		test(t, []*Worker{u}, func(q leg.Request) int {
			t.Helper()
			return open(t, u, Decode, again(r, q)).ended(room.NoCause).end.Cached
		})
	})
}

// flood asks for more than the pools hold.
func flood(r *rand.Rand, vocab int, say func(leg.Request) int) {
	for range 12 {
		say(ask(r, 160, 2, vocab))
	}
}

// TestAPinnedPrefixSurvivesPressure: of two prompts of ten blocks the one that was pinned is found
// behind others that fill the pool twice. The pins are counted, and usage is what it was.
func TestAPinnedPrefixSurvivesPressure(t *testing.T) {
	pinned(t, func(t *testing.T, workers []*Worker, say func(leg.Request) int) {
		r := rand.New(rand.NewPCG(53, 54))
		vocab := workers[0].served.Vocab
		q, plain := ask(r, 164, 2, vocab), ask(r, 164, 2, vocab)
		q.PinMS = room.PinMax.Milliseconds()
		if n := say(q) + say(plain); n != 0 {
			t.Errorf("%d tokens of new prompts were cached", n)
		}
		flood(r, vocab, say)
		empty(t, workers...)
		for _, w := range workers {
			if b := look(t, w).Worker.Blocks; b.Pinned != 10 {
				t.Errorf("%s: %+v, want 10 pinned blocks", w.name, b)
			}
			if _, text := get(t, w, "/metrics"); !strings.Contains(text, "baton_blocks_pinned") {
				t.Errorf("%s: no gauge of pinned blocks", w.name)
			}
		}
		again := q
		again.PinMS = 0 // whoever finds it keeps the pin that it has
		if a, b := say(again), say(plain); a != 160 || b != 0 {
			t.Errorf("%d tokens of the pinned prompt are found and %d of the other, want 160 and 0", a, b)
		}
	})
}

// TestAPinEndsByItself: nothing happens at the worker, and the pin is over; then it is evicted as
// others are.
func TestAPinEndsByItself(t *testing.T) {
	pinned(t, func(t *testing.T, workers []*Worker, say func(leg.Request) int) {
		r := rand.New(rand.NewPCG(55, 56))
		vocab := workers[0].served.Vocab
		q := ask(r, 164, 2, vocab)
		q.PinMS = 1
		say(q)
		for _, w := range workers {
			until(t, w.name+" has no pins", func() bool { return look(t, w).Worker.Blocks.Pinned == 0 })
		}
		flood(r, vocab, say)
		if n := say(q); n != 0 {
			t.Errorf("%d tokens are found of a prompt whose pin was over before others filled the pool", n)
		}
	})
}

// TestPinsAreBounded: a request that asks for more than its share of the pool gets the share, and
// nobody waits for it.
func TestPinsAreBounded(t *testing.T) {
	pinned(t, func(t *testing.T, workers []*Worker, say func(leg.Request) int) {
		r := rand.New(rand.NewPCG(57, 58))
		vocab := workers[0].served.Vocab
		q := ask(r, 500, 2, vocab)
		q.PinMS = time.Minute.Milliseconds()
		say(q)
		say(ask(r, 900, 2, vocab)) // all of the pool but a few blocks: the pinned ones, too
		empty(t, workers...)
		q2 := ask(r, 500, 2, vocab)
		q2.PinMS = q.PinMS
		say(q2)
		empty(t, workers...)
		for _, w := range workers {
			if b := look(t, w).Worker.Blocks; b.Pinned != 64/pinnedShare {
				t.Errorf("%s: %+v, want %d pinned blocks", w.name, b, 64/pinnedShare)
			}
		}
	})
}
