package worker

import (
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"baton/core/room"
	"baton/serve/leg"
)

// A pair must give what the whole sequence gives when it is computed in one place: the fake's
// tokens depend on every KV byte, so this is the hand-off's proof of content.
func TestPairAndUnifiedAnswerWhatTheKVSays(t *testing.T) {
	const blocks = 512
	p, pf := start(t, Prefill, blocks, sizes(8, 64, 32))
	d, _ := start(t, Decode, blocks, sizes(8, 64, 32))
	u, _ := start(t, Unified, blocks, sizes(8, 64, 32))
	r := rand.New(rand.NewPCG(1, 2))
	type asked struct {
		q              leg.Request
		pre, dec, solo *call
	}
	var all []asked
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 48, 100, 255, 257} {
		for _, out := range []int{1, 2, 20} {
			q := ask(r, n, out, pf.vocab)
			a := asked{q: q}
			a.pre, a.dec = both(t, p, d, q, p.Link())
			a.solo = open(t, u, Decode, q)
			all = append(all, a)
		}
	}
	for _, a := range all {
		want := oracle(a.q.Tokens, a.q.Params.MaxTokens, pf.vocab)
		dec, solo := a.dec.ended(room.NoCause), a.solo.ended(room.NoCause)
		pre := a.pre.ended(room.NoCause)
		if !slices.Equal(dec.ids, want) {
			t.Fatalf("pair: prompt of %d: %v, want %v", len(a.q.Tokens), dec.ids, want)
		}
		if !slices.Equal(solo.ids, want) || solo.text != dec.text {
			t.Fatalf("unified: prompt of %d: %v %q, want %v %q", len(a.q.Tokens), solo.ids, solo.text, want, dec.text)
		}
		for _, c := range []*call{dec, solo} {
			if c.end.Finish != "length" || c.end.OutputTokens != len(want) || c.end.PromptTokens != len(a.q.Tokens) {
				t.Fatalf("end %+v, want length, %d and %d tokens", c.end, len(a.q.Tokens), len(want))
			}
		}
		if len(pre.ids) != 0 {
			t.Fatalf("prefill sent tokens to its gateway: %v", pre.ids)
		}
	}
	empty(t, p, d, u)
}

// Seeded sampling must not notice the hand-off: same seed, same positions, same log-probabilities.
func TestSampledTokensAndLogprobsSurviveTheHandOff(t *testing.T) {
	p, f := start(t, Prefill, 64)
	d, _ := start(t, Decode, 64)
	u, _ := start(t, Unified, 64)
	q := ask(rand.New(rand.NewPCG(3, 4)), 40, 30, f.vocab)
	q.Params.Temperature, q.Params.Logprobs = 2, 3 // hot enough to leave the oracle's path
	_, dec := both(t, p, d, q, p.Link())
	solo := open(t, u, Decode, q)
	a, b := dec.ended(room.NoCause), solo.ended(room.NoCause)
	if !slices.Equal(a.ids, b.ids) {
		t.Fatalf("pair %v, unified %v", a.ids, b.ids)
	}
	if slices.Equal(a.ids, oracle(q.Tokens, 30, f.vocab)) {
		t.Fatal("temperature 2 gave the greedy tokens: the test shows nothing")
	}
	if len(a.logprobs) != 30 || len(b.logprobs) != 30 {
		t.Fatalf("%d and %d log-probabilities for 30 tokens", len(a.logprobs), len(b.logprobs))
	}
	for i := range a.logprobs {
		x, y := a.logprobs[i], b.logprobs[i]
		if x.ID != y.ID || x.Logprob != y.Logprob || len(x.Top) < 3 || len(x.Top) != len(y.Top) || x.Top[0].ID != y.Top[0].ID {
			t.Fatalf("token %d: pair %+v, unified %+v", i, x, y)
		}
	}
}

// A fleet restarts: a decode worker dies and comes back as another boot; prefill must serve the
// new one and have forgotten nothing of its own.
func TestDecodeRestartsWithANewBoot(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p, f := start(t, Prefill, 64)
	served, _ := serveFake(t, 64, "layout")
	d := startServed(t, Decode, served)
	held, release := f.hold()
	defer release()
	pre, dec := both(t, p, d, ask(r, 50, 5, f.vocab), p.Link())
	within(t, "a step", held)
	old := d.Boot()
	if err := stopNow(d); err != nil {
		t.Fatal(err)
	}
	dec.cut()
	// A write into a link whose end prefill has not heard of yet returns well: its leg may succeed.
	until(t, "prefill knows that the link has ended", func() bool { return p.linkStat().Links == 0 })
	release()
	within(t, "the prefill leg to end", pre.over)
	if pre.end == nil || pre.end.Cause != room.WorkerLost && pre.end.Cause != room.TransferFailed {
		t.Fatalf("prefill ended with %+v, want worker_lost or transfer_failed: the first cause, told by decode or found by the writes", pre.end)
	}
	d2, _ := start(t, Decode, 64)
	if d2.Boot() == old {
		t.Fatal("two lives have one boot")
	}
	q := ask(r, 50, 5, f.vocab)
	pre, dec = both(t, p, d2, q, p.Link())
	pre.ended(room.NoCause)
	if got, want := dec.ended(room.NoCause).ids, oracle(q.Tokens, 5, f.vocab); !slices.Equal(got, want) {
		t.Fatalf("after the restart %v, want %v", got, want)
	}
	empty(t, p, d2)
}

// A prefill worker that its gateways know by two names is one worker: rooms that come by either
// name run beside each other on one link, and neither ends the other's.
func TestTwoNamesOfOneWorkerShareALink(t *testing.T) {
	p, f := start(t, Prefill, 256)
	d, _ := start(t, Decode, 256)
	_, port, err := net.SplitHostPort(p.Link())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{p.Link(), net.JoinHostPort("::ffff:127.0.0.1", port)}
	r := rand.New(rand.NewPCG(7, 8))
	type asked struct {
		q        leg.Request
		pre, dec *call
	}
	var all []asked
	for i := range 40 {
		a := asked{q: ask(r, 40, 5, f.vocab)}
		a.pre, a.dec = both(t, p, d, a.q, names[i%len(names)])
		all = append(all, a)
	}
	for _, a := range all {
		a.pre.ended(room.NoCause)
		if got, want := a.dec.ended(room.NoCause).ids, oracle(a.q.Tokens, 5, f.vocab); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if links := p.linkStat().Links; links != 1 {
		t.Errorf("%d links are up, want one", links)
	}
	empty(t, p, d)
}
