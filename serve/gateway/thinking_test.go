package gateway

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"baton/engine/chat"
)

// thinkingRig is the embedded model behind the template of a family that thinks and calls. What it
// says is none of that family's wisdom; the forms that hold it are the real ones, all the way.
func thinkingRig(t *testing.T, roles ...string) *rig {
	t.Helper()
	src, err := os.ReadFile("../../engine/chat/testdata/qwen3.jinja")
	if err != nil {
		t.Fatal(err)
	}
	text := recallText(t)
	if text.chat, err = chat.New(string(src), text.tok); err != nil {
		t.Fatal(err)
	}
	return newRecallRigOf(t, text, roles...)
}

// thought is a choice of a model that thinks.
type thought struct {
	Message struct {
		Content   *string
		Reasoning string `json:"reasoning_content"`
		Calls     []struct {
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	Finish string `json:"finish_reason"`
}

// A model that may think calls where it must and keeps to a form, with thoughts off; with thoughts on
// they come first, free and apart. So it is whole and streamed, on two workers as on one.
func TestAModelThatThinksThroughTheWholeHouse(t *testing.T) {
	const (
		ask         = `{"messages":[{"role":"system","content":"The code of Frank is cedar robin."},{"role":"user","content":"What is the code of Frank?"}],"temperature":0`
		short, long = `,"max_tokens":100`, `,"max_tokens":300`
		tool        = `,"tools":[{"type":"function","function":{"name":"note","parameters":{"type":"object","properties":{"code":{"enum":["cedar robin","amber falcon"]}},"required":["code"],"additionalProperties":false}}}]`
		form        = `,"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","properties":{"code":{"enum":["cedar robin","amber falcon"]}},"required":["code"],"additionalProperties":false}}}`
		off         = `,"chat_template_kwargs":{"enable_thinking":false}`
	)
	object := regexp.MustCompile(`^\{\s*"code"\s*:\s*"(cedar robin|amber falcon)"\s*\}$`)
	before := map[string]string{} // of each way to serve
	for _, roles := range [][]string{{RolePrefill, RoleDecode}, {RoleUnified}} {
		r := thinkingRig(t, roles...)
		for name, body := range map[string]string{
			"call": ask + short + tool + `,"tool_choice":"required","parallel_tool_calls":false`, "call, off": ask + long + tool + `,"tool_choice":"required","parallel_tool_calls":false` + off,
			"form": ask + short + form, "form, off": ask + long + form + off,
		} {
			a := r.post("/v1/chat/completions", body+`}`)
			var got struct{ Choices []thought }
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Choices) != 1 {
				t.Errorf("%v %s: %d %s", roles, name, a.status, a.body)
				continue
			}
			c := got.Choices[0]
			switch {
			case !strings.HasSuffix(name, "off"): // it thinks, and this model never comes to an end: thoughts stay free
				if c.Message.Reasoning == "" || c.Message.Content == nil || *c.Message.Content != "" || len(c.Message.Calls) > 0 || c.Finish != "length" || !strings.Contains(a.body, `"reasoning_tokens":9`) {
					t.Errorf("%v %s: %s", roles, name, a.body)
				}
				hidden := r.post("/v1/chat/completions", body+`,"include_reasoning":false,"logprobs":true,"return_token_ids":true}`)
				if strings.Contains(hidden.body, "reasoning_content") || strings.Contains(hidden.body, `"logprob"`) || strings.Contains(hidden.body, `"token_ids":[`) {
					t.Errorf("%v %s, hidden: %s", roles, name, hidden.body)
				}
			case strings.HasPrefix(name, "call"):
				if len(c.Message.Calls) != 1 || c.Finish != "tool_calls" || c.Message.Calls[0].Function.Name != "note" || !object.MatchString(c.Message.Calls[0].Function.Arguments) {
					t.Errorf("%v %s: %s", roles, name, a.body)
				}
			case c.Message.Content == nil || !object.MatchString(*c.Message.Content) || c.Finish != "stop":
				t.Errorf("%v %s: %s", roles, name, a.body)
			}
			if strings.HasSuffix(name, "off") && c.Message.Reasoning != "" {
				t.Errorf("%v %s: thoughts %q", roles, name, c.Message.Reasoning)
			}
			all := drawn.ReplaceAllString(string(mustJSON(t, c)), "")
			if said, ok := before[name]; ok && said != all {
				t.Errorf("%s: two workers say %s, one says %s", name, said, all)
			}
			before[name] = all
			s := r.post("/v1/chat/completions", body+`,"stream":true}`)
			if n, code := s.terminal(); n != 1 || code != "" {
				t.Errorf("%v %s, streamed: %d ends, %s", roles, name, n, code)
			}
		}
		r.quiet()
		r.nothingHeld()
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
