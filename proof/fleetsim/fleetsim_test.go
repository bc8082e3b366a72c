package fleetsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// TestFleetKeepsItsPromises is the gate: the seeds of every change, in ten seconds of one core.
func TestFleetKeepsItsPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("runs seeds for several seconds")
	}
	r := Sweep(t.Context(), SeedsFirst, SeedsGate, DefaultSizes(), 1, nil)
	t.Logf("%d seeds, %d events, %.0f events/s", r.Seeds, r.Events, float64(r.Events)/r.Took.Seconds())
	for _, s := range r.Sights {
		t.Logf("%7d %s", s.Count, s.Name)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestSmallFleetsToo: with one worker of a role a request has nowhere else to go.
func TestSmallFleetsToo(t *testing.T) {
	for _, s := range []Sizes{{Gateways: 1, Prefills: 1, Decodes: 1}, {Gateways: 1, Prefills: 1, Decodes: 2}, {Gateways: 2, Prefills: 2, Decodes: 1}} {
		r := Sweep(t.Context(), 1, 60, s, 1, nil)
		if err := r.Err(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestSeedsDiffer: equal hashes of two runs say something only if hashes differ at all.
func TestSeedsDiffer(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(100) {
		w := newWorld(newPlan(seed, DefaultSizes()))
		w.run()
		if other, ok := seen[w.hash]; ok {
			t.Fatalf("seeds %d and %d end in the same hash", other, seed)
		}
		seen[w.hash] = seed
	}
}

// onePair is the plan of a quiet fleet to which nothing is done.
func onePair() *plan {
	return &plan{sizes: Sizes{Gateways: 1, Prefills: 1, Decodes: 1}, blocks: [2]int{24, 40}, queued: 4, slots: 2, limits: relay.DefaultLimits(), steady: true}
}

// TestAWrongByteIsAWrongToken damages one block behind the sums' back and expects STREAM to
// break.
func TestAWrongByteIsAWrongToken(t *testing.T) {
	p := onePair()
	p.choices = []choice{{kind: arrive, req: 1, size: 40, more: 8, total: time.Minute}}
	w := newWorld(p)
	done := false
	for len(w.queue.list) > 0 && w.broken == "" {
		e := w.queue.pop()
		w.now = e.at
		w.perform(&e)
		if d := w.nodes[3].d; !done && len(d.running) > 0 && len(d.rooms[d.running[0].Room].said[0]) == 1 {
			d.pool.content[d.running[0].Blocks[0]] ^= 1 << 40
			done = true
		}
	}
	if w.broken != "STREAM" || w.stuck != 1 || !strings.Contains(w.reason, "token 1 of output 0 of request 1 is wrong") {
		t.Fatalf("%s: %s (request %d)", w.broken, w.reason, w.stuck)
	}
}

// TestShrinkKeepsWhatMatters plants one impossible choice among others,
// and expects it alone to be left.
func TestShrinkKeepsWhatMatters(t *testing.T) {
	p := newPlan(3, DefaultSizes())
	p.choices = append(p.choices, choice{kind: arrive, req: 900, at: time.Second, size: 15, more: 1, total: time.Minute, a: 99})
	w := newWorld(p) // node 99 does not exist: the run panics, which counts as SAFETY
	w.run()
	if w.broken != "SAFETY" {
		t.Fatalf("a run on a node that does not exist: %q %s", w.broken, w.reason)
	}
	q := shrink(p, "SAFETY")
	if len(q.choices) != 1 || q.choices[0].req != 900 || !q.steady {
		t.Fatalf("%d choices are left: %+v", len(q.choices), q.choices)
	}
	if !strings.Contains(chart(q, 0, "SAFETY: here"), "⇒ SAFETY: here") {
		t.Fatal("the chart does not say what is wrong")
	}
}

// TestChartFollowsTheRequest: events of the request alone, and where it is after each.
func TestChartFollowsTheRequest(t *testing.T) {
	p := onePair()
	p.choices = []choice{{kind: arrive, req: 1, size: 20, more: 2, total: time.Minute}, {kind: arrive, req: 2, size: 20, more: 2, total: time.Minute}}
	text := chart(p, 2, "an example")
	for _, want := range []string{"request 2 arrives", "gateway 0 ▶ decode 0: try 1", "decode 0 ▶ prefill 0: Prealloc", "prefill 0 ▶ decode 0: Settled success", "0:preallocated", "streaming", "⇒ an example"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "request 1 ") {
		t.Errorf("another request is in\n%s", text)
	}
}

// TestEventsComeInOrder compares the heap with a sort.
func TestEventsComeInOrder(t *testing.T) {
	r := rng(7)
	var q queue
	var want []time.Duration
	for range 3000 {
		at := time.Duration(r.n(500))
		want = append(want, at)
		q.push(event{at: at})
		if r.n(3) == 0 {
			slices.Sort(want)
			if e := q.pop(); e.at != want[0] {
				t.Fatalf("%v comes before %v", e.at, want[0])
			}
			want = want[1:]
		}
	}
	var last event
	for len(q.list) > 0 {
		e := q.pop()
		if before(&e, &last) {
			t.Fatal("ties are not kept in order")
		}
		last = e
	}
}

// TestClocksWakeInTime: the moment for a reading is the first one that has it.
func TestClocksWakeInTime(t *testing.T) {
	r := rng(11)
	for range 10_000 {
		c := clock{offset: r.span(0, time.Hour), ppm: int64(r.n(2*clockSkewMax)) - clockSkewMax}
		at := c.offset + r.span(0, 20*time.Minute)
		when := c.when(at)
		if c.read(when) < at || c.read(when-2*time.Microsecond) >= at {
			t.Fatalf("%+v reads %v at %v and %v before, want %v first", c, c.read(when), when, c.read(when-2*time.Microsecond), at)
		}
	}
}

// TestTheOracleAgreesWithItself: what two workers compute through blocks is the text.
func TestTheOracleAgreesWithItself(t *testing.T) {
	r := rng(5)
	for range 200 {
		tokens, most := 1+r.n(100), 1+r.n(40)
		x := prompt{own: r.next(), kin: 7, alike: r.n(tokens + 1)}
		branch := r.n(outputsMax)
		want := text(x, tokens, most, branch)
		p := newPool(20, &r)
		table := make([]int32, 20)
		for i := range table {
			table[i] = int32(19 - i)
		}
		for from := 0; from < tokens; from += chunkTokens {
			p.prefillChunk(x, tokens, nil, from, min(tokens, from+chunkTokens), table)
		}
		token := sampled(p.read(tokens, table), 0, branch)
		for k := range want {
			if k > 0 {
				token = sampled(p.decodeToken(token, tokens+k-1, table), k, branch)
			}
			if token != want[k] {
				t.Fatalf("token %d of %d behind %d tokens differs", k, len(want), tokens)
			}
		}
	}
}

// TestTheNextTurnHasTheKeysOfTheAnswer: what was computed for a prompt and its output is found under
// the keys of the prompt that goes on behind them, and of no other.
func TestTheNextTurnHasTheKeysOfTheAnswer(t *testing.T) {
	r := rng(6)
	for range 200 {
		tokens, most := 1+r.n(100), 1+r.n(40)
		x := prompt{own: r.next(), kin: 7, alike: r.n(tokens + 1)}
		said := text(x, tokens, most, 0)
		next := prompt{own: r.next(), kin: 7, alike: r.n(200), turn: &turn{x, tokens, said}}
		all := tokens + len(said)
		keys := next.keys(all + 40)
		for to := room.BlockTokens; to <= all+40; to += room.BlockTokens {
			if k := keys[to/room.BlockTokens-1]; to <= all && k != x.key(tokens, said, to) {
				t.Fatalf("token %d behind %d: the next turn has another key", to, tokens)
			} else if to > all && slices.Contains(x.keys(tokens), k) {
				t.Fatalf("token %d behind %d and %d: the next turn has the key of the first", to, tokens, len(said))
			}
		}
	}
}

func TestSizesAreChecked(t *testing.T) {
	for _, s := range []Sizes{{Prefills: 1, Decodes: 1}, {Gateways: 1, Decodes: 1}, {Gateways: 1, Prefills: 1, Decodes: NodesMax + 1}, {Gateways: 1, Prefills: 1, Decodes: 1, Unified: -1}} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := DefaultSizes().Check(); err != nil {
		t.Error(err)
	}
}

// TestSweepEndsWhenAsked: what was done until then counts.
func TestSweepEndsWhenAsked(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := Sweep(ctx, 1, 1_000_000, DefaultSizes(), 2, func(seeds, _ int) {
		if seeds == 5 {
			stop()
		}
	})
	if r.Seeds < 5 || r.Seeds > 7 || r.Events == 0 || r.Failed != nil || len(r.Missing) > 0 {
		t.Fatalf("%+v", r)
	}
}

// BenchmarkSeeds measures events per second of one core.
func BenchmarkSeeds(b *testing.B) {
	events, began := 0, time.Now()
	for seed := uint64(1); b.Loop(); seed++ {
		r := Run(seed, DefaultSizes())
		events += r.Events
	}
	b.ReportMetric(float64(events)/time.Since(began).Seconds(), "events/s")
}

func ExampleRun() {
	r := Run(17, DefaultSizes())
	fmt.Printf("seed %d: broken %q\n", r.Seed, r.Broken)
	// Output: seed 17: broken ""
}
