package gateway

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/core/room"
	"baton/engine/chat/reply"
	"baton/engine/sample"
	"baton/serve/leg"
	"baton/serve/openai"
)

// What a client that reads late may have waiting grows with what it asked for.
func TestEachChoiceHasItsOwnRoomForALateReader(t *testing.T) {
	g, _ := New(Config{Model: "m", Text: byteText{}, ClientBytes: 4 << 10})
	defer g.Close()
	parsed, err := openai.Parse(openai.Completion, []byte(`{"prompt":["a","b"],"n":4}`), openai.Limits{Vocab: 256})
	if err != nil {
		t.Fatal(err)
	}
	c := g.newRequest(httptest.NewRecorder(), parsed, [][]int32{{1}, {2}}, reply.Style{})
	line := leg.Line{Text: strings.Repeat("x", 1000), IDs: []int32{1}}
	for i := range 8 {
		for range 3 {
			if !c.inbox.push(i, &line) {
				t.Fatalf("choice %d of 8 has no room for 3 lines, where one alone has", i)
			}
		}
	}
	if got := clientBytes(clientBytesMax, openai.PromptsMax*openai.ChoicesMax); got != clientBytesMost {
		t.Errorf("as many choices as there may be have %d bytes, want %d", got, clientBytesMost)
	}
}

// A worker that refuses says what is wrong, and the client hears it by the name that it wrote.
func TestAWorkersRefusalNamesTheClientsField(t *testing.T) {
	for _, row := range []struct{ path, more, said, want string }{
		{"/v1/chat/completions", ``, "tokens", "messages"},
		{"/v1/completions", ``, "tokens", "prompt"},
		{"/v1/chat/completions", `,"max_completion_tokens":3`, "max_tokens", "max_completion_tokens"},
		{"/v1/chat/completions", ``, "max_tokens", "max_tokens"},
		{"/v1/chat/completions", `,"regex":"a"`, "grammar", "regex"},
		{"/v1/chat/completions", ``, "allowed_token_ids", "allowed_token_ids"},
		{"/v1/chat/completions", ``, "", ""},
	} {
		r := newRig(t, 1, nil)
		end := &leg.End{Outcome: room.Fail(room.ClientError).Kind, Cause: room.ClientError, Message: "said so", Param: row.said}
		r.decodes[0].play(func(l *fakeLeg) { l.accept(); l.line(leg.Line{End: end}) })
		body := helloBody + row.more + "}"
		if row.path == "/v1/completions" {
			body = `{"prompt":"x"}`
		}
		a := r.post(row.path, body)
		var got struct {
			Error struct{ Param *string }
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 400 {
			t.Errorf("%+v: %d %s", row, a.status, a.body)
			continue
		}
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if param != row.want {
			t.Errorf("%+v: param %q", row, param)
		}
		r.quiet()
	}
}

// Of hidden thoughts nothing is sent: no token and no log-probability, whole or streamed; of what is
// said all is.
func TestTokensOfHiddenThoughtsAreNotSent(t *testing.T) {
	for _, text := range []string{"<think>hm</think>Hi", "<think>\n\nsecret\n</think>\n\nHi", "Hi", "<think>never ended", "<thin Hi"} {
		r, _ := newStyledRig(t, reply.Style{Thinks: true})
		r.decodes[0].play(func(l *fakeLeg) {
			l.accept()
			<-l.kv()
			for _, b := range []byte(text) {
				l.line(leg.Line{Text: string(b), IDs: []int32{int32(b)}, Logprobs: []sample.TokenLogprob{{ID: int32(b), Bytes: []byte{b}}}})
			}
			l.done(len(text))
		})
		want := text
		if i := strings.Index(text, "</think>"); i >= 0 {
			want = text[i+len("</think>"):]
		} else if strings.HasPrefix(text, "<think>") {
			want = ""
		}
		for _, stream := range []string{"", `,"stream":true`} {
			a := r.post("/v1/chat/completions", helloBody+`,"include_reasoning":false,"logprobs":true,"return_token_ids":true`+stream+`}`)
			events := a.events
			if stream == "" {
				events = []string{a.body}
			}
			var ids []int32
			probs := ""
			for _, e := range events {
				var v struct {
					Choices []struct {
						IDs      []int32 `json:"token_ids"`
						Logprobs *struct {
							Content []struct{ Token string }
						}
					}
				}
				json.Unmarshal([]byte(e), &v)
				for _, c := range v.Choices {
					ids = append(ids, c.IDs...)
					if c.Logprobs != nil {
						for _, p := range c.Logprobs.Content {
							probs += p.Token
						}
					}
				}
			}
			if got := (byteText{}).Decode(ids); got != want || probs != want {
				t.Errorf("%q%s: tokens of %q and log-probabilities of %q are sent, want those of %q", text, stream, got, probs, want)
			}
		}
		r.quiet()
	}
}

// The prompts of one request draw apart, as its choices do: by their index in the answer, which both
// workers are told.
func TestPromptsOfOneRequestDrawApart(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		for i := range l.req.Choices() {
			l.say(i, string(rune('0'+int(l.req.Params.Choice)+i)))
		}
		l.doneEach(leg.Choice{Finish: "stop", OutputTokens: 1}, leg.Choice{Finish: "stop", OutputTokens: 1})
	})
	a := r.post("/v1/completions", `{"prompt":["x","x","x"],"n":2,"seed":1}`)
	var got struct{ Choices []struct{ Text string } }
	json.Unmarshal([]byte(a.body), &got)
	if len(got.Choices) != 6 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for i, c := range got.Choices {
		if c.Text != string(rune('0'+i)) {
			t.Errorf("choice %d draws as choice %s", i, c.Text)
		}
	}
	r.quiet()
}

// Each prompt is checked: with several choices what is left for an answer jumps from block to block,
// so that a shorter prompt may leave less than a longer one.
func TestEachPromptIsCheckedWithItsChoices(t *testing.T) {
	g, _ := New(Config{Model: "m", Text: byteText{}})
	defer g.Close()
	has := openai.Capacity{Context: 1000, Pool: 64, Choices: 8}
	for _, lengths := range [][]int{{15, 16}, {16, 15}} {
		parsed, err := openai.Parse(openai.Completion, []byte(`{"prompt":["`+strings.Repeat("x", lengths[0])+`","`+strings.Repeat("x", lengths[1])+`"],"n":3,"max_tokens":16}`), openai.Limits{Vocab: 256})
		if err != nil {
			t.Fatal(err)
		}
		alone := *parsed
		if alone.CheckContext(16, has) != nil || parsed.CheckContext(15, has) == nil {
			t.Fatal("the longer prompt fits and the shorter does not: that is what this test is about")
		}
		if _, _, err := g.prompts(parsed, has); err == nil || err.Param != "max_tokens" {
			t.Errorf("prompts of %v tokens: %v", lengths, err)
		}
	}
}

// A body in another form than it says is no JSON for us; what to do about it is said.
func TestACompressedBodyIsRefusedAsOne(t *testing.T) {
	r := newRig(t, 1, nil)
	for encoding, want := range map[string]int{"gzip": 415, "br, gzip": 415, "identity": 200, "Identity": 200} {
		if a := r.post("/v1/chat/completions", helloBody+"}", "Content-Encoding", encoding); a.status != want || want == 415 && !strings.Contains(a.body, "without it") {
			t.Errorf("%s: %d %s", encoding, a.status, a.body)
		}
	}
	r.quiet()
}
