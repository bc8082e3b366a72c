package chat

import (
	"errors"
	"fmt"
	"time"

	"baton/engine/chat/jinja"
	"baton/engine/chat/reply"
	"baton/engine/tokenizer"
)

// Bounds (C3). The template comes with the model and is trusted as the weights are: these bounds
// keep a mistake in it, or a huge conversation, from taking the process with it.
const (
	sourceBytesMax = 256 << 10 // the longest template in use has 20 KiB
	// MessagesMax is how many messages a conversation may have. Templates loop over them, some
	// inside another loop.
	MessagesMax = 4096
	// CallsMax is how many calls one message may hold.
	CallsMax = 128
	// ToolsMax is how many tools, and how many documents, a conversation may offer.
	ToolsMax = 1024
	// outputBytesMax bounds the prompt as text: 16 bytes for each of a million tokens.
	outputBytesMax = 16 << 20
	// What a rendering may cost: two nested loops over 1024 messages, and every byte of the
	// conversation copied a few times (templates join strings from the left) beside a fixed part.
	stepsMax    = 1 << 24
	bytesMax    = 64 << 20
	copiesMax   = 24
	kwargsBytes = 256 << 10
	// What a template may cost at the start, on a message or three.
	trialSteps = 1 << 20
	trialBytes = 16 << 20
)

// roles are what a message's role may be. Templates print the role between their special tokens,
// so no client may choose it freely.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// Refused says that the template (raise_exception) or a bound refuses the conversation: the
// client's error, not the server's.
type Refused struct {
	Reason string
	Field  string // of the client's that is wrong, by its name on the wire; "": messages, or all together
}

func (r *Refused) Error() string { return "chat: " + r.Reason }

// Template is a compiled template; it is safe for use by several goroutines.
type Template struct {
	compiled *jinja.Template
	tok      *tokenizer.Tokenizer
	names    map[string]string // of special tokens, as templates call them
	form     form
	style    reply.Style
	tools    *Template // for conversations with tools, if the model brings two; else nil

	toolless   bool // it leaves out tools, or wants calls that nobody here reads
	callless   bool // it leaves out calls or their results
	systemless bool // it leaves out a system message, or refuses it
}

// forWhich returns the template that renders a conversation.
func (t *Template) forWhich(c Conversation) *Template {
	if t.tools != nil && len(c.Tools) > 0 {
		return t.tools
	}
	return t
}

// New compiles a template. t may be nil if only Render is used. The template is tried on one
// message, so that a broken one is found at the start of the server.
func New(src string, t *tokenizer.Tokenizer) (*Template, error) { return newTemplate(src, t, nil) }

// newTemplate is New with names of tokens that count before the tokenizer's.
func newTemplate(src string, t *tokenizer.Tokenizer, names map[string]string) (*Template, error) {
	if src == "" || len(src) > sourceBytesMax {
		return nil, fmt.Errorf("chat: the template has %d bytes, allowed are 1 to %d", len(src), sourceBytesMax)
	}
	c, err := jinja.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("chat: the template is broken: %w", err)
	}
	tpl := &Template{compiled: c, tok: t, names: map[string]string{}}
	if t != nil {
		tpl.names["bos_token"], tpl.names["eos_token"] = t.Text(t.BOS()), t.Text(t.MainEOS())
	}
	for k, v := range names {
		tpl.names[k] = v
	}
	if err := tpl.try(); err != nil {
		return nil, err
	}
	tpl.style = tpl.styleOf(src)
	return tpl, nil
}

// Render returns the prompt with the generation prompt as text, for display: contents may look
// like special tokens in it, so encoding it again with special tokens is not safe (C1).
func (t *Template) Render(msgs []Message) (string, error) {
	text, err := t.render(Conversation{Messages: msgs})
	return text.String(), err
}

// Encode renders msgs with the generation prompt and returns the token ids, with the model's
// BOS in front if it wants one. An error that is a *Refused is the client's.
func (t *Template) Encode(msgs []Message) ([]int32, error) {
	return t.EncodeConversation(Conversation{Messages: msgs})
}

// EncodeConversation returns the tokens of Prompt alone.
func (t *Template) EncodeConversation(c Conversation) ([]int32, error) {
	p, err := t.Prompt(c)
	if err != nil {
		return nil, err
	}
	return p.IDs, nil
}

// Prompt renders a conversation. An error that is a *Refused is the client's.
func (t *Template) Prompt(c Conversation) (*Prompt, error) {
	if t = t.forWhich(c); t.tok == nil {
		return nil, errors.New("chat: this template has no tokenizer")
	}
	text, err := t.render(c)
	if err != nil {
		return nil, err
	}
	p := &Prompt{Text: text.String(), Reply: t.styleFor(c, text)}
	if p.IDs, err = t.encode(text); err != nil {
		return nil, err
	}
	if t.tok.AddBOS() && (len(p.IDs) == 0 || p.IDs[0] != t.tok.BOS()) {
		p.IDs = append([]int32{t.tok.BOS()}, p.IDs...)
	}
	return p, nil
}

// CheckDocuments is a *Refused if the template leaves a conversation's documents out: Prompt does,
// too, as apply_chat_template does (C4), and whoever sent them would never know.
func (t *Template) CheckDocuments(c Conversation) error {
	if len(c.Documents) == 0 {
		return nil
	}
	if c.Now.IsZero() {
		c.Now = time.Now() // of both
	}
	with, err := t.render(c)
	c.Documents = nil
	without, err2 := t.render(c)
	if err == nil && err2 == nil && without.String() == with.String() { // errors are Prompt's to say
		return refuseField("documents", "this model's template prints no documents; put them into a message")
	}
	return nil
}

// encode encodes what is the template's own with special tokens, and what a client brought
// without (C1). Text on both sides of a border between them is encoded together, as it would be
// in one string (C2).
func (t *Template) encode(prompt jinja.Text) ([]int32, error) {
	var parts []tokenizer.Part
	for text, client := range prompt.Parts() {
		parts = append(parts, tokenizer.Part{Text: text, Special: !client})
	}
	ids, err := t.tok.EncodeParts(parts)
	if errors.Is(err, tokenizer.ErrSlow) {
		return nil, &Refused{Reason: err.Error()}
	}
	return ids, err
}
