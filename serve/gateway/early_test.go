package gateway

import (
	"bufio"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"baton/serve/leg"
)

// earlyDecode ends choice 1 with its second piece, and goes on with the others.
func earlyDecode(l *fakeLeg) {
	l.accept()
	<-l.kv()
	l.say(0, "a")
	l.say(1, "b")
	l.line(leg.Line{Choice: 1, Text: "b", IDs: []int32{'b'}, Finish: "stop", Matched: "."})
	l.say(0, "a")
	l.line(leg.Line{Text: "a", IDs: []int32{'a'}, Finish: "length"})
	l.doneEach(leg.Choice{Finish: "length", OutputTokens: 3}, leg.Choice{Finish: "stop", Matched: ".", OutputTokens: 2})
}

// A choice that ends before the others has its finish at once, and once, whether it is streamed or not.
func TestAChoiceThatEndsEarlyFinishesAtOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(earlyDecode)
	a := r.post("/v1/chat/completions", helloBody+`,"n":2,"stream":true}`)
	expect(t, transcript(a), `
		0 {"role":"assistant","content":""}
		0 {"content":"a"}
		1 {"role":"assistant","content":""}
		1 {"content":"b"}
		1 {"content":"b"}
		1 {} stop
		0 {"content":"a"}
		0 {"content":"a"}
		0 {} length
		done`)
	if !strings.Contains(strings.Join(a.events, ""), `"finish_reason":"stop","stop_reason":"."`) {
		t.Errorf("no stop_reason: %q", a.events)
	}
	whole := r.post("/v1/completions", `{"prompt":"ab","n":2}`)
	for _, want := range []string{`"text":"aaa","logprobs":null,"finish_reason":"length"`, `"text":"bb","logprobs":null,"finish_reason":"stop","stop_reason":"."`, `"completion_tokens":5`} {
		if !strings.Contains(whole.body, want) {
			t.Errorf("%d %s, want %s", whole.status, whole.body, want)
		}
	}
	r.quiet()
}

// The finish of a choice is said before the room ends: the client has it while the worker still waits.
func TestAFinishIsNotHeldBackForTheOthers(t *testing.T) {
	r := newRig(t, 1, nil)
	heard := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		l.line(leg.Line{Choice: 1, Text: "b", IDs: []int32{'b'}, Finish: "stop"})
		select { // of choice 0 nothing comes until the client has seen how choice 1 ended
		case <-heard:
		case <-l.ctx.Done():
			return
		}
		l.line(leg.Line{Text: "a", IDs: []int32{'a'}, Finish: "stop"})
		l.doneEach(leg.Choice{Finish: "stop", OutputTokens: 1}, leg.Choice{Finish: "stop", OutputTokens: 1})
	})
	seen := sync.OnceFunc(func() { close(heard) })
	resp := r.begin(r.Context(), "/v1/chat/completions", helloBody+`,"n":2,"stream":true}`)
	defer resp.Body.Close()
	finishes, lines := 0, bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if e := lines.Text(); strings.Contains(e, `"finish_reason":"stop"`) {
			if finishes++; strings.Contains(e, `"index":1`) {
				seen()
			}
		}
	}
	if finishes != 2 {
		t.Errorf("%d finishes, want one for each choice", finishes)
	}
	r.quiet()
}

// What an attempt that failed had said of a choice's end is taken back with its pieces; a stream that
// has it gets one error, and a worker whose end says otherwise is not believed.
func TestAFinishOfAFailedAttemptIsTakenBack(t *testing.T) {
	r := newRig(t, 2, nil)
	var legs atomic.Int32
	for _, d := range r.decodes {
		d.play(func(l *fakeLeg) {
			if legs.Add(1)%2 == 0 {
				manyDecode(l)
				return
			}
			l.accept()
			<-l.kv()
			l.line(leg.Line{Choice: 1, Text: "W", IDs: []int32{'W'}, Finish: "stop", Matched: "W"})
			l.say(0, "W")
			l.doneEach(leg.Choice{Finish: "stop", OutputTokens: 1}, leg.Choice{Finish: "length", OutputTokens: 1})
		})
	}
	a := r.post("/v1/completions", `{"prompt":"ab","n":2}`)
	if a.status != 200 || strings.Contains(a.body, "W") || !strings.Contains(a.body, `"text":"11","logprobs":null,"finish_reason":"stop"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.quiet()
	legs.Store(0)
	s := r.post("/v1/completions", `{"prompt":"ab","n":2,"stream":true}`)
	if n, code := s.terminal(); n != 1 || code != "worker_lost" {
		t.Errorf("%q", s.events)
	}
	r.quiet()
}
