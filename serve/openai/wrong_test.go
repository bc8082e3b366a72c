package openai

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/engine/sample"
)

// Values of every kind of JSON, by what they are.
var ofKind = map[string][]string{
	"bool": {"true", "false"}, "int": {"1", "2.0"}, "number": {"0.5", "1.5e-1"}, "string": {`"x"`, `""`},
	"array": {"[]", `["x"]`, "[1]"}, "object": {"{}", `{"x":1}`},
}

const function = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`

// field is what a client may write into one, and what not.
type field struct {
	name   string
	e      Endpoint
	with   string   // other fields that it needs
	kinds  string   // of JSON, that are not wrong in themselves
	good   []string // accepted
	values []string // refused for their value, with the name of the field
}

var fieldsOfRequests = []field{
	{"presence_penalty", Chat, "", "int number", []string{"-2", "2", "0.5", "0"}, []string{"-2.01", "2.01", "1e10"}},
	{"frequency_penalty", Chat, "", "int number", []string{"-2", "2", "0.5", "0"}, []string{"-2.01", "2.01"}},
	{"repetition_penalty", Chat, "", "int number", []string{"0.01", "2", "1"}, []string{"0", "-1", "2.01"}},
	{"logit_bias", Chat, "", "object", []string{"{}", `{"5":-100,"6":100,"999":0.5}`, `{"5":1,"5":2}`},
		[]string{`{"1000":1}`, `{"-1":1}`, `{"x":1}`, `{"1.5":1}`, `{"05":1}`, `{"+5":1}`, `{"-0":1}`, `{"5":100.5}`, `{"5":-101}`, `{"99999999999999999999":1}`}},
	{"min_tokens", Chat, "", "int", []string{"0", "5"}, []string{"-1"}},
	{"n", Chat, "", "int", []string{"1", "8", "2.0"}, []string{"0", "-1", "9", "1000000"}},
	{"best_of", Completion, `,"n":2`, "int", []string{"2"}, []string{"0", "9"}},
	{"echo", Completion, "", "bool", []string{"true", "false"}, nil},
	{"include_stop_str_in_output", Chat, "", "bool", []string{"true", "false"}, nil},
	{"no_stop_trim", Chat, "", "bool", []string{"true", "false"}, nil},
	{"skip_special_tokens", Chat, "", "bool", []string{"true", "false"}, nil},
	{"allowed_token_ids", Chat, "", "array", []string{"[1,2]", "[999]", "[3,1,3]"}, []string{"[]", "[1000]", "[-1]"}},
	{"bad_words", Chat, "", "array", []string{"[]", `["x"]`}, []string{`[""]`, `["` + strings.Repeat("a", StopBytesMax+1) + `"]`,
		`[` + strings.Repeat(`"a",`, BadWordsMax) + `"a"]`}},
	{"response_format", Chat, "", "object", []string{`{"type":"text"}`, `{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`,
		`{"type":"json_schema","json_schema":{"name":"x","description":"d","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`}, nil},
	{"json_schema", Chat, "", "object string bool", []string{`{"type":"string"}`, `"{\"type\":\"string\"}"`, "true"}, []string{`"{"`, `""`}},
	{"regex", Chat, "", "string", []string{`"a+"`}, []string{`""`}},
	{"guided_json", Completion, "", "object string bool", []string{`{"type":"string"}`}, []string{`"{"`}},
	{"guided_regex", Completion, "", "string", []string{`"a+"`}, []string{`""`}},
	{"guided_choice", Completion, "", "array", []string{`["a","b"]`}, []string{"[]", `[""]`, `["` + strings.Repeat("a", ChoiceBytesMax+1) + `"]`}},
	{"structured_outputs", Completion, "", "object", []string{`{"regex":"a"}`, `{"choice":["a"]}`, `{"json":{"type":"string"}}`, `{"json_object":true}`, `{"json":"{}","disable_additional_properties":true}`},
		[]string{"{}", `{"json_object":false}`}},
	{"tools", Chat, "", "array", []string{"[]", "[" + function + "]", `[{"function":{"name":"f","description":"d","strict":true}}]`}, []string{"[" + strings.Repeat(function+",", ToolsMax) + function + "]"}},
	{"tool_choice", Chat, `,"tools":[` + function + `]`, "string object", []string{`"none"`, `"auto"`, `"required"`, `{"type":"function","function":{"name":"f"}}`}, []string{`"x"`, `""`}},
	{"parallel_tool_calls", Chat, "", "bool", []string{"true", "false"}, nil},
	{"documents", Chat, "", "array", []string{"[]", `[{"title":"t"}]`}, nil},
	{"chat_template_kwargs", Chat, "", "object", []string{"{}", `{"enable_thinking":false}`}, []string{`{"x":"` + strings.Repeat("a", KwargsBytesMax) + `"}`}},
	{"reasoning_effort", Chat, "", "string", []string{`"none"`, `"low"`, `"high"`}, []string{`""`, `"x"`}},
	{"include_reasoning", Chat, "", "bool", []string{"true", "false"}, nil},
	{"separate_reasoning", Chat, "", "bool", []string{"true", "false"}, nil},
	{"add_generation_prompt", Chat, "", "bool", []string{"true", "false"}, nil},
	{"continue_final_message", Chat, "", "bool", []string{"false"}, []string{"true"}},
}

// TestEachFieldIsWrongInEachWay writes a value of every kind of JSON, and every value out of its
// range, into each field: what is wrong is refused with 400 and the field's name, null asks for
// nothing, and what is right is taken.
func TestEachFieldIsWrongInEachWay(t *testing.T) {
	for _, f := range fieldsOfRequests {
		make := chatBody
		if f.e == Completion {
			make = textBody
		}
		parse := func(v string) *Error {
			_, err := Parse(f.e, []byte(make(f.with+`,"`+f.name+`":`+v)), lim)
			return err
		}
		for _, v := range append(f.good, "null") {
			if err := parse(v); err != nil && !(f.name == "best_of" && v == "null") {
				t.Errorf("%s: %.80s is fine, got %v", f.name, v, err)
			}
		}
		for kind, values := range ofKind {
			if slices.Contains(strings.Fields(f.kinds), kind) {
				continue
			}
			for _, v := range values {
				if err := parse(v); err == nil || err.Status != 400 || err.Code != CodeType || err.Param != f.name {
					t.Errorf("%s: %s is %s, want a refusal of its type, got %+v", f.name, v, kind, err)
				}
			}
		}
		for _, v := range f.values {
			if err := parse(v); err == nil || err.Status != 400 || err.Code != CodeValue || err.Param != f.name || !strings.Contains(err.Message, f.name) {
				t.Errorf("%s: %.80s, want a refusal of its value, got %+v", f.name, v, err)
			}
		}
	}
}

// What lies deeper is named with its place.
func TestWhatIsWrongInsideIsNamedWithItsPlace(t *testing.T) {
	tool := func(inner string) string {
		return chatBody(`,"tools":[` + function + `,{"type":"function","function":` + inner + `}]`)
	}
	says := func(message string) string {
		return `{"messages":[{"role":"user","content":"x"},` + message + `]}`
	}
	calls := func(call string) string { return says(`{"role":"assistant","tool_calls":[` + call + `]}`) }
	choice := func(v string) string { return chatBody(`,"tools":[` + function + `],"tool_choice":` + v) }
	format := func(v string) string { return chatBody(`,"response_format":` + v) }
	schema := func(v string) string { return format(`{"type":"json_schema","json_schema":` + v + `}`) }
	for _, row := range []struct{ body, param, code string }{
		{chatBody(`,"tools":[1]`), "tools[0]", CodeType},
		{chatBody(`,"tools":[{}]`), "tools[0].function", CodeMissing},
		{chatBody(`,"tools":[{"type":"web_search"}]`), "tools[0].type", CodeUnsupported},
		{chatBody(`,"tools":[{"type":7,"function":{"name":"f"}}]`), "tools[0].type", CodeType},
		{tool(`7`), "tools[1].function", CodeType},
		{tool(`{}`), "tools[1].function.name", CodeMissing},
		{tool(`{"name":7}`), "tools[1].function.name", CodeType},
		{tool(`{"name":""}`), "tools[1].function.name", CodeValue},
		{tool(`{"name":"a b"}`), "tools[1].function.name", CodeValue},
		{tool(`{"name":"` + strings.Repeat("a", 129) + `"}`), "tools[1].function.name", CodeValue},
		{tool(`{"name":"f"}`), "tools[1].function.name", CodeValue}, // twice
		{tool(`{"name":"g","description":7}`), "tools[1].function.description", CodeType},
		{tool(`{"name":"g","parameters":[]}`), "tools[1].function.parameters", CodeType},
		{tool(`{"name":"g","strict":1}`), "tools[1].function.strict", CodeType},
		{chatBody(`,"tool_choice":"required"`), "tool_choice", CodeValue}, // without tools
		{chatBody(`,"tools":[],"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice.function.name", CodeValue},
		{choice(`{}`), "tool_choice.function", CodeMissing},
		{choice(`{"type":"allowed_tools"}`), "tool_choice.type", CodeUnsupported},
		{choice(`{"function":7}`), "tool_choice.function", CodeType},
		{choice(`{"function":{}}`), "tool_choice.function.name", CodeMissing},
		{choice(`{"function":{"name":"g"}}`), "tool_choice.function.name", CodeValue},
		{says(`{"role":"tool","content":"x"}`), "messages[1].tool_call_id", CodeMissing},
		{says(`{"role":"tool","content":"x","tool_call_id":7}`), "messages[1].tool_call_id", CodeType},
		{says(`{"role":"tool","tool_call_id":"c"}`), "messages[1].content", CodeMissing},
		{says(`{"role":"function","name":"f","content":"x"}`), "messages[1].role", CodeUnsupported},
		{says(`{"role":"assistant","content":"x","function_call":{"name":"f"}}`), "messages[1].function_call", CodeUnsupported},
		{says(`{"role":"assistant","content":"x","audio":{"id":"x"}}`), "messages[1].audio", CodeUnsupported},
		{says(`{"role":"assistant"}`), "messages[1].content", CodeMissing},
		{says(`{"role":"assistant","tool_calls":[]}`), "messages[1].content", CodeMissing},
		{says(`{"role":"assistant","content":"x","reasoning_content":7}`), "messages[1].reasoning_content", CodeType},
		{says(`{"role":"user","content":"x","name":7}`), "messages[1].name", CodeType},
		{says(`{"role":"user","content":"x","name":"` + strings.Repeat("a", NameBytesMax+1) + `"}`), "messages[1].name", CodeValue},
		{says(`{"role":"assistant","tool_calls":{}}`), "messages[1].tool_calls", CodeType},
		{calls(`7`), "messages[1].tool_calls[0]", CodeType},
		{calls(`{}`), "messages[1].tool_calls[0].id", CodeMissing},
		{calls(`{"id":"c"}`), "messages[1].tool_calls[0].function", CodeMissing},
		{calls(`{"id":"c","type":"custom","function":{"name":"f","arguments":"{}"}}`), "messages[1].tool_calls[0].type", CodeUnsupported},
		{calls(`{"id":"c","function":{"arguments":"{}"}}`), "messages[1].tool_calls[0].function.name", CodeMissing},
		{calls(`{"id":"c","function":{"name":"f"}}`), "messages[1].tool_calls[0].function.arguments", CodeMissing},
		{calls(`{"id":"c","function":{"name":"f","arguments":{}}}`), "messages[1].tool_calls[0].function.arguments", CodeType},
		{calls(strings.Repeat(`{"id":"c","function":{"name":"f","arguments":""}},`, ToolCallsMax) + `{}`), "messages[1].tool_calls", CodeValue},
		{chatBody(`,"documents":["x"]`), "documents[0]", CodeType},
		{format(`{}`), "response_format.type", CodeMissing},
		{format(`{"type":7}`), "response_format.type", CodeType},
		{format(`{"type":"xml"}`), "response_format.type", CodeUnsupported},
		{format(`{"type":"structural_tag"}`), "response_format.type", CodeUnsupported},
		{format(`{"type":"json_schema"}`), "response_format.json_schema", CodeMissing},
		{schema(`7`), "response_format.json_schema", CodeType},
		{schema(`{}`), "response_format.json_schema.name", CodeMissing},
		{schema(`{"name":7}`), "response_format.json_schema.name", CodeType},
		{schema(`{"name":"a b","schema":{}}`), "response_format.json_schema.name", CodeValue},
		{schema(`{"name":"x"}`), "response_format.json_schema.schema", CodeMissing},
		{schema(`{"name":"x","schema":[]}`), "response_format.json_schema.schema", CodeType},
		{schema(`{"name":"x","schema":{},"strict":"yes"}`), "response_format.json_schema.strict", CodeType},
		{chatBody(`,"structured_outputs":{"grammar":"x"}`), "structured_outputs.grammar", CodeUnsupported},
		{chatBody(`,"structured_outputs":{"json":[]}`), "structured_outputs.json", CodeType},
		{chatBody(`,"structured_outputs":{"regex":"a","choice":["a"]}`), "structured_outputs.choice", CodeValue},
		{chatBody(`,"structured_outputs":{"regex":"a","disable_any_whitespace":true}`), "structured_outputs.disable_any_whitespace", CodeUnsupported},
		{chatBody(`,"response_format":{"type":"json_object"},"regex":"a"`), "regex", CodeValue}, // two forms
		{textBody(`,"guided_choice":["a"],"structured_outputs":{"regex":"a"}`), "structured_outputs", CodeValue},
		{textBody(`,"best_of":2`), "best_of", CodeUnsupported},
		{textBody(`,"n":3,"best_of":2`), "best_of", CodeUnsupported},
		{textBody(`,"echo":true,"logprobs":0`), "echo", CodeUnsupported},
		{chatBody(`,"echo":true`), "echo", CodeUnsupported},
		{chatBody(`,"logit_bias":{"5":"x"}`), "logit_bias", CodeType},
		{chatBody(`,"logit_bias":{"5":null}`), "logit_bias", CodeType},
		{`{"messages":[{"role":"assistant","content":"x"}],"continue_final_message":true,"add_generation_prompt":true}`, "continue_final_message", CodeValue},
	} {
		_, err := Parse(endpointOf(row.body), []byte(row.body), lim)
		if err == nil || err.Status != 400 || err.Param != row.param || err.Code != row.code || !strings.HasPrefix(err.Message, row.param+": ") {
			t.Errorf("%.200s:\n got %+v\nwant 400 %q %q", row.body, err, row.param, row.code)
		}
	}
	var all []string
	for i := range sample.BiasesMax + 1 {
		all = append(all, fmt.Sprintf(`"%d":1`, i))
	}
	if _, err := Parse(Chat, []byte(chatBody(`,"logit_bias":{`+strings.Join(all, ",")+`}`)), Limits{Vocab: 1 << 20}); param(err) != "logit_bias" {
		t.Errorf("%d biases: %v", len(all), err)
	}
}

func endpointOf(body string) Endpoint {
	if strings.Contains(body, `"prompt"`) {
		return Completion
	}
	return Chat
}
