package openai

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"baton/engine/chat"
	"baton/engine/grammar"
	"baton/engine/sample"
)

func read(t *testing.T, body string) *Request {
	t.Helper()
	r, err := Parse(endpointOf(body), []byte(body), lim)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// A conversation arrives as it was written: what was thought, called and answered, and by whom.
func TestAConversationIsReadAsItWasWritten(t *testing.T) {
	r := read(t, `{"messages":[
		{"role":"developer","content":"be kind","name":"boss"},
		{"role":"user","content":"weather?"},
		{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
			{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},
			{"id":"c2","function":{"name":"time","arguments":""}}]},
		{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"no"},{"type":"text","text":"on"}]},
		{"role":"tool","tool_call_id":"c1","name":"meteo","content":"sun"},
		{"role":"assistant","content":"Sun","reasoning":"then"}],
		"tools":[ {"type":"function", "function":{"name":"weather","description":"d","parameters":{"b":1,"a":2},"strict":true}}, {"function":{"name":"time"}} ],
		"tool_choice":{"type":"function","function":{"name":"time"}},"parallel_tool_calls":false,
		"documents":[{"title":"t"}],"chat_template_kwargs":{"x":1},"continue_final_message":true}`)
	want := []chat.Message{
		{Role: "system", Content: "be kind", Name: "boss"},
		{Role: "user", Content: "weather?"},
		{Role: "assistant", Reasoning: "hm", ToolCalls: []chat.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city":"Paris"}`}, {ID: "c2", Name: "time"}}},
		{Role: "tool", Content: "noon", Name: "time", ToolCallID: "c2"},
		{Role: "tool", Content: "sun", Name: "meteo", ToolCallID: "c1"},
		{Role: "assistant", Content: "Sun", Reasoning: "then"},
	}
	if !reflect.DeepEqual(r.Chat.Messages, want) {
		t.Errorf("got %+v\nwant %+v", r.Chat.Messages, want)
	}
	if got := fmt.Sprintf("%s", r.Chat.Tools); got != `[{"type":"function", "function":{"name":"weather","description":"d","parameters":{"b":1,"a":2},"strict":true}} {"function":{"name":"time"}}]` {
		t.Errorf("tools %s", got)
	}
	if r.ToolUse != ToolNamed || r.ToolName != "time" || !r.OneCall || len(r.Tools) != 2 || string(r.Tools[0].Parameters) != `{"b":1,"a":2}` {
		t.Errorf("%+v", r)
	}
	if !r.Chat.ContinueFinal || !r.Chat.NoGenerationPrompt || string(r.Chat.Kwargs) != `{"x":1}` || len(r.Chat.Documents) != 1 {
		t.Errorf("%+v", r.Chat)
	}
	none := read(t, chatBody(`,"tools":[`+function+`],"tool_choice":"none"`))
	if none.ToolUse != ToolNone || none.Chat.Tools != nil || none.OneCall {
		t.Errorf("tools that may not be called are in the prompt: %+v", none)
	}
}

// reasoning_effort is a variable of the template like others; what a client says by the
// variable's own name counts.
func TestReasoningEffortIsAVariableOfTheTemplate(t *testing.T) {
	for more, want := range map[string]string{
		``: ``, `,"chat_template_kwargs":{}`: ``,
		`,"reasoning_effort":"low"`:  `{"reasoning_effort":"low"}`,
		`,"reasoning_effort":"none"`: `{"thinking":false,"enable_thinking":false,"reasoning_effort":"none"}`,
		`,"reasoning_effort":"none","chat_template_kwargs": {"enable_thinking":true,"reasoning_effort":"x"} `: `{"thinking":false,"enable_thinking":true,"reasoning_effort":"x"}`,
	} {
		got := read(t, chatBody(more)).Chat.Kwargs
		if string(got) != want || len(got) > 0 && !json.Valid(got) {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// Every field that says what an answer looks like gives the form that it means, of all dialects.
func TestFormsOfAllDialects(t *testing.T) {
	const object = `{"type":"object"}`
	for body, want := range map[string]*grammar.Spec{
		chatBody(`,"response_format":{"type":"text"}`):                                                                         nil,
		chatBody(`,"response_format":{"type":"json_object"}`):                                                                  {Kind: grammar.KindObject},
		chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + object + `}}`):               {Kind: grammar.KindSchema, Schema: []byte(object), Loose: true},
		chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":` + object + `}}`): {Kind: grammar.KindSchema, Schema: []byte(object)},
		textBody(`,"response_format":{"type":"text"},"regex":"a+"`):                                                            {Kind: grammar.KindRegex, Regex: "a+"},
		textBody(`,"json_schema":"{\"type\":\"object\"}"`):                                                                     {Kind: grammar.KindSchema, Schema: []byte(object), Loose: true},
		textBody(`,"guided_json":` + object):                                                                                   {Kind: grammar.KindSchema, Schema: []byte(object), Loose: true},
		textBody(`,"guided_regex":"a"`):                                                                                        {Kind: grammar.KindRegex, Regex: "a"},
		textBody(`,"guided_choice":["a","b"]`):                                                                                 {Kind: grammar.KindChoice, Choice: []string{"a", "b"}},
		textBody(`,"structured_outputs":{"json":` + object + `,"disable_additional_properties":true}`):                         {Kind: grammar.KindSchema, Schema: []byte(object)},
		textBody(`,"structured_outputs":{"json_object":false,"regex":"a"}`):                                                    {Kind: grammar.KindRegex, Regex: "a"},
		textBody(`,"structured_outputs":{"choice":["a"],"json":null}`):                                                         {Kind: grammar.KindChoice, Choice: []string{"a"}},
		textBody(`,"structured_outputs":{"json_object":true}`):                                                                 {Kind: grammar.KindObject},
	} {
		if got := read(t, body).Params.Grammar; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// What changes the logits arrives in the order that the engine wants, each token once.
func TestWhatChangesLogitsIsReadInOrder(t *testing.T) {
	r := read(t, textBody(`,"logit_bias":{"9":1,"5":-100,"7":0.5,"5":2},"allowed_token_ids":[7,3,7],"bad_words":["a","b c"],"min_tokens":2,
		"presence_penalty":-2,"frequency_penalty":0.5,"repetition_penalty":1.5,"skip_special_tokens":false,"no_stop_trim":true,"n":2,"best_of":2,"echo":true`))
	p := r.Params
	if !reflect.DeepEqual(p.LogitBias, []sample.Bias{{ID: 5, Add: 2}, {ID: 7, Add: 0.5}, {ID: 9, Add: 1}}) || !reflect.DeepEqual(p.AllowedIDs, []int32{3, 7}) ||
		len(r.BadWords) != 2 || p.MinTokens != 2 || p.PresencePenalty != -2 || p.FrequencyPenalty != 0.5 || p.RepetitionPenalty != 1.5 ||
		!p.KeepSpecial || !p.IncludeStop || r.N != 2 || !r.Echo {
		t.Errorf("%+v", r)
	}
	if param, message := p.Validate(lim.Vocab); param != "" {
		t.Errorf("the engine refuses it: %s", message)
	}
	d := read(t, textBody(``)).Params
	if param, message := d.Validate(lim.Vocab); param != "" || d.RepetitionPenalty != 1 {
		t.Errorf("the engine refuses the defaults: %s", message)
	}
	if got := read(t, chatBody(`,"separate_reasoning":false,"include_reasoning":false`)).Thoughts; got != ThoughtsInText {
		t.Errorf("thoughts %v", got)
	}
	if got := read(t, chatBody(`,"include_reasoning":false`)).Thoughts; got != ThoughtsHidden {
		t.Errorf("thoughts %v", got)
	}
}

// What is taken here the engine takes, at every bound: a worker's refusal would come late, and in its
// words.
func TestWhatIsTakenTheEngineTakes(t *testing.T) {
	for _, name := range []string{"temperature", "top_p", "min_p", "top_k", "presence_penalty", "frequency_penalty", "repetition_penalty", "min_tokens", "logprobs"} {
		taken := 0
		for _, v := range []string{"-2", "-1", "-0.5", "0", "5e-324", "1e-9", "0.001", "0.01", "0.5", "1", "2", "5", "20"} {
			r, err := Parse(Completion, []byte(textBody(`,"`+name+`":`+v)), lim)
			if err != nil {
				if err.Param != name {
					t.Errorf("%s %s: refused for %s: %s", name, v, err.Param, err.Message)
				}
				continue
			}
			taken++
			if err := r.CheckContext(1, Capacity{Context: 100}); err != nil {
				continue
			}
			if param, message := r.Params.Validate(lim.Vocab); param != "" {
				t.Errorf("%s %s is taken, and the engine says: %s", name, v, message)
			}
		}
		if taken < 2 {
			t.Errorf("%s: %d values are taken", name, taken)
		}
	}
}
