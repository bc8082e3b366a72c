package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"baton/engine/tokenizer"
	"baton/engine/weights/gguf"
)

// ErrNone says that a model brings no chat template: it can be asked for completions only.
var ErrNone = errors.New("chat: the model has no chat template; ask it for completions instead")

// Names that a model gives to its templates.
const (
	defaultName = "default"
	toolsName   = "tool_use" // counts where a conversation has tools
)

// templatesMax is how many templates a model may bring.
const templatesMax = 32

// special are the tokens that templates know by a name.
var special = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// FromGGUF compiles the template that a model file carries, and the one for tools if it has two.
func FromGGUF(f *gguf.File, t *tokenizer.Tokenizer) (*Template, error) {
	const key = "tokenizer.chat_template"
	named := map[string]string{}
	if src, ok := f.String(key); ok {
		named[defaultName] = src
	}
	if src, ok := f.String(key + "." + toolsName); ok {
		named[toolsName] = src
	}
	if len(named) == 0 {
		return nil, ErrNone
	}
	return fromNamed(named, t, nil)
}

// FromConfig compiles the template of a model directory: that of chat_template.jinja, else the one
// in tokenizer_config.json, which also names the special tokens. Either may be nil; without a
// template in them the error is ErrNone.
func FromConfig(config, file []byte, t *tokenizer.Tokenizer) (*Template, error) {
	fields := map[string]json.RawMessage{}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &fields); err != nil {
			return nil, fmt.Errorf("chat: tokenizer_config.json: %w", err)
		}
	}
	tokens := map[string]string{}
	for _, name := range special {
		if text, ok := tokenText(fields[name]); ok {
			tokens[name] = text
		}
	}
	var extra map[string]json.RawMessage
	if json.Unmarshal(fields["extra_special_tokens"], &extra) == nil {
		for name, raw := range extra {
			if text, ok := tokenText(raw); ok && strings.HasSuffix(name, "_token") {
				tokens[name] = text
			}
		}
	}
	if len(file) > 0 {
		return fromNamed(map[string]string{defaultName: string(file)}, t, tokens)
	}
	named, err := templatesOf(fields["chat_template"])
	if err != nil {
		return nil, err
	}
	return fromNamed(named, t, tokens)
}

// tokenText reads a token of a config: its text, or an object with its content.
func tokenText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text, true
	}
	var token struct{ Content string }
	err := json.Unmarshal(raw, &token)
	return token.Content, err == nil && token.Content != ""
}

// templatesOf reads chat_template: a text, a list of named ones, or an object of them.
func templatesOf(raw json.RawMessage) (map[string]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, ErrNone
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return map[string]string{defaultName: one}, nil
	}
	named := map[string]string{}
	var list []struct{ Name, Template string }
	if json.Unmarshal(raw, &list) == nil && len(list) <= templatesMax {
		for _, n := range list {
			named[n.Name] = n.Template
		}
		return named, nil
	}
	if json.Unmarshal(raw, &named) == nil && len(named) <= templatesMax {
		return named, nil
	}
	return nil, fmt.Errorf("chat: chat_template of tokenizer_config.json: want a text, or a list of at most %d objects with name and template", templatesMax)
}

// fromNamed compiles the default template, and the one for tools.
func fromNamed(named map[string]string, t *tokenizer.Tokenizer, tokens map[string]string) (*Template, error) {
	src, ok := named[defaultName]
	forTools, tools := named[toolsName]
	switch {
	case !ok && tools:
		return newTemplate(forTools, t, tokens)
	case !ok:
		return nil, ErrNone
	}
	tpl, err := newTemplate(src, t, tokens)
	if err != nil || !tools {
		return tpl, err
	}
	if tpl.tools, err = newTemplate(forTools, t, tokens); err != nil {
		return nil, fmt.Errorf("the template %q: %w", toolsName, err)
	}
	return tpl, nil
}
