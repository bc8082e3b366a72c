package chat

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"baton/engine/chat/reply"
)

var (
	toolA = json.RawMessage(`{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}`)
	toolB = json.RawMessage(`{"type":"function","function":{"name":"b"}}`)
)

// TestTemplateWithoutToolsGetsThemAsText holds C5: tools in front of or behind the system's text,
// calls and results as turns.
func TestTemplateWithoutToolsGetsThemAsText(t *testing.T) {
	tpl := template(t, "recall", vocabulary(t))
	head := toolsHead + "\n" + `{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}` + "\n" +
		`{"type": "function", "function": {"name": "b"}}` + toolsTail
	c := Conversation{Tools: []json.RawMessage{toolA, toolB}, Messages: []Message{
		{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Both?"},
		{Role: "assistant", Content: "Yes.", ToolCalls: []ToolCall{{Name: "a", Arguments: `{"x":[1,"é"]}`}, {Name: "b\"", Arguments: ""}}},
		{Role: "tool", Content: "1"}, {Role: "tool", Content: "2"}, {Role: "user", Content: "And?"},
	}}
	said := "<|assistant|>Yes.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": [1, \"é\"]}}\n</tool_call>\n<tool_call>\n{\"name\": \"b\\\"\", \"arguments\": {}}\n</tool_call><|end|>" +
		"<|user|><tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|end|><|user|>And?<|end|><|assistant|>"
	want := "<|system|>Be brief.\n\n" + head + "<|end|><|user|>Both?<|end|>" + said
	p, err := tpl.Prompt(c)
	if err != nil || p.Text != want || p.Reply.Calls != reply.Hermes {
		t.Errorf("%q, %v, %v, want %q", p.Text, p.Reply, err, want)
	}
	c.Messages = c.Messages[1:]
	if p, err = tpl.Prompt(c); err != nil || p.Text != "<|system|>"+head+"<|end|><|user|>Both?<|end|>"+said {
		t.Errorf("without system: %q, %v", p.Text, err)
	}
	c.Tools = nil
	if p, err = tpl.Prompt(c); err != nil || p.Text != "<|user|>Both?<|end|>"+said || p.Reply.Calls != reply.NoCalls {
		t.Errorf("without tools: %q, %v, %v", p.Text, p.Reply, err)
	}
	systemless, err := New("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}", vocabulary(t))
	if err != nil {
		t.Fatal(err)
	}
	c = Conversation{Messages: c.Messages[:1], Tools: []json.RawMessage{toolA, toolB}}
	if p, err = systemless.Prompt(c); err != nil || p.Text != "[user]"+head+"\n\nBoth?" {
		t.Errorf("a template that refuses systems: %q, %v", p.Text, err)
	}
	var refused *Refused
	if _, err = systemless.Prompt(Conversation{Messages: []Message{{Role: "system", Content: "x"}, {Role: "user"}}}); !errors.As(err, &refused) {
		t.Errorf("a client's system is not hidden: %v", err)
	}
}

// TestCallsOfTheModelsOwnStayWhereToolsAreText: a template that knows calls but lists no tools.
func TestCallsOfTheModelsOwnStayWhereToolsAreText(t *testing.T) {
	tpl := plain(t, "deepseek-v3", vocabulary(t))
	c := Conversation{Messages: []Message{{Role: "user", Content: "a"}, {Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: `{"x":1}`}}}, {Role: "tool", Content: "2"}}}
	p, err := tpl.Prompt(c)
	if err != nil || !strings.Contains(p.Text, "function<｜tool▁sep｜>f\n```json\n{\"x\":1}\n```") {
		t.Errorf("%q, %v", p.Text, err)
	}
	c.Tools = []json.RawMessage{toolA}
	if p, err = tpl.Prompt(c); err != nil || !strings.Contains(p.Text, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}") || !strings.HasPrefix(p.Text, "<|begin|># Tools") || p.Reply.Calls != reply.Hermes {
		t.Errorf("%q, %v, %v", p.Text, p.Reply, err)
	}
}

// TestStylesOfReplies reads them from templates, and from what a prompt ends with.
func TestStylesOfReplies(t *testing.T) {
	tok := vocabulary(t)
	user := []Message{{Role: "user", Content: "<think> a"}}
	with := func(c Conversation) Conversation {
		if c.Messages == nil {
			c.Messages = user
		}
		return c
	}
	tools := []json.RawMessage{toolA}
	said := func(s string) []Message { return append(slices.Clone(user), Message{Role: "assistant", Content: s}) }
	for _, r := range []struct {
		template string
		c        Conversation
		want     reply.Style
	}{
		{"recall", Conversation{}, reply.Style{}},
		{"qwen2.5", Conversation{Tools: tools}, reply.Style{Calls: reply.Hermes}},
		{"qwen2.5", Conversation{}, reply.Style{}},
		{"calls", Conversation{Tools: tools}, reply.Style{Calls: reply.Llama}},
		{"qwen3", Conversation{Tools: tools}, reply.Style{Calls: reply.Hermes, Thinks: true}},
		{"qwen3", Conversation{Kwargs: []byte(`{"enable_thinking": true}`)}, reply.Style{Thinks: true}},
		{"qwen3", Conversation{Kwargs: []byte(`{"enable_thinking": false}`)}, reply.Style{}},
		{"qwen3", Conversation{Messages: said("<think>\nhm"), ContinueFinal: true}, reply.Style{Thinks: true, Open: true}},
		{"qwen3", Conversation{Messages: said("<think>\nhm\n</think>\n\nSo"), ContinueFinal: true}, reply.Style{}},
		{"opening", Conversation{Tools: tools}, reply.Style{Calls: reply.Hermes, Thinks: true, Open: true}},
		{"opening", Conversation{Kwargs: []byte(`{"enable_thinking": false}`)}, reply.Style{}},
		{"opening", Conversation{NoGenerationPrompt: true}, reply.Style{Thinks: true}},
	} {
		p, err := template(t, r.template, tok).Prompt(with(r.c))
		if err != nil || p.Reply != r.want {
			t.Errorf("%s, %+v: %+v, %v, want %+v", r.template, r.c, p.Reply, err, r.want)
		}
	}
	for name, want := range map[string]reply.Style{
		"recall": {Calls: reply.Hermes}, "smollm2": {Calls: reply.Hermes}, "qwen2.5": {Calls: reply.Hermes}, "qwen3": {Calls: reply.Hermes, Thinks: true},
		"calls": {Calls: reply.Llama}, "opening": {Calls: reply.Hermes, Thinks: true, Open: true}, "deepseek-v3": {Calls: reply.Hermes},
	} {
		if got := template(t, name, tok).Reply(); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	marks := small(t, []string{"a", "<", "<think>", "</think>"}, []int32{1, 1, 1, 3})
	for src, want := range map[string]reply.Style{
		"{{ messages[0].content }}{{ tools }}":        {Calls: reply.Hermes},
		"{{ messages[0].content }}{{ tools }}<think>": {Calls: reply.Hermes, Thinks: true, Open: true, Special: true},
	} {
		if tpl, err := New(src, marks); err != nil || tpl.Reply() != want {
			t.Errorf("%s: %v, %v", src, tpl.Reply(), err)
		}
	}
	xml, err := New("{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}<tool_call><function=", tok)
	if err != nil || xml.Reply().Calls != reply.Hermes {
		t.Fatalf("calls in XML: %v, %v", xml.Reply(), err)
	}
	if p, err := xml.Prompt(Conversation{Messages: user, Tools: tools}); err != nil || !strings.HasPrefix(p.Text, toolsHead) || !strings.HasSuffix(p.Text, "<think> aNone<tool_call><function=") {
		t.Errorf("calls in XML, which nobody reads: %q, %v", p.Text, err)
	}
}

func TestFromConfig(t *testing.T) {
	hello := "{{ bos_token }}{{ messages[0].content }}"
	for _, r := range []struct{ config, file, want, wrong string }{
		{`{"bos_token":"<s>","chat_template":"` + hello + `{{ eos_token }}"}`, "", "<s>hi", ""},
		{`{"bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>","pad_token":null,"chat_template":"` + hello + `{{ eos_token }}{{ pad_token }}"}`, "", "<s>hi</s>", ""},
		{`{"bos_token":"<s>","chat_template":"no"}`, hello, "<s>hi", ""},
		{``, hello, "hi", ""},
		{`{"image_token":"x","extra_special_tokens":{"image_token":"<i>","n":1},"chat_template":"{{ image_token }}{{ messages[0].content }}"}`, "", "<i>hi", ""},
		{`{"chat_template":[{"name":"tool_use","template":"t{{ messages[0].content }}"},{"name":"default","template":"d{{ messages[0].content }}"}]}`, "", "dhi", ""},
		{`{"chat_template":{"default":"d{{ messages[0].content }}"}}`, "", "dhi", ""},
		{`{"chat_template":[{"name":"tool_use","template":"t{{ messages[0].content }}"}]}`, "", "thi", ""},
		{`{"chat_template":null}`, "", "", ErrNone.Error()},
		{`{}`, "", "", ErrNone.Error()},
		{``, "", "", ErrNone.Error()},
		{`{"chat_template":[{"name":"rag","template":"t"}]}`, "", "", ErrNone.Error()},
		{`{"chat_template":1}`, "", "", "want a text, or a list of at most 32 objects with name and template"},
		{`{"chat_template":`, "", "", "chat: tokenizer_config.json: "},
		{`{"chat_template":"{% if"}`, "", "", "chat: the template is broken: line 1: "},
		{`{"chat_template":[{"name":"default","template":"d"},{"name":"tool_use","template":"{% x"}]}`, "", "", `the template "tool_use": chat: the template is broken`},
	} {
		tpl, err := FromConfig([]byte(r.config), []byte(r.file), nil)
		if r.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), r.wrong) {
				t.Errorf("%s: error %v, want %s", r.config, err, r.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", r.config, err)
			continue
		}
		if got, err := tpl.Render([]Message{{Role: "user", Content: "hi"}}); err != nil || got != r.want {
			t.Errorf("%s: %q, %v, want %q", r.config, got, err, r.want)
		}
	}
}

// TestTemplateForToolsIsTakenWithTools where a model brings two.
func TestTemplateForToolsIsTakenWithTools(t *testing.T) {
	config := `{"chat_template":[{"name":"tool_use","template":"t{{ messages[0].content }}{{ tools[0].function.name }}<tool_call>"},{"name":"default","template":"d{{ messages[0].content }}"}]}`
	tpl, err := FromConfig([]byte(config), nil, vocabulary(t))
	if err != nil {
		t.Fatal(err)
	}
	c := Conversation{Messages: []Message{{Role: "user", Content: "hi"}}}
	if p, err := tpl.Prompt(c); err != nil || p.Text != "dhi" {
		t.Errorf("%q, %v", p.Text, err)
	}
	c.Tools = []json.RawMessage{toolA}
	if p, err := tpl.Prompt(c); err != nil || p.Text != "thia<tool_call>" || p.Reply.Calls != reply.Hermes {
		t.Errorf("%q, %v, %v", p.Text, p.Reply, err)
	}
}
