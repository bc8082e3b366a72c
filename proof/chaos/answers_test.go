package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine/recall"
)

// tokensPerFact is how many tokens a fact of the recall task takes, on average.
const tokensPerFact = 8

// TestRightAnswersThroughHandOff asks 200 prompts of 100 to 1,300 tokens, 16 at a time, through
// a prefill and a decode process: one code or an absent name, whose answers are certain (X3).
func TestRightAnswersThroughHandOff(t *testing.T) {
	c := start(t, "--canary")
	r := rand.New(rand.NewPCG(11, 200))
	asks := make([]Ask, 200)
	for i := range asks {
		facts := (100 + r.IntN(1200)) / tokensPerFact
		asks[i] = ask(r, recall.NewPrompt(r, facts))
	}
	for i, e := range askAll(t, c, asks, 16) {
		if e.Text != asks[i].Want || e.Finish != "stop" || e.Ends != 1 || e.Broken != "" {
			t.Errorf("prompt %d: got %+v, want %q", i, e, asks[i].Want)
		}
	}
	awaitQuiet(t, c, 10*time.Second)
	requireNoCanary(t, c)
}

// TestRepeatsEqualUnified asks for all facts again, up to 90 of them, so that the answer reads
// every block of the prompt: the pair must say what one process says (X3).
func TestRepeatsEqualUnified(t *testing.T) {
	split, whole := start(t, "--canary"), start(t, "--unified")
	r := rand.New(rand.NewPCG(12, 90))
	var asks []Ask
	for facts := 5; facts <= 90; facts += 5 {
		p := recall.NewPrompt(r, facts)
		turn := p.Repeat()
		asks = append(asks, Ask{Messages: p.Messages(turn.Question), Stream: facts%2 == 0, Deadline: time.Minute})
	}
	got, want := askAll(t, split, asks, 4), askAll(t, whole, asks, 4)
	for i := range asks {
		if got[i].Text != want[i].Text || got[i].Finish != want[i].Finish || got[i].Ends != 1 || want[i].Ends != 1 {
			t.Errorf("repeat %d: pair %+v, unified %+v", i, got[i], want[i])
		}
	}
	requireNoCanary(t, split)
}

// ask makes a question whose right answer is certain: one code, or an absent name.
func ask(r *rand.Rand, p recall.Prompt) Ask {
	turn := p.AskOne(r)
	if r.IntN(3) == 0 {
		turn = p.AskAbsent(r)
	}
	return Ask{Messages: p.Messages(turn.Question), Want: turn.Answer, Stream: r.IntN(2) == 0, Deadline: time.Minute}
}

// askAll sends all, so many at a time, and returns the ends in the order of the asks.
func askAll(t *testing.T, c *Cluster, asks []Ask, atOnce int) []End {
	ends := make([]End, len(asks))
	next := make(chan int)
	var wg sync.WaitGroup
	hc, hangUp := client()
	defer hangUp()
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				ends[i] = Do(t.Context(), hc, c.URL, asks[i])
			}
		})
	}
	for i := range asks {
		next <- i
	}
	close(next)
	wg.Wait()
	return ends
}

// requireNoCanary holds X5 on every worker that lives. One that died of a hit said so in the log.
func requireNoCanary(t *testing.T, c *Cluster) {
	t.Helper()
	state, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range state.Workers {
		if hits, ok := Metric(t.Context(), "http://"+w.HTTP, fmt.Sprintf("baton_canary_hits_total{role=%q}", w.Role)); !ok || hits != 0 {
			t.Errorf("%s worker %s: canary hits %v (shown: %v): a block changed after it was given back", w.Role, w.Boot, hits, ok)
		}
	}
	if i := strings.Index(c.Log(), "a free block was written to"); i >= 0 {
		t.Errorf("a canary was hit: %s", c.Log()[max(0, i-200):])
	}
}
