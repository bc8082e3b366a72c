package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"

	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

// Bounds (C3). The template comes with the model and is trusted as the weights are: these bounds
// keep a mistake in it, or a huge conversation, from taking the process with it.
const (
	sourceBytesMax = 256 << 10 // the longest template in use has 20 KiB
	// MessagesMax is how many messages a conversation may have. Templates loop over them, some
	// inside another loop.
	MessagesMax = 4096
	// outputBytesMax bounds the prompt as text: 16 bytes for each of a million tokens.
	outputBytesMax = 16 << 20
	rangeMax       = 10_000 // items of range(); templates use it for a handful
)

// roles are what a message's role may be. Templates print the role between their special tokens,
// so no client may choose it freely.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

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

// Refused says that the template (raise_exception) or a bound refuses the conversation: the
// client's error, not the server's.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return "chat: " + r.Reason }

// Template is a compiled template; it is safe for use by several goroutines.
type Template struct {
	compiled *jinja.Template
	tok      *tokenizer.Tokenizer
}

// New compiles a template. t may be nil if only Render is used. The template is tried on one
// message, so that a broken one is found at the start of the server.
func New(src string, t *tokenizer.Tokenizer) (*Template, error) {
	if src == "" || len(src) > sourceBytesMax {
		return nil, fmt.Errorf("chat: the template has %d bytes, allowed are 1 to %d", len(src), sourceBytesMax)
	}
	c, err := compile(src)
	if err != nil {
		return nil, fmt.Errorf("chat: the template is broken: %w", err)
	}
	tpl := &Template{compiled: c, tok: t}
	var refused *Refused
	switch _, err := tpl.Render([]Message{{Role: "user", Content: "Hello"}}); {
	case errors.As(err, &refused) && refused.Reason == costly:
		return nil, fmt.Errorf("chat: the template does not end on a single message: more than %d rounds of loops, %d macros inside each other, or %v", stepsMax, macrosMax, timeMax)
	case err != nil && refused == nil:
		return nil, err
	}
	return tpl, nil
}

// FromGGUF compiles the template that a model file carries.
func FromGGUF(f *gguf.File, t *tokenizer.Tokenizer) (*Template, error) {
	src, ok := f.String("tokenizer.chat_template")
	if !ok {
		return nil, errors.New("chat: the model file has no key tokenizer.chat_template; ask it for completions instead")
	}
	return New(src, t)
}

// Render returns the prompt with the generation prompt as text, for display: contents may look
// like special tokens in it, so encoding it again with special tokens is not safe (C1).
func (t *Template) Render(msgs []Message) (string, error) {
	if err := check(msgs); err != nil {
		return "", err
	}
	return t.render(msgs, func(i int) string { return msgs[i].Content })
}

// Encode renders msgs with the generation prompt and returns the token ids, with the model's
// BOS in front if it wants one. An error that is a *Refused is the client's.
func (t *Template) Encode(msgs []Message) ([]int32, error) {
	if t.tok == nil {
		return nil, errors.New("chat: this template has no tokenizer")
	}
	if err := check(msgs); err != nil {
		return nil, err
	}
	plain, err := t.render(msgs, func(i int) string { return msgs[i].Content })
	if err != nil {
		return nil, err
	}
	marked, err := t.render(msgs, func(i int) string { return mark(i, msgs[i].Content) })
	if err != nil {
		return nil, err
	}
	ids, err := t.encode(msgs, plain, marked)
	if err != nil {
		return nil, err
	}
	if t.tok.AddBOS() && (len(ids) == 0 || ids[0] != t.tok.BOS()) {
		ids = slices.Insert(ids, 0, t.tok.BOS())
	}
	return ids, nil
}

// encode chooses between the two renderings. The marked one is safe by construction (C1), and
// where the contents put into it give the plain one, it is also exact (C2). Where they do not,
// the template looks inside the contents (a reasoning template that drops old thoughts); then
// the plain one counts, if no content names a special token and none came about in it.
func (t *Template) encode(msgs []Message, plain, marked string) ([]int32, error) {
	parts, whole := cut(msgs, marked)
	if !whole {
		return t.encodeCut(msgs, plain)
	}
	safe := t.encodeParts(parts)
	if join(parts) == plain || t.named(msgs) {
		return safe, nil
	}
	if ids := t.tok.Encode(plain, true); slices.Equal(t.specials(ids), t.specials(safe)) {
		return ids, nil
	}
	return safe, nil
}

// named says whether a content holds the name of a special token.
func (t *Template) named(msgs []Message) bool {
	return slices.ContainsFunc(msgs, func(m Message) bool {
		_, _, _, ok := t.tok.CutSpecial(m.Content)
		return ok
	})
}

// encodeCut is for a template that takes contents apart, so that no sentinel survives: the plain
// rendering counts if it has the special tokens that it has with contents of x alone.
func (t *Template) encodeCut(msgs []Message, plain string) ([]int32, error) {
	neutral, err := t.render(msgs, func(i int) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return r
			}
			return 'x'
		}, msgs[i].Content)
	})
	if err != nil {
		return nil, err
	}
	ids := t.tok.Encode(plain, true)
	if t.named(msgs) || !slices.Equal(t.specials(ids), t.specials(t.tok.Encode(neutral, true))) {
		return nil, &Refused{"the model's chat template takes contents apart, and a content holds the name of a special token; remove it"}
	}
	return ids, nil
}

// encodeParts encodes literals with special tokens and contents without. Text on both sides of a
// border between them is encoded together, as it would be in one string.
func (t *Template) encodeParts(parts []part) []int32 {
	var ids []int32
	var text strings.Builder
	for _, p := range parts {
		rest := p.text
		for !p.content {
			before, id, after, ok := t.tok.CutSpecial(rest)
			if !ok {
				break
			}
			text.WriteString(before)
			ids = t.tok.AppendEncode(ids, text.String(), false)
			text.Reset()
			ids = append(ids, id)
			rest = after
		}
		text.WriteString(rest)
	}
	return t.tok.AppendEncode(ids, text.String(), false)
}

func (t *Template) specials(ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if t.tok.IsSpecial(id) {
			out = append(out, id)
		}
	}
	return out
}

func check(msgs []Message) error {
	if len(msgs) == 0 || len(msgs) > MessagesMax {
		return &Refused{fmt.Sprintf("the conversation has %d messages, allowed are 1 to %d", len(msgs), MessagesMax)}
	}
	size := 0
	for i, m := range msgs {
		if !slices.Contains(roles, m.Role) {
			return &Refused{fmt.Sprintf("message %d has the role %q, allowed are %s", i, m.Role, strings.Join(roles, ", "))}
		}
		size += len(m.Content)
	}
	if size > outputBytesMax {
		return &Refused{fmt.Sprintf("the contents have %d bytes, allowed are %d", size, outputBytesMax)}
	}
	return nil
}
