package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"baton/engine/chat"
)

// Tool is a function that the model may call.
type Tool struct {
	Name       string
	Parameters json.RawMessage // JSON schema of its arguments; nil: none was given
}

// ToolUse says whether the model has to call a tool.
type ToolUse uint8

const (
	ToolAuto     ToolUse = iota // it may; what it writes is read for calls, and not forced into their form
	ToolNone                    // it cannot: the prompt has no tools
	ToolRequired                // at least one
	ToolNamed                   // the one with that name
)

// toolName is OpenAI's rule, with the dots and colons of names that come through MCP, and more
// room for them.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func (o *object) toolName(name string) string {
	s, ok := o.string(name)
	switch {
	case !ok:
		o.bad(name, CodeMissing, "required")
	case o.err == nil && !toolName.MatchString(s):
		o.bad(name, CodeValue, "%q is not a name of 1 to 128 letters, digits and _ . : -", cut(s))
	}
	return s
}

// cut shortens a client's word for a message.
func cut(s string) string { return shown([]byte(s)) }

// onlyFunction refuses other kinds of tools and calls; a missing one is a function.
func (o *object) onlyFunction(name string) {
	if kind, ok := o.string(name); ok && kind != "function" {
		o.bad(name, CodeUnsupported, "%q is not supported; want function", cut(kind))
	}
}

// readConversation reads everything of a chat that says what the prompt is, and what the reply
// may call.
func readConversation(o *object, r *Request) {
	r.Chat.Messages = readMessages(o)
	raws := readTools(o, r)
	readToolChoice(o, r)
	if r.ToolUse != ToolNone {
		r.Chat.Tools = raws
	}
	r.OneCall = !o.bool("parallel_tool_calls", true)
	r.Chat.Documents = readDocuments(o)
	readOpenEnd(o, r)
	r.Chat.Kwargs = readKwargs(o)
}

func readTools(o *object, r *Request) (raws []json.RawMessage) {
	const name = "tools"
	v, ok := o.raw(name)
	if !ok {
		return nil
	}
	for i, e := range o.elements(name, v, ToolsMax) {
		one, ok := o.inside(fmt.Sprintf("%s[%d]", name, i), e)
		if !ok {
			return nil
		}
		t := readTool(one)
		if slices.ContainsFunc(r.Tools, func(other Tool) bool { return other.Name == t.Name }) {
			one.bad("function.name", CodeValue, "%q is the name of another tool, too", cut(t.Name))
		}
		if o.took(one); o.err != nil {
			return nil
		}
		r.Tools = append(r.Tools, t)
		raws = append(raws, bytes.Clone(e)) // the body is not kept
	}
	return raws
}

// function reads the part of a tool, or of a call, that says what of its type it is.
func (o *object) function() (f *object, ok bool) {
	o.onlyFunction("type")
	v, ok := o.raw("function")
	if !ok {
		o.bad("function", CodeMissing, "required")
		return nil, false
	}
	return o.inside("function", v)
}

func readTool(o *object) (t Tool) {
	f, ok := o.function()
	if !ok {
		return t
	}
	t.Name = f.toolName("name")
	f.string("description") // its type is checked; the template has it
	if v, ok := f.raw("parameters"); ok {
		if first(v) != '{' {
			f.wrongType("parameters", "a JSON schema, which is an object", v)
		}
		t.Parameters = bytes.Clone(v)
	}
	f.bool("strict", false) // its type is checked; with auto the model is free all the same
	o.took(f)
	return t
}

// readToolChoice reads "none", "auto", "required" or {"type":"function","function":{"name":"…"}}.
func readToolChoice(o *object, r *Request) {
	const name = "tool_choice"
	v, ok := o.raw(name)
	if !ok {
		return
	}
	switch first(v) {
	case '"':
		word, _ := o.string(name)
		use, known := map[string]ToolUse{"auto": ToolAuto, "none": ToolNone, "required": ToolRequired}[word]
		if !known {
			o.bad(name, CodeValue, `%q is not none, auto, required or {"type":"function","function":{"name":"…"}}`, cut(word))
		}
		r.ToolUse = use
	case '{':
		r.ToolUse = ToolNamed
		choice, ok := o.inside(name, v)
		if !ok {
			return
		}
		choice.onlyFunction("type")
		if raw, ok := choice.raw("function"); !ok {
			choice.bad("function", CodeMissing, "required")
		} else if f, ok := choice.inside("function", raw); ok {
			r.ToolName = f.toolName("name")
			if f.err == nil && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == r.ToolName }) {
				f.bad("name", CodeValue, "%q is none of the tools", r.ToolName)
			}
			choice.took(f)
		}
		o.took(choice)
	default:
		o.wrongType(name, "a string or an object", v)
	}
	if r.ToolUse >= ToolRequired && len(r.Tools) == 0 {
		o.bad(name, CodeValue, "only allowed when tools are given")
	}
}

// readDocuments reads the objects that templates of retrieval print.
func readDocuments(o *object) []json.RawMessage {
	const name = "documents"
	v, ok := o.raw(name)
	if !ok {
		return nil
	}
	var docs []json.RawMessage
	for i, e := range o.elements(name, v, DocumentsMax) {
		if first(e) != '{' {
			o.wrongType(name+"["+strconv.Itoa(i)+"]", "an object", e)
			return nil
		}
		docs = append(docs, bytes.Clone(e))
	}
	return docs
}

// readOpenEnd reads whether the prompt ends with the beginning of a reply, or inside the last
// message, which the reply goes on with.
func readOpenEnd(o *object, r *Request) {
	const begin, goOn = "add_generation_prompt", "continue_final_message"
	_, said := o.raw(begin)
	generation := o.bool(begin, true)
	r.Chat.ContinueFinal = o.bool(goOn, false)
	r.Chat.NoGenerationPrompt = !generation || r.Chat.ContinueFinal
	if !r.Chat.ContinueFinal || o.err != nil {
		return
	}
	if said && generation {
		o.bad(goOn, CodeValue, "not together with add_generation_prompt, which begins another message")
	}
	if last := r.Chat.Messages[len(r.Chat.Messages)-1]; last.Role != "assistant" || len(last.ToolCalls) > 0 {
		o.bad(goOn, CodeValue, "only allowed when the last message is an assistant's, without tool calls")
	}
}

// efforts are OpenAI's words for reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// readKwargs reads the variables that a client gives to the template. reasoning_effort is one of
// them; "none" also turns off the thoughts of templates that know only on and off.
func readKwargs(o *object) json.RawMessage {
	const name, effortName = "chat_template_kwargs", "reasoning_effort"
	kwargs := []byte("{}")
	given := map[string]json.RawMessage{}
	if v, ok := o.raw(name); ok {
		inner, ok := o.inside(name, v)
		switch {
		case !ok:
			return nil
		case len(v) > KwargsBytesMax:
			o.bad(name, CodeValue, "%d bytes, at most %d", len(v), KwargsBytesMax)
			return nil
		}
		kwargs, given = bytes.Clone(bytes.TrimSpace(v)), inner.fields
	}
	if effort, ok := o.string(effortName); ok {
		if !slices.Contains(efforts, effort) {
			o.bad(effortName, CodeValue, "%q is none of %q", cut(effort), efforts)
			return nil
		}
		more := []string{effortName, strconv.Quote(effort)}
		if effort == "none" {
			more = append(more, "enable_thinking", "false", "thinking", "false")
		}
		for i := 0; i < len(more); i += 2 {
			if _, said := given[more[i]]; !said {
				kwargs = withField(kwargs, more[i], more[i+1])
			}
		}
	}
	if isEmpty(kwargs) {
		return nil
	}
	return kwargs
}

// withField puts a field in front of those of the object v.
func withField(v []byte, name, value string) []byte {
	out := append([]byte("{"), strconv.Quote(name)+":"+value...)
	if !isEmpty(v) {
		out = append(out, ',')
	}
	return append(out, v[1:]...)
}

// Words are the bytes of a conversation that become tokens, and the field that most of them are of.
func Words(c *chat.Conversation) (field string, n int) {
	for i := range c.Messages {
		m := &c.Messages[i]
		n += len(m.Content) + len(m.Name) + len(m.Reasoning) + len(m.ToolCallID)
		for _, call := range m.ToolCalls {
			n += len(call.ID) + len(call.Name) + len(call.Arguments)
		}
	}
	field, most := "messages", n
	for _, other := range []struct {
		field string
		of    []json.RawMessage
	}{{"tools", c.Tools}, {"documents", c.Documents}, {"chat_template_kwargs", []json.RawMessage{c.Kwargs}}} {
		size := 0
		for _, v := range other.of {
			size += printed(v)
		}
		if n += size; size > most {
			field, most = other.field, size
		}
	}
	return field, n
}

// printed counts the bytes of JSON as a template prints it at the shortest: without white space, and
// an escape is one.
func printed(v []byte) (n int) {
	for i := 0; i < len(v); n++ {
		switch v[i] {
		case ' ', '\t', '\n', '\r':
			i++
			n--
		case '"':
			end := skipString(v, i)
			n += written(v[i:end]) - 1
			i = end
		default:
			i++
		}
	}
	return n
}

// written counts the bytes of a string with its quotes, an escape as one.
func written(s []byte) (n int) {
	for i := 0; i < len(s); n++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			i++
		case s[i+1] == 'u':
			i += 6
		default:
			i += 2
		}
	}
	return n
}
