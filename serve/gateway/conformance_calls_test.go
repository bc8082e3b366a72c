package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"baton/engine/chat"
	"baton/engine/chat/reply"
	"baton/engine/grammar"
	"baton/engine/sample"
	"baton/serve/leg"
)

// styledText is byteText of a model that writes in a style. The last conversation is kept.
type styledText struct {
	byteText
	style reply.Style
	last  chan chat.Conversation
}

func (s styledText) Chat(c chat.Conversation) (*chat.Prompt, error) {
	p, err := s.byteText.Chat(c)
	p.Reply = s.style
	if len(c.Tools) == 0 {
		p.Reply.Calls = reply.NoCalls
	}
	select {
	case <-s.last:
	default:
	}
	s.last <- c
	return p, err
}

// newStyledRig is a rig of such a model, whose decode worker says the pieces.
func newStyledRig(t *testing.T, style reply.Style, pieces ...string) (*rig, styledText) {
	text := styledText{style: style, last: make(chan chat.Conversation, 1)}
	r := newRig(t, 1, func(c *Config) { c.Text = text })
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		<-l.kv()
		n := 0
		for _, p := range pieces {
			l.piece(p)
			n += len(p)
		}
		l.done(n)
	})
	return r, text
}

// letters cuts a text into pieces of one byte.
func letters(text string) []string { return strings.Split(text, "") }

const thinkAndCall = "<think>Which\ncity?</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n" +
	"<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>"

func toolParams() openai.ChatCompletionNewParams {
	p := chatParams()
	p.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather", Parameters: shared.FunctionParameters{"type": "object",
			"properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}, "additionalProperties": false}}),
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "time", Description: openai.String("what time it is")}),
	}
	return p
}

func TestOpenAIsClientReadsSeveralChoices(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(manyDecode)
	c := client(r)
	p := chatParams()
	p.N = openai.Int(3)
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 3 || got.Choices[2].Message.Content != "22" || got.Choices[2].Index != 2 || got.Choices[0].FinishReason != "length" || got.Usage.CompletionTokens != 6 {
		t.Errorf("%s", got.RawJSON())
	}
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	all := openai.ChatCompletionAccumulator{}
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Fatalf("a chunk that does not fit: %s", s.Current().RawJSON())
		}
	}
	if s.Err() != nil || len(all.Choices) != 3 || all.Choices[1].Message.Content != "11" || all.Choices[1].FinishReason != "stop" || all.Choices[0].FinishReason != "length" {
		t.Errorf("%v: %+v", s.Err(), all.Choices)
	}
}

func TestOpenAIsClientAsksForAForm(t *testing.T) {
	r := newRig(t, 1, nil)
	c := client(r)
	p := chatParams()
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "pet", Strict: openai.Bool(true), Schema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}}}
	if _, err := c.Chat.Completions.New(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*leg.Request{r.prefills[0].last, r.decodes[0].last} { // the first token obeys, too
		if g := l.Params.Grammar; g == nil || g.Kind != grammar.KindSchema || g.Loose || !strings.Contains(string(g.Schema), `"name"`) {
			t.Errorf("%+v", g)
		}
	}
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	if _, err := c.Chat.Completions.New(t.Context(), p); err != nil || r.decodes[0].last.Params.Grammar.Kind != grammar.KindObject {
		t.Errorf("%v %+v", err, r.decodes[0].last.Params.Grammar)
	}
}

func TestOpenAIsClientReadsCallsAndThoughts(t *testing.T) {
	r, text := newStyledRig(t, reply.Style{Calls: reply.Hermes, Thinks: true}, letters(thinkAndCall)...)
	c := client(r)
	got, err := c.Chat.Completions.New(t.Context(), toolParams())
	if err != nil {
		t.Fatal(err)
	}
	m := got.Choices[0].Message
	var thoughts struct {
		Text string `json:"reasoning_content"`
	}
	json.Unmarshal([]byte(m.RawJSON()), &thoughts)
	if m.Content != "Let me see." || thoughts.Text != "Which\ncity?" || len(m.ToolCalls) != 2 || got.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%s", got.RawJSON())
	}
	if one := m.ToolCalls[0]; one.Function.Name != "weather" || one.Function.Arguments != `{"city": "Paris"}` || one.ID == "" || one.ID == m.ToolCalls[1].ID || one.Type != "function" {
		t.Errorf("%s", m.RawJSON())
	}
	if n := got.Usage.CompletionTokensDetails.ReasoningTokens; n < int64(len(thoughts.Text)) || n > int64(len("Which\ncity?</think>")) {
		t.Errorf("%d tokens of thoughts", n) // bytes are tokens here
	}
	// The answer goes back as it came, with what the tools said.
	p := toolParams()
	p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("sunny", m.ToolCalls[0].ID), openai.ToolMessage("noon", m.ToolCalls[1].ID))
	if _, err := c.Chat.Completions.New(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	back := (<-text.last).Messages
	if n := len(back); n != 5 || len(back[2].ToolCalls) != 2 || back[2].ToolCalls[0].Arguments != `{"city": "Paris"}` || back[4].Role != "tool" || back[4].Name != "time" || back[4].Content != "noon" {
		t.Errorf("%+v", back)
	}
}

func TestOpenAIsClientReadsAStreamOfCalls(t *testing.T) {
	r, _ := newStyledRig(t, reply.Style{Calls: reply.Hermes, Thinks: true}, letters(thinkAndCall)...)
	c := client(r)
	p := toolParams()
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	all := openai.ChatCompletionAccumulator{}
	pieces, finished := 0, 0
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Fatalf("a chunk that does not fit: %s", s.Current().RawJSON())
		}
		if _, ok := all.JustFinishedToolCall(); ok {
			finished++
		}
		for _, one := range s.Current().Choices {
			pieces += len(one.Delta.ToolCalls)
		}
	}
	m := all.Choices[0].Message
	if s.Err() != nil || len(m.ToolCalls) != 2 || m.ToolCalls[0].Function.Name != "weather" || m.ToolCalls[0].Function.Arguments != `{"city": "Paris"}` ||
		m.ToolCalls[1].Function.Name != "time" || m.ToolCalls[1].ID == "" || m.Content != "Let me see." || all.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("%v %+v", s.Err(), all.Choices)
	}
	if finished != 2 || pieces < 8 {
		t.Errorf("%d calls were seen to finish, in %d pieces", finished, pieces)
	}
	if all.Usage.CompletionTokensDetails.ReasoningTokens == 0 {
		t.Errorf("%+v", all.Usage)
	}
}

func TestOpenAIsClientReadsLogprobsOfEachChoice(t *testing.T) {
	r := newRig(t, 1, nil)
	r.decodes[0].play(func(l *fakeLeg) {
		l.accept()
		for i := range l.req.Choices() {
			id := int32('a' + i)
			l.line(leg.Line{Choice: i, Text: string(rune(id)), IDs: []int32{id}, Logprobs: []sample.TokenLogprob{{ID: id, Bytes: []byte{byte(id)}, Logprob: -0.5}}})
		}
		l.doneEach(leg.Choice{Finish: "stop", OutputTokens: 1}, leg.Choice{Finish: "stop", OutputTokens: 1})
	})
	c := client(r)
	p := chatParams()
	p.Logprobs, p.N = openai.Bool(true), openai.Int(2)
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", "b"} {
		if l := got.Choices[i].Logprobs.Content; len(l) != 1 || l[0].Token != want {
			t.Errorf("choice %d: %s", i, got.RawJSON())
		}
	}
}
