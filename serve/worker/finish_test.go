package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"baton/core/room"
	"baton/engine/grammar"
	"baton/engine/sample"
	"baton/serve/leg"
)

// Of several choices each says how it ended with its last piece, which is before the room ends where
// others go on, and the end says the same; of one choice the end alone says it.
func TestAChoiceThatEndsEarlySaysSoAtOnce(t *testing.T) {
	p, d, u := loadRecall(t, Prefill), loadRecall(t, Decode), loadRecall(t, Unified)
	tpl := recallTemplate(t)
	for _, n := range []int{1, 6} {
		f := feature{n: n, change: func(p *sample.Params) {
			p.Temperature, p.Seed, p.IgnoreEOS, p.Stop = 2, 5, true, []string{"s"}
		}}
		_, dec := both(t, p, d, askFor(t, tpl, &f, 30), p.Link())
		for where, c := range map[string]*call{"pair": dec, "unified": open(t, u, Decode, askFor(t, tpl, &f, 30))} {
			c.ended(room.NoCause)
			if n == 1 {
				for _, l := range c.lines {
					if l.Finish != "" {
						t.Errorf("%s: %+v of one choice", where, l)
					}
				}
				continue
			}
			first, last := 30, 0 // pieces of the choice that ended first, and of the one that ended last
			all, _ := byChoice(c, n)
			for i, lines := range all {
				for k, l := range lines {
					want := leg.Choice{OutputTokens: c.end.Choices[i].OutputTokens}
					if k == len(lines)-1 {
						want = c.end.Choices[i]
					}
					if l.Finish != want.Finish || l.Matched != want.Matched {
						t.Errorf("%s: piece %d of %d of choice %d: %+v, the end says %+v", where, k+1, len(lines), i, l, c.end.Choices[i])
					}
				}
				first, last = min(first, len(lines)), max(last, len(lines))
			}
			if first == last {
				t.Errorf("%s: %v: the test shows nothing", where, c.end.Choices)
			}
		}
	}
	empty(t, p, d, u)
}

// A room whose grammar is known does not wait behind one whose grammar is being compiled.
func TestAKnownGrammarDoesNotQueue(t *testing.T) {
	u := loadRecall(t, Unified)
	tpl := recallTemplate(t)
	f := feature{change: func(p *sample.Params) { p.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: "[a-f]{3}"} }}
	open(t, u, Decode, askFor(t, tpl, &f, 12)).ended(room.NoCause)
	u.compiling <- struct{}{} // somebody compiles
	open(t, u, Decode, askFor(t, tpl, &f, 12)).ended(room.NoCause)
	<-u.compiling
	empty(t, u)
}

// A room whose grammar is not known waits no longer than its client, and than its request has time.
func TestTheWaitForAGrammarEnds(t *testing.T) {
	u := loadRecall(t, Unified)
	p := sample.Default()
	p.Grammar = &grammar.Spec{Kind: grammar.KindRegex, Regex: "[g-k]{3}"}
	u.compiling <- struct{}{} // somebody compiles
	if g, cause, err := u.grammar(t.Context(), &leg.Request{Params: p, LeftMS: 20}); g != nil || cause != room.Deadline || err == nil {
		t.Errorf("behind its time: %v, %v, %v", g, cause, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if g, cause, err := u.grammar(gone, &leg.Request{Params: p, LeftMS: 60_000}); g != nil || cause != room.Cancelled || err == nil {
		t.Errorf("the client has left: %v, %v, %v", g, cause, err)
	}
	<-u.compiling
	if g, cause, err := u.grammar(t.Context(), &leg.Request{Params: p, LeftMS: 60_000}); g == nil || cause != room.NoCause || err != nil {
		t.Errorf("nobody compiles: %v, %v, %v", g, cause, err)
	}
	empty(t, u)
}

// A grammar that cannot be compiled is its client's mistake, but not one at which compiling broke down.
func TestABrokenGrammarIsOurMistake(t *testing.T) {
	if a, b, c := oursOf(fmt.Errorf("x: %w", grammar.ErrBroken)), oursOf(errors.New("x")), oursOf(nil); a != room.Internal || b != room.NoCause || c != room.NoCause {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}
