package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"baton/engine/chat"
)

// roles that a chat may hold. "developer" is OpenAI's newer word for "system".
var roles = map[string]string{"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

// readMessages reads the messages of a chat.
func readMessages(o *object) []chat.Message {
	v, ok := o.raw("messages")
	if !ok {
		o.bad("messages", CodeMissing, "required")
		return nil
	}
	list := o.elements("messages", v, MessagesMax)
	if o.err == nil && len(list) == 0 {
		o.bad("messages", CodeValue, "empty; want at least one message")
	}
	msgs := make([]chat.Message, 0, len(list))
	called := map[string]string{} // names of the tools that were called, by the call's id
	for i, e := range list {
		m, ok := o.inside(fmt.Sprintf("messages[%d]", i), e)
		if !ok {
			return nil
		}
		msgs = append(msgs, readMessage(m, called))
		if o.took(m); o.err != nil {
			return nil
		}
	}
	return msgs
}

// elsewhere refuses the field that says what the other endpoint has to read.
func (o *object) elsewhere(name, here string) {
	if v, ok := o.raw(name); ok && !asksForNothing(v, []string{`""`, "[]"}) {
		o.bad(name, CodeUnsupported, "not read here; send %s", here)
	}
}

// readMessage reads one message. A tool's that does not say which tool it is takes the name from
// the call that it answers, as called has it.
func readMessage(o *object, called map[string]string) (m chat.Message) {
	role, ok := o.string("role")
	if !ok {
		o.bad("role", CodeMissing, "required")
		return m
	}
	if m.Role = roles[role]; m.Role == "" && o.err == nil {
		o.bad("role", CodeUnsupported, "%q is not supported; want system, developer, user, assistant or tool", role)
	}
	for _, name := range [...]string{"function_call", "audio"} {
		if raw, ok := o.raw(name); ok && !isEmpty(raw) {
			o.bad(name, CodeUnsupported, "not supported")
		}
	}
	m.Name = o.text("name", NameBytesMax)
	switch m.Role {
	case "assistant":
		m.ToolCalls = readToolCalls(o)
		for _, c := range m.ToolCalls {
			called[c.ID] = c.Name
		}
		// vLLM's newer name for the same.
		if m.Reasoning, ok = o.string("reasoning_content"); !ok {
			m.Reasoning, _ = o.string("reasoning")
		}
	case "tool":
		if m.ToolCallID = o.text("tool_call_id", NameBytesMax); m.ToolCallID == "" {
			o.bad("tool_call_id", CodeMissing, "required of a message with the role tool")
		}
		if m.Name == "" {
			m.Name = called[m.ToolCallID]
		}
	}
	raw, ok := o.raw("content")
	switch {
	case ok:
		m.Content = readContent(o, "content", raw)
	case len(m.ToolCalls) == 0:
		o.bad("content", CodeMissing, "required")
	}
	return m
}

// readToolCalls reads the calls that an assistant's message made.
func readToolCalls(o *object) []chat.ToolCall {
	const name = "tool_calls"
	v, ok := o.raw(name)
	if !ok {
		return nil
	}
	list := o.elements(name, v, ToolCallsMax)
	calls := make([]chat.ToolCall, 0, len(list))
	for i, e := range list {
		one, ok := o.inside(fmt.Sprintf("%s[%d]", name, i), e)
		if !ok {
			return nil
		}
		calls = append(calls, readToolCall(one))
		if o.took(one); o.err != nil {
			return nil
		}
	}
	return calls
}

func readToolCall(o *object) (c chat.ToolCall) {
	if c.ID = o.text("id", NameBytesMax); c.ID == "" {
		o.bad("id", CodeMissing, "required")
	}
	f, ok := o.function()
	if !ok {
		return c
	}
	c.Name = f.toolName("name")
	if c.Arguments, ok = f.string("arguments"); !ok {
		f.bad("arguments", CodeMissing, "required: the arguments as JSON in a string")
	}
	o.took(f)
	return c
}

// text reads a string of at most max bytes; "" is a missing one.
func (o *object) text(name string, max int) string {
	s, _ := o.string(name)
	if len(s) > max {
		o.bad(name, CodeValue, "%d bytes, at most %d", len(s), max)
	}
	return s
}

// readContent reads a string, or joins a list of text parts.
func readContent(o *object, name string, v []byte) string {
	switch first(v) {
	case '"':
		var text string
		json.Unmarshal(v, &text) // a string, as the whole is JSON
		return text
	case '[':
	default:
		o.wrongType(name, "a string or a list of parts", v)
		return ""
	}
	var all strings.Builder
	for i, raw := range o.elements(name, v, PartsMax) {
		var part struct {
			Type *string `json:"type"`
			Text *string `json:"text"`
		}
		at := fmt.Sprintf("%s[%d]", name, i)
		switch {
		case first(raw) != '{' || json.Unmarshal(raw, &part) != nil || part.Type == nil:
			o.wrongType(at, `{"type":"text","text":"…"}`, raw)
		case *part.Type != "text":
			o.bad(at+".type", CodeUnsupported, "%q is not supported; this model reads text", *part.Type)
		case part.Text == nil:
			o.bad(at+".text", CodeMissing, "required")
		default:
			all.WriteString(*part.Text)
			continue
		}
		return ""
	}
	return all.String()
}

// readPrompts reads a string, a list of strings, token ids or a list of token-id lists.
func readPrompts(o *object, lim Limits) []Prompt {
	const name = "prompt"
	v, ok := o.raw(name)
	if !ok {
		o.bad(name, CodeMissing, "required")
		return nil
	}
	switch first(v) {
	case '"':
		s, _ := o.string(name)
		return []Prompt{{Text: s}}
	case '[':
	default:
		o.wrongType(name, "a string, a list of strings, token ids or a list of token id lists", v)
		return nil
	}
	var kind byte // of the first element
	walkArray(v, func(e json.RawMessage) bool {
		kind = first(e)
		return false
	})
	if kind == 0 {
		o.bad(name, CodeValue, "empty; want at least one prompt or token id")
		return nil
	}
	if kind != '"' && kind != '[' {
		return []Prompt{{Tokens: o.tokenIDs(name, v, TokensMax, lim.Vocab)}}
	}
	list := o.elements(name, v, PromptsMax)
	if o.err != nil {
		return nil
	}
	prompts := make([]Prompt, 0, len(list))
	for _, e := range list {
		var p Prompt
		switch {
		case first(e) != kind:
			o.wrongType(name, "prompts of one kind", e)
		case kind == '"':
			if json.Unmarshal(e, &p.Text) != nil {
				o.wrongType(name, "a string", e)
			}
		default:
			p.Tokens = o.tokenIDs(name, e, TokensMax, lim.Vocab)
			if len(p.Tokens) == 0 {
				o.bad(name, CodeValue, "an empty list of token ids")
			}
		}
		prompts = append(prompts, p)
	}
	return prompts
}
