package chat

import (
	"errors"
	"slices"
	"strings"

	"baton/engine/chat/jinja"
	"baton/engine/chat/reply"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// Reply says how replies to this template's prompts are written, by the template's text; Open as
// for a conversation without arguments.
func (t *Template) Reply() reply.Style { return t.style }

// hermes says whether a template has its model write calls as JSON between <tool_call> and
// </tool_call>. Others put XML between them.
func hermes(src string) bool {
	return strings.Contains(src, "<tool_call>") && !strings.Contains(src, "<function=") && !strings.Contains(src, "<arg_key>")
}

// llama says whether a template has its model write calls as Llama 3 does.
func llama(src string) bool {
	return strings.Contains(strings.ReplaceAll(src, `\"`, `"`), `{"name": function name, "parameters"`) || strings.Contains(src, "<|python_tag|>")
}

// styleOf reads from a template's source how its model replies.
func (t *Template) styleOf(src string) (s reply.Style) {
	s.Calls = t.callsOf(src)
	s.Thinks = strings.Contains(src, thinkOpen) || strings.Contains(src, thinkClose)
	hello := Conversation{Messages: []Message{{Role: "user", Content: probeText}}}
	if text, err := t.run(hello, form{parts: t.form.parts, trial: true}); s.Thinks && !errors.Is(err, jinja.ErrCostly) {
		s.Open = opens(text, "")
	}
	s.Special = t.marked(s)
	return s
}

// styleFor is the style of the reply to one prompt.
func (t *Template) styleFor(c Conversation, text jinja.Text) reply.Style {
	s := t.style
	if len(c.Tools) == 0 {
		s.Calls = reply.NoCalls
	}
	said := ""
	if c.ContinueFinal {
		said = c.Messages[len(c.Messages)-1].Content
	}
	s.Open = s.Thinks && opens(text, said)
	if s.Thinks && !s.Open && closes(text, said) {
		s.Thinks = false // the thoughts are over, or left out
	}
	s.Special = t.marked(s)
	return s
}

// marked says whether what a reply is parted by are special tokens.
func (t *Template) marked(s reply.Style) bool {
	var marks []string
	if s.Thinks {
		marks = append(marks, thinkOpen, thinkClose)
	}
	if s.Calls == reply.Hermes {
		marks = append(marks, "<tool_call>", "</tool_call>")
	}
	return t.tok != nil && slices.ContainsFunc(marks, func(mark string) bool {
		_, _, _, ok := t.tok.CutSpecial(mark)
		return ok
	})
}

// tail is the end of a prompt that is the template's own, and what was said already of a
// message that is continued.
func tail(text jinja.Text, said string) string {
	if said != "" {
		return said
	}
	end := ""
	for s, client := range text.Parts() {
		if end = s; client {
			end = ""
		}
	}
	return end
}

// opens says whether a prompt ends inside of thoughts.
func opens(text jinja.Text, said string) bool {
	s := tail(text, said)
	return strings.LastIndex(s, thinkOpen) > strings.LastIndex(s, thinkClose)
}

// closes says whether a prompt ends behind thoughts.
func closes(text jinja.Text, said string) bool {
	s := tail(text, said)
	if said == "" { // of the reply, not of a message before it
		s = s[max(0, strings.LastIndex(s, thinkOpen)):]
		return strings.HasPrefix(s, thinkOpen) && strings.Contains(s, thinkClose)
	}
	return true
}
