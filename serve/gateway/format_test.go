package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"baton/engine/chat/reply"
	"baton/serve/openai"
)

const weatherTool = `{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`
const timeTool = `{"type":"function","function":{"name":"time"}}`

// constrained is the form that an answer has to have, printed.
func constrained(t *testing.T, style reply.Style, more string) (string, *openai.Error) {
	t.Helper()
	r, err := openai.Parse(openai.Chat, []byte(helloBody+more+"}"), openai.Limits{Vocab: 256})
	if err != nil {
		t.Fatal(err)
	}
	if err := constrain(r, style); err != nil {
		return "", err
	}
	if r.Params.Grammar == nil {
		return "", nil
	}
	if message := r.Params.Grammar.Validate(); message != "" {
		t.Errorf("%s: %s", more, message)
	}
	b, _ := json.Marshal(r.Params.Grammar)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(b)), nil
}

// A form holds for what is said: thoughts before it stay free, calls beside it stay possible where
// tools are given, and a call that has to come is in the model's own form.
func TestAFormHoldsForWhatIsSaid(t *testing.T) {
	const (
		regex    = `,"regex":"a+"`
		tools    = `,"tools":[` + weatherTool + `,` + timeTool + `]`
		required = tools + `,"tool_choice":"required"`
		named    = tools + `,"tool_choice":{"type":"function","function":{"name":"time"}}`
		one      = `[{"text":"<tool_call>\n{\"name\": \"time\", \"arguments\": "},{"schema":{"type":"object"}},{"text":"}\n</tool_call>"}]`
	)
	hermes, thinks, open := reply.Style{Calls: reply.Hermes}, reply.Style{Thinks: true, Calls: reply.Hermes}, reply.Style{Thinks: true, Open: true}
	for _, row := range []struct {
		style      reply.Style
		more, want string // want: "" is no form; else a part of it
	}{
		{reply.Style{}, ``, ``},
		{hermes, tools, ``}, // auto: the model is free
		{reply.Style{}, tools + `,"tool_choice":"none"`, ``},
		{reply.Style{}, regex, `{"kind":"regex","regex":"a+"}`},
		{hermes, regex + tools + `,"tool_choice":"none"`, `{"kind":"regex","regex":"a+"}`},
		{open, regex, `"parts":[{"until":"</think>"},{"regex":"\\s{0,8}"},{"regex":"a+"}]`},
		{thinks, regex, `"parts":[{"any":[[{"text":"<think>"},{"until":"</think>"},{"regex":"\\s{0,8}"}]],"max":1},{"regex":"a+"}]`},
		{open, `,"guided_choice":["a","b"]`, `{"any":[[{"text":"a"}],[{"text":"b"}]]}`},
		{open, `,"response_format":{"type":"json_object"}`, `{"schema":{"type":"object","additionalProperties":true}}`},
		{open, `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"string"}}}`, `"loose":true,"parts":[{"until":"</think>"},{"regex":"\\s{0,8}"},{"schema":{"type":"string"}}]`},
		{hermes, named, `{"kind":"sequence","parts":[{"any":[` + one + `]}]}`},
		{hermes, required, `{"regex":"\n?"}]],"min":1,"max":8}]`},
		{hermes, required + `,"parallel_tool_calls":false`, one + `]}]}`},
		{hermes, regex + tools, `"parts":[{"any":[[{"regex":"a+"}],[{"any":[[{"text":"<tool_call>`},
		{thinks, named, `{"until":"</think>"}`},
		{reply.Style{Calls: reply.Llama}, named, `{"text":"{\"name\": \"time\", \"parameters\": "}`},
	} {
		got, err := constrained(t, row.style, row.more)
		if err != nil || !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%+v %s:\n got %s %v\nwant %s", row.style, row.more, got, err, row.want)
		}
	}
	if _, err := constrained(t, reply.Style{}, tools); err == nil || err.Param != "tools" || err.Status != 400 {
		t.Errorf("a model that writes no calls: %v", err)
	}
	bad := `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"not":{}}}}}}]`
	var many []string
	for i := range openai.ToolsMax {
		many = append(many, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","parameters":{"type":"object"}}}`, i))
	}
	if got, err := constrained(t, thinks, `,"tools":[`+strings.Join(many, ",")+`],"tool_choice":"required"`); err != nil || got == "" {
		t.Errorf("as many tools as there may be: %v", err)
	}
	if got, err := constrained(t, hermes, bad); err != nil || got != "" {
		t.Errorf("a schema that need not be held is not judged: %s %v", got, err)
	}
	if _, err := constrained(t, hermes, bad+`,"tool_choice":"required"`); err == nil || err.Param != "tools[0].function.parameters" || !strings.Contains(err.Message, `"not"`) {
		t.Errorf("a schema that cannot be held: %v", err)
	}
	// What is wrong with one tool is said of that one, and of no form beside it.
	for inner, want := range map[string]string{`{"type":"object","properties":{"a":{"not":{}}}}`: `"not"`, `{"enum":[{"a":1}],"type":"string"}`: "", `false`: ""} {
		if !strings.HasPrefix(inner, "{") { // parameters are an object; what nothing fits lies inside
			inner = `{"type":"object","properties":{"a":false},"required":["a"]}`
		}
		second := `,"tools":[` + weatherTool + `,{"type":"function","function":{"name":"odd","parameters":` + inner + `}}]`
		for _, how := range []string{`,"tool_choice":"required"`, `,"response_format":{"type":"json_object"}`} {
			_, err := constrained(t, hermes, second+how)
			if err == nil || err.Status != 400 || err.Param != "tools[1].function.parameters" || !strings.Contains(err.Message, want) || !strings.Contains(err.Message, `"odd"`) || strings.Contains(err.Message, "alternative") {
				t.Errorf("%s%s: %v", inner, how, err)
			}
		}
	}
	// One that is not called is not judged.
	if _, err := constrained(t, hermes, `,"tools":[`+weatherTool+`,{"type":"function","function":{"name":"odd","parameters":{"not":{}}}}],"tool_choice":{"type":"function","function":{"name":"weather"}}`); err != nil {
		t.Errorf("the schema of a tool that is not called: %v", err)
	}
}

// A word that is not said is not said at the beginning of a text, and not behind a space.
func TestWordsThatAreNotSaid(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.post("/v1/completions", `{"prompt":"x","bad_words":[" ab","c"]}`)
	if r.quiet(); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var all []string
	for _, ids := range r.decodes[0].last.Params.Bad {
		all = append(all, byteText{}.Decode(ids))
	}
	if got := strings.Join(all, "|"); got != "ab| ab|c| c" {
		t.Errorf("%q", got)
	}
	if a := r.post("/v1/completions", `{"prompt":"x","bad_words":["`+strings.Repeat("a", 40)+`"]}`); a.status != 400 || !strings.Contains(a.body, `"param":"bad_words"`) {
		t.Errorf("a word of 40 tokens: %d %s", a.status, a.body)
	}
}
