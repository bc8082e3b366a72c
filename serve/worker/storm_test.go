package worker

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"baton/core/room"
)

// The default is what a test run affords under the race detector; `go test -storm 100000 -run Storm` is a night.
var (
	stormRooms = flag.Int("storm", 400, "rooms of a storm")
	stormSeed  = flag.Uint64("storm-seed", 77, "seed of a storm: sizes and the places of cuts, not the schedule")
)

// A storm of cancellations over pools that are too small for it. Whatever happens: every leg
// ends, every stream is a prefix of the true output (STREAM), every success is the whole of it,
// and at the end nobody holds a room, a block, a link's worth of anything (RELEASE), and no free
// block was written to (QUIET).
func TestAStormOfCancellationsForgetsNothing(t *testing.T) { storm(t, 0) }

// The same while the links are cut again and again.
func TestAStormWithDyingLinksForgetsNothing(t *testing.T) { storm(t, 40) }

// storm opens many rooms and cuts many of them; after every cutEvery rooms (0: never) all links
// are cut.
func storm(t *testing.T, cutEvery int) {
	p, f := start(t, Prefill, 24, sizes(4, 64, 32))
	ahead := func(c *Config) { c.Sizes.AheadTokens = 4 }
	d1, _ := start(t, Decode, 24, sizes(4, 64, 32), ahead)
	d2, _ := start(t, Decode, 32, sizes(3, 64, 64), ahead)
	ds := []*Worker{d1, d2}
	wire := newProxy(t, p.Link(), -1)
	r := rand.New(rand.NewPCG(*stormSeed, 78))
	stock := ask(r, 200, 1, f.vocab).Tokens // half of the prompts begin as this one does
	turns := make(chan struct{}, 24)        // legs at once: more than can run, fewer than the queues hold
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for i := range *stormRooms {
		q := ask(r, 1+r.IntN(200), 1+r.IntN(40), f.vocab)
		d, cutPre, cutDec := ds[r.IntN(2)], r.IntN(4) == 0, r.IntN(3) == 0
		cutAt := r.IntN(20)
		if r.IntN(2) == 0 {
			copy(q.Tokens, stock[:r.IntN(len(stock))])
		}
		if r.IntN(20) == 0 {
			q.LeftMS = int64(r.IntN(30))
		}
		want := oracle(q.Tokens, q.Params.MaxTokens, f.vocab)
		switch r.IntN(6) {
		case 0, 1:
			q.N = 1 + r.IntN(3) // greedy, so all choices say the same, each by its own blocks
		case 2:
			q.Generated = r.IntN(q.Params.MaxTokens) // cut before, elsewhere
			q.Tokens = append(q.Tokens, want[:q.Generated]...)
		}
		want = want[q.Generated:]
		// A room whose request never reached prefill, and whose Cancel died with its link, has
		// its deadline as the only exit there: keep it below the patience of the test.
		if cutEvery > 0 {
			q.LeftMS = min(q.LeftMS, patience.Milliseconds()/4)
			if i%cutEvery == cutEvery-1 {
				wire.cut()
			}
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			pre, dec := both(t, p, d, q, wire.addr())
			if cutPre {
				if i%2 == 0 {
					within(t, "prefill to answer", pre.ready)
				}
				pre.cancel()
			}
			if cutDec {
				go func() {
					dec.after(cutAt)
					dec.cancel()
				}()
			}
			gateway(t, pre, dec)
			said := make([]int, q.Choices())
			for _, l := range dec.lines {
				k := said[l.Choice]
				if k >= len(want) || l.IDs[0] != want[k] {
					t.Errorf("room %d, choice %d of %d: token %d is %d, want a prefix of %v", i, l.Choice, q.N, k, l.IDs[0], want)
					break
				}
				said[l.Choice]++
			}
			key := "cut"
			if dec.end != nil {
				key = dec.end.Result().String()
				if dec.end.Outcome == room.Success && len(dec.ids) != len(want)*q.Choices() {
					t.Errorf("room %d: success with %d of %d tokens", i, len(dec.ids), len(want)*q.Choices())
				}
			}
			mu.Lock()
			outcomes[key]++
			mu.Unlock()
		})
	}
	all.Wait()
	empty(t, p, d1, d2)
	if outcomes["success"] < *stormRooms/20 || outcomes["cut"] == 0 {
		t.Errorf("outcomes %v: not a storm in which some succeed and some are cut", outcomes)
	}
	hits, evicted := cacheOf(t, p)
	if hits == 0 || evicted == 0 {
		t.Errorf("%v rooms found a part of their prompt, %v cached blocks gave way: the storm does not touch the cache", hits, evicted)
	}
	t.Log(outcomes, hits, evicted, "retractions:", counter(t, d1, "baton_retractions_total")+counter(t, d2, "baton_retractions_total"))
}

// gateway does what a gateway owes its workers: a leg that does not succeed ends the other one.
func gateway(t *testing.T, pre, dec *call) {
	select {
	case <-pre.over:
	case <-dec.over:
		if dec.end == nil || dec.end.Outcome != room.Success {
			pre.cancel()
		}
	}
	within(t, "the prefill leg", pre.over)
	if pre.end == nil || pre.end.Outcome != room.Success {
		dec.cancel()
	}
	within(t, "the decode leg", dec.over)
}
