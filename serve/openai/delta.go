package openai

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"baton/engine/chat/reply"
)

// toolCall is a call of a tool, or a piece of one: then it has an index, and id, type and name
// only in its first.
type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// callID makes the id by which a tool's message will answer a call.
func callID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}

func deltaOf(d *reply.Delta) delta {
	switch {
	case d.Call != nil:
		c := toolCall{Index: &d.Call.Index, Function: functionCall{Name: d.Call.Name, Arguments: d.Call.Arguments}}
		if d.Call.Name != "" {
			c.ID, c.Type = callID(), "function"
		}
		return delta{Calls: []toolCall{c}}
	case d.Reasoning != "":
		return delta{Reasoning: d.Reasoning}
	}
	return delta{Content: &d.Content}
}

// wholeMessage joins what a choice said.
func wholeMessage(p *Piece) *message {
	if len(p.Deltas) == 0 {
		return &message{Role: "assistant", Content: &p.Text}
	}
	var content, reasoning strings.Builder
	m := &message{Role: "assistant"}
	for i := range p.Deltas {
		d := &p.Deltas[i]
		content.WriteString(d.Content)
		reasoning.WriteString(d.Reasoning)
		if d.Call == nil {
			continue
		}
		if d.Call.Index >= len(m.Calls) { // indexes count from 0, one by one
			m.Calls = append(m.Calls, toolCall{ID: callID(), Type: "function"})
		}
		c := &m.Calls[len(m.Calls)-1].Function
		c.Name += d.Call.Name
		c.Arguments += d.Call.Arguments
	}
	m.Reasoning = reasoning.String()
	if text := content.String(); text != "" || len(m.Calls) == 0 {
		m.Content = &text
	}
	return m
}
