package gateway

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/leg"
)

// dieAt has the first decode leg die once the gateway has forwarded tokens of it, and every other
// one answer.
func (r *rig) dieAt(tokens int, die func(*fakeLeg)) {
	var legs atomic.Int32
	for _, d := range r.decodes {
		d.play(func(l *fakeLeg) {
			if legs.Add(1) > 1 {
				goodDecode(l)
				return
			}
			l.accept()
			<-l.kv()
			for i := range tokens {
				l.piece("WRONG"[i : i+1])
			}
			r.until(func(g *loop) (there bool) {
				g.core.Rooms(func(v relay.View) bool {
					there = there || v.Room == l.req.Room && v.Tokens == tokens
					return true
				})
				return there
			})
			die(l)
		})
	}
}

// TestAWholeAnswerIsStartedAnew: the client of an answer that is not streamed has had no byte, so
// another pair answers when decode dies behind the first token. Nothing of the first attempt is
// in the answer or its usage.
func TestAWholeAnswerIsStartedAnew(t *testing.T) {
	for name, die := range map[string]func(*fakeLeg){
		"cut":   (*fakeLeg).cut,
		"said":  func(l *fakeLeg) { l.fail(room.TransferFailed) },
		"early": func(l *fakeLeg) { l.line(leg.Line{End: &leg.End{Outcome: room.Success}}) }, // no finish reason
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, nil)
			r.dieAt(5, die)
			a := r.post("/v1/chat/completions", helloBody+`,"return_token_ids":true}`)
			var got struct {
				Choices []struct {
					Message  struct{ Content string }
					TokenIDs []int32 `json:"token_ids"`
					Finish   string  `json:"finish_reason"`
				}
				Usage struct {
					Prompt     int `json:"prompt_tokens"`
					Completion int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 || len(got.Choices) != 1 {
				t.Fatalf("%d %s: %v", a.status, a.body, err)
			}
			c := got.Choices[0]
			if c.Message.Content != "hello" || string(byteText{}.Decode(c.TokenIDs)) != "hello" || c.Finish != "stop" {
				t.Errorf("the answer is %+v, want the second attempt's alone", c)
			}
			if got.Usage.Prompt != 8 || got.Usage.Completion != 5 {
				t.Errorf("usage %+v, want 8 and 5", got.Usage)
			}
			r.quiet()
			if one, two := r.decodes[0].legs.Load(), r.decodes[1].legs.Load(); one != 1 || two != 1 {
				t.Errorf("decode legs: %d and %d, want one at each", one, two)
			}
		})
	}
}

// TestOneChoiceStartedAnewLeavesTheOthers: of two prompts one is answered by a second attempt.
func TestOneChoiceStartedAnewLeavesTheOthers(t *testing.T) {
	r := newRig(t, 2, nil)
	r.dieAt(5, (*fakeLeg).cut)
	a := r.post("/v1/completions", `{"prompt":["a","b"],"max_tokens":8}`)
	var got struct {
		Choices []struct{ Text string }
		Usage   struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if fmt.Sprint(got.Choices) != "[{hello} {hello}]" || got.Usage.Completion != 10 {
		t.Errorf("%+v, want hello twice in 10 tokens", got)
	}
	r.quiet()
}

// TestAStreamIsNotStartedAnew: its client has the beginning already.
func TestAStreamIsNotStartedAnew(t *testing.T) {
	r := newRig(t, 2, nil)
	r.dieAt(5, (*fakeLeg).cut)
	a := r.post("/v1/chat/completions", helloBody+`,"stream":true}`)
	if n, code := a.terminal(); n != 1 || code == "" || a.text() != "WRONG" {
		t.Errorf("%d terminal events, code %q, text %q; want WRONG and one error", n, code, a.text())
	}
	r.quiet()
}

// TestWhatIsTakenBackIsNotCounted: an inbox gives the room of discarded pieces back, and keeps
// those of other choices.
func TestWhatIsTakenBackIsNotCounted(t *testing.T) {
	line := leg.Line{Text: "abc", IDs: []int32{1}}
	b := newInbox(3 * bytesOf(&line))
	for _, choice := range []int{0, 1, 0} {
		if !b.push(choice, &line) {
			t.Fatal("a piece does not fit")
		}
	}
	b.anew(0, 1)
	if b.bytes != bytesOf(&line) {
		t.Errorf("%d bytes are counted, want those of one piece, %d", b.bytes, bytesOf(&line))
	}
	items := b.take(nil)
	if len(items) != 2 || items[0].choice != 1 || items[0].anew != 0 || items[1].choice != 0 || items[1].anew != 1 {
		t.Errorf("the handler finds %+v, want the piece of choice 1, and that choice 0 starts anew", items)
	}
}
