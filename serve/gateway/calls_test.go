package gateway

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"baton/core/room"
	"baton/engine/chat"
	"baton/engine/chat/reply"
	"baton/serve/leg"
)

const toolBody = helloBody + `,"tools":[` + weatherTool + `,` + timeTool + `]`

var qwen = reply.Style{Calls: reply.Hermes, Thinks: true}

var drawn = regexp.MustCompile(`call_[0-9a-f]{24}`)

// The whole of a stream with thoughts, content and calls, event by event, of two choices.
func TestAStreamOfThoughtsContentAndCalls(t *testing.T) {
	r, _ := newStyledRig(t, qwen)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		for _, p := range []string{"<think>", "\nhm", "</think>", "\n\nWell", ".\n", "<tool_call>", "\n{\"name\": \"time\",", " \"arguments\": {", "\"a\"", ": 1}", "}\n</tool_call>"} {
			l.say(0, p)
		}
		l.say(1, "No.\n")
		l.doneEach(leg.Choice{Finish: "stop", OutputTokens: 9}, leg.Choice{Finish: "stop", OutputTokens: 1})
	})
	a := r.post("/v1/chat/completions", toolBody+`,"n":2,"stream":true}`)
	for i := range a.events {
		a.events[i] = drawn.ReplaceAllString(a.events[i], "call_X")
	}
	expect(t, transcript(a), `
		0 {"role":"assistant","content":""}
		0 {"reasoning_content":"hm"}
		0 {"content":"Well"}
		0 {"content":"."}
		0 {"tool_calls":[{"index":0,"id":"call_X","type":"function","function":{"name":"time","arguments":""}}]}
		0 {"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}
		0 {"tool_calls":[{"index":0,"function":{"arguments":"\"a\""}}]}
		0 {"tool_calls":[{"index":0,"function":{"arguments":": 1}"}}]}
		1 {"role":"assistant","content":""}
		1 {"content":"No."}
		0 {} tool_calls
		1 {"content":"\n"}
		1 {} stop
		done`)
	r.quiet()
}

// messageOf is what a chat's answer says, and how it ended.
func messageOf(t *testing.T, a answer) string {
	t.Helper()
	var got struct {
		Choices []struct {
			Message json.RawMessage
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
		return ""
	}
	c := got.Choices[0]
	return drawn.ReplaceAllString(strings.TrimPrefix(string(c.Message), `{"role":"assistant",`), "call_X") + " " + c.Finish
}

// How a reply becomes a message, whole and streamed: a broken call is content of a whole answer, and
// of a stream what stands behind the break; there is a finish reason in any case.
func TestRepliesBecomeMessages(t *testing.T) {
	for _, row := range []struct {
		name, reply, more, want string
		stream                  []string // the last lines of the transcript; nil: not looked at
	}{
		{"broken", `<tool_call>{"name": "time", "arguments": {"a" 1}}</tool_call>`, ``, `"content":"<tool_call>{\"name\": \"time\", \"arguments\": {\"a\" 1}}</tool_call>"} stop`,
			[]string{`0 {"content":"1"}`, `0 {"content":"}"}`, `0 {"content":"}"}`}},
		{"cut", `<tool_call>{"name": "time", "arg`, ``, `"content":"<tool_call>{\"name\": \"time\", \"arg"} stop`,
			[]string{`0 {"content":"<tool_call>{\"name\": \"time\", \"arg"}`, "0 {} stop", "done"}},
		{"unknown", `<tool_call>{"name": "rm", "arguments": {}}</tool_call>`, ``, `"content":"<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>"} stop`, nil},
		{"no tools", `<tool_call>{"name": "time", "arguments": {}}</tool_call>`, `,"tool_choice":"none"`, `"content":"<tool_call>{\"name\": \"time\", \"arguments\": {}}</tool_call>"} stop`, nil},
		{"one", strings.Repeat(`<tool_call>{"name": "time", "arguments": {}}</tool_call>`, 2), `,"parallel_tool_calls":false`,
			`"content":"<tool_call>{\"name\": \"time\", \"arguments\": {}}</tool_call>","tool_calls":[{"id":"call_X","type":"function","function":{"name":"time","arguments":"{}"}}]} tool_calls`, nil},
		{"nothing but thoughts", `<think>hm`, ``, `"content":"","reasoning_content":"hm"} stop`, []string{`0 {"reasoning_content":"m"}`, "0 {} stop", "done"}},
		{"hidden", `<think>hm</think>Hi`, `,"include_reasoning":false`, `"content":"Hi"} stop`, []string{`0 {"role":"assistant","content":""}`, `0 {"content":"H"}`, `0 {"content":"i"}`, "0 {} stop", "done"}},
		{"in the text", `<think>hm</think>Hi`, `,"separate_reasoning":false`, `"content":"<think>hm</think>Hi"} stop`, nil},
		{"nothing", ``, ``, `"content":""} stop`, []string{`0 {"role":"assistant","content":""}`, "0 {} stop", "done"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, _ := newStyledRig(t, qwen, letters(row.reply)...)
			if got := messageOf(t, r.post("/v1/chat/completions", toolBody+row.more+`}`)); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			s := r.post("/v1/chat/completions", toolBody+row.more+`,"stream":true}`)
			lines := transcript(s)
			if n, code := s.terminal(); n != 1 || code != "" || len(lines) < 3 || !strings.Contains(lines[len(lines)-2], "0 {} ") {
				t.Errorf("%q", lines)
			}
			if all := strings.Join(lines, "\n"); !strings.Contains(all, strings.Join(row.stream, "\n")) {
				t.Errorf("got\n%s\nwant\n%s", all, strings.Join(row.stream, "\n"))
			}
			r.quiet()
		})
	}
}

// An answer that is started anew begins to be read anew: nothing of the thoughts and calls of the
// first attempt is in it, or counted.
func TestAReplyStartedAnewIsReadAnew(t *testing.T) {
	r := newRig(t, 2, func(c *Config) { c.Text = styledText{style: qwen, last: make(chan chat.Conversation, 1)} })
	var legs atomic.Int32
	for _, d := range r.decodes {
		d.play(func(l *fakeLeg) {
			l.accept()
			<-l.kv()
			if legs.Add(1) > 1 {
				l.piece("<think>a</think>fine")
				l.done(1)
				return
			}
			l.piece("<think>bad</think>")
			l.piece(`<tool_call>{"name": "time", "arguments": {`)
			l.fail(room.TransferFailed)
		})
	}
	a := r.post("/v1/chat/completions", toolBody+`}`)
	if got := messageOf(t, a); got != `"content":"fine","reasoning_content":"a"} stop` {
		t.Errorf("%s", got)
	}
	if !strings.Contains(a.body, `"reasoning_tokens":0}`) { // the piece is one, and ends outside of thoughts
		t.Errorf("%s", a.body)
	}
	r.quiet()
}

// A stream that fails inside of a call ends in one error event.
func TestAFailureInsideACallIsOneErrorEvent(t *testing.T) {
	r, _ := newStyledRig(t, qwen)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		l.piece(`<tool_call>{"name": "time", "arguments": {"a`)
		l.fail(room.Internal)
	})
	a := r.post("/v1/chat/completions", toolBody+`,"stream":true}`)
	lines := transcript(a)
	if n, code := a.terminal(); n != 1 || code != "internal" || lines[len(lines)-1] != "error internal" || !strings.Contains(strings.Join(lines, "\n"), `"name":"time"`) {
		t.Errorf("%q", lines)
	}
	r.quiet()
}

// A stop token is told by its number, a stop string by its text.
func TestWhatStoppedAChoiceIsTold(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		l.piece("ab!")
		matched := "!"
		if len(l.req.Params.Stop) > 0 {
			matched = l.req.Params.Stop[0]
		}
		l.line(leg.Line{End: &leg.End{Outcome: room.Success, Finish: "stop", Matched: matched, PromptTokens: len(l.req.Tokens), OutputTokens: 3}})
	})
	for more, want := range map[string]string{`,"stop_token_ids":[33]}`: `"stop_reason":33`, `,"stop":["ab!"]}`: `"stop_reason":"ab!"`, `,"stop":["!"],"stop_token_ids":[33]}`: `"stop_reason":"!"`} {
		if a := r.post("/v1/chat/completions", helloBody+more); !strings.Contains(a.body, want) {
			t.Errorf("%s: %s", more, a.body)
		}
	}
	r.quiet()
}

// Marks that are special tokens of the model are in the text that the worker sends, where a parser
// looks for them, and nowhere else.
func TestMarksThatAreSpecialTokensAreKept(t *testing.T) {
	special := qwen
	special.Special = true
	for _, row := range []struct {
		style reply.Style
		more  string
		kept  bool
	}{{special, `}`, true}, {qwen, `}`, false}, {reply.Style{Calls: reply.Hermes, Special: true}, `,"tool_choice":"none"}`, false}, {qwen, `,"skip_special_tokens":false}`, true}} {
		r, _ := newStyledRig(t, row.style, "x")
		if a := r.post("/v1/chat/completions", toolBody+row.more); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if r.quiet(); r.decodes[0].last.Params.KeepSpecial != row.kept {
			t.Errorf("%+v %s: kept %v", row.style, row.more, !row.kept)
		}
	}
}
