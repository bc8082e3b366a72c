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
			ids, err := g.tokens("bad_words", text, false)
			if err != nil {
				return err
			}
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
	calls := r.ToolUse != openai.ToolNone && len(r.Tools) > 0
	if calls && style.Calls == reply.NoCalls {
		return refusal("tools", openai.CodeUnsupported, "how this model writes calls is not known, its chat template does not say; leave them out, or send tool_choice none")
	}
	must := r.ToolUse >= openai.ToolRequired
	form := r.Params.Grammar
	if form == nil && !must || form != nil && !calls && !style.Thinks && !style.Open {
		return nil // nothing is asked for, or it holds as it was read, and found good
	}
	if calls {
		if err := checkTools(r, form); err != nil {
			return err
		}
	}
	var ways [][]grammar.Part // of which the answer takes one
	spec, param := &grammar.Spec{Kind: grammar.KindSequence}, "tools"
	if form != nil && !must {
		ways, param, spec.Loose = append(ways, partsOf(form)), r.FormatParam, form.Loose
	}
	if calls {
		ways = append(ways, callsOf(r, style).Parts)
	}
	spec.Parts = thinking(ways, style)
	if message := spec.Validate(); message != "" {
		return refusal(param, openai.CodeValue, message)
	}
	r.Params.Grammar = spec
	return nil
}

// checkTools judges the schema of each tool that may be called by itself, so that what is wrong with
// one is said of that one. Another form beside it says how loose schemas are.
func checkTools(r *openai.Request, form *grammar.Spec) *openai.Error {
	for i, t := range r.Tools {
		if t.Parameters == nil || r.ToolUse == openai.ToolNamed && t.Name != r.ToolName {
			continue
		}
		spec := grammar.Spec{Kind: grammar.KindSchema, Schema: t.Parameters, Loose: form != nil && form.Loose}
		if message := spec.Validate(); message != "" {
			return refusal(fmt.Sprintf("tools[%d].function.parameters", i), openai.CodeValue, fmt.Sprintf("of %q: %s", t.Name, strings.TrimPrefix(message, "json_schema: ")))
		}
	}
	return nil
}

// thinking puts the thoughts of a model before what it says.
func thinking(ways [][]grammar.Part, style reply.Style) []grammar.Part {
	body := []grammar.Part{{Any: ways}}
	if len(ways) == 1 {
		body = ways[0]
	}
	until := []grammar.Part{{Until: thinkClose, Special: style.Special}, {Regex: `\s{0,8}`}} // more would be white space for ever
	switch {
	case style.Open:
		return append(until, body...)
	case style.Thinks: // or it does not think
		return append([]grammar.Part{{Any: [][]grammar.Part{append([]grammar.Part{{Text: thinkOpen, Special: style.Special}}, until...)}, Max: 1}}, body...)
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

// callsOf is the form of the calls that a request asks for or allows.
func callsOf(r *openai.Request, style reply.Style) *grammar.Spec {
	var tools []reply.Tool
	for _, t := range r.Tools {
		if r.ToolUse != openai.ToolNamed || t.Name == r.ToolName {
			tools = append(tools, reply.Tool{Name: t.Name, Parameters: t.Parameters})
		}
	}
	return style.Grammar(tools, r.OneCall || r.ToolUse == openai.ToolNamed)
}
