package chat

import (
	"encoding/json"
	"time"

	"baton/engine/chat/reply"
)

// ToolCall is a call that an assistant's message made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the JSON text as OpenAI's wire has it; an object is given to the template as
	// one, anything else as this string.
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
	// ContinueFinal leaves the last message open, so that the reply goes on with it. It goes
	// with NoGenerationPrompt alone.
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

// Prompt renders a conversation. An error that is a *Refused is the client's.
func (t *Template) Prompt(c Conversation) (*Prompt, error) {
	ids, err := t.Encode(c.Messages)
	return &Prompt{IDs: ids}, err
}

// EncodeConversation returns the tokens of Prompt alone.
func (t *Template) EncodeConversation(c Conversation) ([]int32, error) {
	p, err := t.Prompt(c)
	if err != nil {
		return nil, err
	}
	return p.IDs, nil
}

// Reply says how replies to this template's prompts are written, by the template's text.
func (t *Template) Reply() reply.Style { return reply.Style{} }
