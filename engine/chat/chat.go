package chat

import "baton/engine/tokenizer"

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Template is a compiled template; it is safe for use by several goroutines.
type Template struct{}

// New compiles a template. t may be nil if only Render is used.
func New(src string, t *tokenizer.Tokenizer) (*Template, error) { panic("not yet") }

// Encode renders msgs with the generation prompt and returns the token ids. An error that is a
// *Refused is the client's: the template refuses this conversation.
func (t *Template) Encode(msgs []Message) ([]int32, error) { panic("not yet") }

// Render returns the prompt as text, for display: encoding it again is not safe (C1).
func (t *Template) Render(msgs []Message) (string, error) { panic("not yet") }

// Refused says that the template (raise_exception) or a bound refuses the conversation: a
// client error.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return "chat: " + r.Reason }
