package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/engine/chat/reply"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	// Name is who speaks: of a tool's message, the tool; else a participant.
	Name       string     `json:"name,omitempty"`
	Reasoning  string     `json:"reasoning_content,omitempty"` // thoughts before Content
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // which call a tool's message answers
}

// ToolCall is a call that an assistant's message made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the JSON text as OpenAI's wire has it; an object is given to the template as
	// one, if it takes one, anything else as this string.
	Arguments string
}

// Conversation is all that a client may say about a prompt. Every string in it is the client's:
// none of it becomes a special token (C1), wherever a template puts it. JSON keeps its order.
type Conversation struct {
	Messages []Message
	// Tools are JSON objects {"type": "function", "function": {…}}.
	Tools []json.RawMessage
	// Documents are JSON objects, for templates of retrieval.
	Documents []json.RawMessage
	// Kwargs is a JSON object, chat_template_kwargs on the wire; empty is none. It may not name
	// what the template gets anyway (messages, tools, bos_token …).
	Kwargs json.RawMessage
	// ContinueFinal leaves the last message open, so that the reply goes on with it. No
	// generation prompt follows it.
	ContinueFinal      bool
	NoGenerationPrompt bool
	// Now is what strftime_now of templates says; the zero time is now.
	Now time.Time
}

// Prompt is a conversation as the model reads it.
type Prompt struct {
	IDs []int32
	// Text is the prompt for display (Render), without the BOS that IDs may begin with.
	Text string
	// Reply says how this prompt is answered: as Template.Reply, without calls if the
	// conversation has no tools, and Open if the prompt ends inside of thoughts.
	Reply reply.Style
}

func refuse(format string, args ...any) error { return &Refused{Reason: fmt.Sprintf(format, args...)} }

// refuseField is refuse of one field.
func refuseField(field, format string, args ...any) error {
	return &Refused{fmt.Sprintf(format, args...), field}
}

// check bounds a conversation and returns the bytes of all that the client brought.
func (c *Conversation) check() (size int, err error) {
	if len(c.Messages) == 0 || len(c.Messages) > MessagesMax {
		return 0, refuse("the conversation has %d messages, allowed are 1 to %d", len(c.Messages), MessagesMax)
	}
	for i, m := range c.Messages {
		if !slices.Contains(roles, m.Role) {
			return 0, refuse("message %d has the role %q, allowed are %s", i, m.Role, strings.Join(roles, ", "))
		}
		if len(m.ToolCalls) > CallsMax {
			return 0, refuse("message %d has %d tool calls, allowed are %d", i, len(m.ToolCalls), CallsMax)
		}
		size += len(m.Content)
		for _, call := range m.ToolCalls {
			size += len(call.ID) + len(call.Name) + len(call.Arguments)
		}
		size += len(m.Name) + len(m.Reasoning) + len(m.ToolCallID)
	}
	for what, list := range map[string][]json.RawMessage{"tools": c.Tools, "documents": c.Documents} {
		if len(list) > ToolsMax {
			return 0, refuseField(what, "the conversation has %d %s, allowed are %d", len(list), what, ToolsMax)
		}
		for _, raw := range list {
			size += len(raw)
		}
	}
	if len(c.Kwargs) > kwargsBytes {
		return 0, refuseField("chat_template_kwargs", "the template's arguments have %d bytes, allowed are %d", len(c.Kwargs), kwargsBytes)
	}
	if size += len(c.Kwargs); size > outputBytesMax {
		return 0, refuse("the contents have %d bytes, allowed are %d", size, outputBytesMax)
	}
	if c.ContinueFinal && c.Messages[len(c.Messages)-1].Content == "" {
		return 0, refuseField("continue_final_message", "the last message is to be continued and has no content")
	}
	return size, nil
}
