package openai

import (
	"encoding/json"
	"fmt"
	"strings"
)

// roles that a chat may hold. "developer" is OpenAI's newer word for "system".
var roles = map[string]string{"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}

// readMessages reads the messages of a chat.
func readMessages(o *object) []Message {
	v, ok := o.raw("messages")
	if !ok {
		o.fail(invalid("messages", CodeMissing, "messages: required"))
		return nil
	}
	list := o.elements("messages", v, MessagesMax)
	if o.err == nil && len(list) == 0 {
		o.fail(invalid("messages", CodeValue, "messages: empty; want at least one message"))
	}
	msgs := make([]Message, 0, len(list))
	for i, e := range list {
		m, err := readMessage(fmt.Sprintf("messages[%d]", i), e)
		if err != nil {
			o.fail(err)
			return nil
		}
		msgs = append(msgs, m)
	}
	return msgs
}

func readMessage(at string, v []byte) (m Message, _ *Error) {
	if first(v) != '{' {
		return m, invalid(at, CodeType, "%s: want an object, got %s", at, shown(v))
	}
	fields, ok := readFields(v)
	if !ok {
		return m, invalid(at, CodeValue, "%s: more than %d fields", at, FieldsMax)
	}
	var role string
	if raw, ok := fields["role"]; !ok {
		return m, invalid(at+".role", CodeMissing, "%s.role: required", at)
	} else if isNull(raw) || json.Unmarshal(raw, &role) != nil {
		return m, invalid(at+".role", CodeType, "%s.role: want a string, got %s", at, shown(raw))
	}
	if m.Role = roles[role]; m.Role == "" {
		return m, invalid(at+".role", CodeUnsupported, "%s.role: %q is not supported; want system, developer, user or assistant", at, role)
	}
	for _, name := range [...]string{"tool_calls", "function_call", "audio"} {
		if raw, ok := fields[name]; ok && !isNull(raw) && !isEmpty(raw) {
			return m, invalid(at+"."+name, CodeUnsupported, "%s.%s: not supported", at, name)
		}
	}
	raw, ok := fields["content"]
	if !ok || isNull(raw) {
		return m, invalid(at+".content", CodeMissing, "%s.content: required", at)
	}
	text, err := readContent(at+".content", raw)
	m.Content = text
	return m, err
}

// readContent reads a string, or joins a list of text parts.
func readContent(at string, v []byte) (string, *Error) {
	switch first(v) {
	case '"':
		var text string
		json.Unmarshal(v, &text) // a string, as the whole is JSON
		return text, nil
	case '[':
	default:
		return "", invalid(at, CodeType, "%s: want a string or a list of parts, got %s", at, shown(v))
	}
	list := &object{}
	parts := list.elements(at, v, PartsMax)
	if list.err != nil {
		return "", list.err
	}
	var all strings.Builder
	for i, raw := range parts {
		var part struct {
			Type *string `json:"type"`
			Text *string `json:"text"`
		}
		at := fmt.Sprintf("%s[%d]", at, i)
		if first(raw) != '{' || json.Unmarshal(raw, &part) != nil || part.Type == nil {
			return "", invalid(at, CodeType, `%s: want {"type":"text","text":"…"}, got %s`, at, shown(raw))
		}
		if *part.Type != "text" {
			return "", invalid(at+".type", CodeUnsupported, "%s.type: %q is not supported; this model reads text", at, *part.Type)
		}
		if part.Text == nil {
			return "", invalid(at+".text", CodeMissing, "%s.text: required", at)
		}
		all.WriteString(*part.Text)
	}
	return all.String(), nil
}

// readPrompts reads a string, a list of strings, token ids or a list of token-id lists.
func readPrompts(o *object, lim Limits) []Prompt {
	const name = "prompt"
	v, ok := o.raw(name)
	if !ok {
		o.fail(invalid(name, CodeMissing, "prompt: required"))
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
		o.fail(invalid(name, CodeValue, "prompt: empty; want at least one prompt or token id"))
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
				o.fail(invalid(name, CodeValue, "prompt: an empty list of token ids"))
			}
		}
		prompts = append(prompts, p)
	}
	return prompts
}
