package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"baton/core/room"
	"baton/engine/sample"
	"baton/serve/leg"
)

// drawn returns what a choice of a request must say: every token drawn from the logits that the fake
// has for the prompt and the tokens before, at its position, for this choice.
func drawn(q *leg.Request, choice, vocab int) (ids []int32) {
	p := q.Params
	p.Choice += uint32(choice)
	tokens := slices.Clone(q.Tokens)
	var scratch sample.Scratch
	for len(ids)+q.Generated < p.MaxTokens {
		logits := make([]float32, vocab)
		logits[oracle(tokens, 1, vocab)[0]] = 8
		c := sample.Pick(&p, logits, len(tokens), &scratch)
		ids, tokens = append(ids, c.ID), append(tokens, c.ID)
	}
	return ids
}

// Each choice draws numbers of its own, from its own KV: where the prompt ends inside a block, that
// block is copied for each before anything is written behind it. A choice that goes on behind output
// of another attempt draws what that would have drawn, and counts it as output.
func TestChoicesDrawFromTheirOwnKV(t *testing.T) {
	p, f := start(t, Prefill, 256, sizes(8, 64, 32))
	d, _ := start(t, Decode, 256, sizes(8, 64, 32))
	u, _ := start(t, Unified, 256, sizes(8, 64, 32))
	r := rand.New(rand.NewPCG(91, 92))
	for _, prompt := range []int{1, 16, 20, 47} {
		for _, n := range []int{1, 3} {
			q := ask(r, prompt, 24, f.vocab)
			q.Params.Temperature, q.N = 2, n
			_, dec := both(t, p, d, q, p.Link())
			calls := map[string]*call{"pair": dec, "unified": open(t, u, Decode, again(r, q))}
			if n == 1 {
				rest := again(r, q)
				rest.Tokens, rest.Generated = append(slices.Clone(q.Tokens), drawn(&q, 0, f.vocab)[:7]...), 7
				calls["continued"] = open(t, u, Decode, rest)
			}
			for where, c := range calls {
				name := fmt.Sprintf("%s, prompt of %d, n %d", where, prompt, n)
				c.ended(room.NoCause)
				all, _ := byChoice(c, n)
				finish := []leg.Choice{{Finish: c.end.Finish}}
				if n > 1 {
					finish = c.end.Choices
				}
				for i := range all {
					var got []int32
					for _, l := range all[i] {
						got = append(got, l.IDs...)
					}
					want := drawn(&q, i, f.vocab)
					if where == "continued" {
						want = want[7:]
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s: choice %d says %v, want %v", name, i, got, want)
					}
					if len(finish) != n || finish[i].Finish != sample.ReasonLength {
						t.Errorf("%s: the end is %+v", name, c.end)
					}
				}
				if c.end.PromptTokens != prompt || c.end.OutputTokens != 24*n {
					t.Errorf("%s: the usage is %d and %d, want %d and %d", name, c.end.PromptTokens, c.end.OutputTokens, prompt, 24*n)
				}
			}
		}
		// The KV of the output is found, too: usage counts as cached what of it is prompt.
		q := ask(rand.New(rand.NewPCG(uint64(prompt), 93)), prompt, 24, f.vocab)
		open(t, u, Decode, q).ended(room.NoCause)
		q.Tokens, q.Generated = append(q.Tokens, drawn(&q, 0, f.vocab)[:18]...), 18
		if c := open(t, u, Decode, again(r, q)).ended(room.NoCause); c.end.Cached != prompt || c.end.OutputTokens != 24 {
			t.Errorf("prompt of %d, continued: %d tokens are cached and %d output", prompt, c.end.Cached, c.end.OutputTokens)
		}
	}
	empty(t, p, d, u)
}

// What a gateway may leave unread grows with the choices of its room, up to a bound for all of them.
func TestEachChoiceHasItsOwnBuffer(t *testing.T) {
	u, f := start(t, Unified, 256)
	held, release := f.hold()
	defer release()
	for i, n := range []int{1, 8} {
		q := ask(rand.New(rand.NewPCG(uint64(i), 9)), 20, 3, f.vocab)
		q.N = n
		c := open(t, u, Decode, q).accepted()
		within(t, "a step", held)
		got, ok := asked(u, func() int { return u.rooms[q.Room].answer.max })
		if want := n * answerMax; !ok || got != want || got > answerMost {
			t.Errorf("%d choices have room for %d, want %d", n, got, want)
		}
		c.cancel()
	}
	release()
	empty(t, u)
}
