package chat

import (
	"slices"

	"baton/engine/chat/jinja"
	"baton/engine/chat/reply"
)

// A template that knows no tools, or has its model write calls in a way that nobody here reads,
// gets tools as text (C5), in the words that models of the Hermes kind were trained on, and many
// others follow.
const (
	toolsHead = "# Tools\n\nYou may call one or more functions to help with the user's request.\n\nTheir signatures are between <tools> and </tools>:\n<tools>"
	toolsTail = "\n</tools>\n\nFor each call, answer with a JSON object of the function's name and its arguments between <tool_call> and </tool_call>:\n" +
		"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
)

// spelled says what of a conversation is to be put in words for the template: its tools, its
// calls and their results. Who reads about tools in words shall see calls in these words, too.
func (t *Template) spelled(c Conversation) (tools, calls bool) {
	tools = t.toolless && len(c.Tools) > 0
	return tools, tools || t.callless && slices.ContainsFunc(c.Messages, func(m Message) bool {
		return len(m.ToolCalls) > 0 || isResult(m)
	})
}

func isResult(m Message) bool { return m.Role == "tool" || m.Role == "function" }

// turn is a message whose content is made of more than a client's text.
type turn struct {
	role    string
	content jinja.Text
	of      Message // the rest of it
}

// turns are the messages of a conversation as the template is to see them.
func (t *Template) turns(c Conversation, tools, calls bool) ([]turn, error) {
	var out []turn
	for i, m := range c.Messages {
		now := turn{m.Role, jinja.Client(m.Content), m}
		switch {
		case !calls:
		case len(m.ToolCalls) > 0:
			now.of.ToolCalls = nil
			for _, call := range m.ToolCalls {
				if now.content.Len() > 0 {
					now.content = now.content.Append(jinja.Literal("\n"))
				}
				now.content = now.content.Append(spellCall(call))
			}
		case isResult(m):
			now.role = "user"
			now.content = jinja.Literal("<tool_response>\n").Append(now.content).Append(jinja.Literal("\n</tool_response>"))
			if before := i - 1; before >= 0 && isResult(c.Messages[before]) {
				last := &out[len(out)-1] // results of one message of calls are one turn
				last.content = last.content.Append(jinja.Literal("\n")).Append(now.content)
				continue
			}
		}
		out = append(out, now)
	}
	if !tools {
		return out, nil
	}
	head, err := spellTools(c)
	if err != nil {
		return nil, err
	}
	first := &out[0]
	switch {
	case first.role == "system" || first.role == "developer":
		first.content = first.content.Append(jinja.Literal("\n\n")).Append(head)
	case t.systemless:
		first.content = head.Append(jinja.Literal("\n\n")).Append(first.content)
	default:
		out = slices.Insert(out, 0, turn{role: "system", content: head})
	}
	return out, nil
}

func spellTools(c Conversation) (jinja.Text, error) {
	head := jinja.Literal(toolsHead)
	for i, raw := range c.Tools {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return head, refuseField("tools", "tools[%d] is no JSON: %v", i, err)
		}
		text, err := jinja.JSON(v)
		if err != nil {
			return head, refuseField("tools", "tools[%d]: %v", i, err)
		}
		head = head.Append(jinja.Literal("\n")).Append(text)
	}
	return head.Append(jinja.Literal(toolsTail)), nil
}

// spellCall is a call as the model was told to write it.
func spellCall(c ToolCall) jinja.Text {
	name, _ := jinja.JSON(jinja.Client(c.Name))
	text := jinja.Literal("<tool_call>\n{\"name\": ").Append(name).Append(jinja.Literal(`, "arguments": `))
	args := jinja.Client(c.Arguments)
	if v, err := jinja.FromJSON([]byte(c.Arguments)); err == nil {
		if t, err := jinja.JSON(v); err == nil {
			args = t
		}
	}
	if c.Arguments == "" {
		args = jinja.Literal("{}")
	}
	return text.Append(args).Append(jinja.Literal("}\n</tool_call>"))
}

// callsOf is how a model writes calls whose template is src. One whose calls nobody here reads is
// told of tools in words, and then writes calls as these say.
func (t *Template) callsOf(src string) reply.Calls {
	if llama(src) && !t.toolless {
		return reply.Llama
	}
	t.toolless = t.toolless || !hermes(src)
	return reply.Hermes
}
