package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"baton/engine/chat/reply"
	"baton/engine/grammar"
	"baton/engine/sample"
	"baton/serve/openai"
)

// banWords adds the tokens of bad_words to the parameters, as vLLM does: each word as it stands at
// the beginning of a text, and behind a space.
func (g *Gateway) banWords(r *openai.Request) *openai.Error {
	for _, word := range r.BadWords {
		bare := strings.TrimLeft(word, " ")
		var before []int32
		for _, text := range [...]string{bare, " " + bare} {
			ids := g.config.Text.Prompt(text, false)
			if len(ids) == 0 || slices.Equal(ids, before) {
				continue
			}
			if len(ids) > sample.BadTokensMax {
				return refusal("bad_words", openai.CodeValue, fmt.Sprintf("a word of %d tokens, at most %d", len(ids), sample.BadTokensMax))
			}
			r.Params.Bad = append(r.Params.Bad, ids)
			before = ids
		}
	}
	return nil
}

func refusal(param, code, message string) *openai.Error {
	return &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalid, Param: param, Code: code, Message: param + ": " + message}
}

// thinkOpen and thinkClose are the marks around thoughts (package reply).
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// constrain has the form that a request asks for hold for what the model says, and not for what it
// thinks before: thoughts stay free. A call that has to come is in the model's own form, and where
// calls may come beside a form, an answer is one or the other.
func constrain(r *openai.Request, style reply.Style) *openai.Error {
	if r.ToolUse < openai.ToolRequired && r.Params.Grammar == nil {
		return nil
	}
	var ways [][]grammar.Part // of which the answer takes one
	loose, param := false, r.FormatParam
	if r.Params.Grammar != nil && r.ToolUse < openai.ToolRequired {
		ways, loose = append(ways, partsOf(r.Params.Grammar)), r.Params.Grammar.Loose
	}
	if calls := r.ToolUse != openai.ToolNone && len(r.Tools) > 0; calls {
		spec, err := callsOf(r, style)
		switch {
		case err != nil:
			return err
		case spec != nil:
			ways, loose = append(ways, partsOf(spec)), loose || spec.Loose
		}
		if param == "" {
			param = "tools"
		}
	}
	spec := &grammar.Spec{Kind: grammar.KindSequence, Loose: loose, Parts: thinking(ways, style)}
	if len(spec.Parts) == 1 && len(ways) == 1 && r.Params.Grammar != nil && r.ToolUse < openai.ToolRequired {
		spec = r.Params.Grammar // as it was read, and found good
	}
	if message := spec.Validate(); message != "" {
		return refusal(param, openai.CodeValue, message)
	}
	r.Params.Grammar = spec
	return nil
}

// thinking puts the thoughts of a model before what it says.
func thinking(ways [][]grammar.Part, style reply.Style) []grammar.Part {
	body := []grammar.Part{{Any: ways}}
	if len(ways) == 1 {
		body = ways[0]
	}
	behind := append([]grammar.Part{{Until: thinkClose}, {Regex: `\s*`}}, body...)
	switch {
	case style.Open:
		return behind
	case style.Thinks:
		return []grammar.Part{{Any: [][]grammar.Part{append([]grammar.Part{{Text: thinkOpen}}, behind...), body}}}
	}
	return body
}

// partsOf is a form as a step of a longer one.
func partsOf(s *grammar.Spec) []grammar.Part {
	switch s.Kind {
	case grammar.KindObject:
		return []grammar.Part{{Schema: []byte(`{"type":"object","additionalProperties":true}`)}}
	case grammar.KindSchema:
		return []grammar.Part{{Schema: s.Schema}}
	case grammar.KindRegex:
		return []grammar.Part{{Regex: s.Regex}}
	case grammar.KindChoice:
		var any [][]grammar.Part
		for _, text := range s.Choice {
			any = append(any, []grammar.Part{{Text: text}})
		}
		return []grammar.Part{{Any: any}}
	}
	return s.Parts
}

// callsOf is the form of the calls that a request asks for or allows. Of a model that writes none
// it is nil, unless there has to be one.
func callsOf(r *openai.Request, style reply.Style) (*grammar.Spec, *openai.Error) {
	return nil, nil
}
