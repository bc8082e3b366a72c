package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/engine/chat/jinja"
)

// form is how a template wants what templates disagree about.
type form struct {
	parts     bool // contents as lists of {"type": "text", "text": …}
	argsText  bool // arguments of calls as text, not as an object
	emptyNone bool // no content beside calls as none, not as ""
	trial     bool // the template is only tried
}

// budget is what rendering a conversation of so many bytes may cost.
func (f form) budget(size int) jinja.Budget {
	if f.trial {
		return jinja.Budget{Steps: trialSteps, Bytes: trialBytes}
	}
	return jinja.Budget{Steps: stepsMax, Bytes: bytesMax + copiesMax*int64(size)}
}

// reserved are the names that a template gets anyway.
var reserved = []string{"messages", "tools", "documents", "add_generation_prompt", "continue_final_message",
	"bos_token", "eos_token", "raise_exception", "strftime_now", "namespace", "range", "dict", "cycler", "joiner"}

// costly says that a conversation takes a template too long. One message always has to be
// cheap, so New takes it for an error of the template.
const costly = "the model's chat template takes too long for this conversation"

// render checks a conversation and renders it.
func (t *Template) render(c Conversation) (jinja.Text, error) {
	t = t.forWhich(c)
	text, err := t.run(c, t.form)
	var raised *jinja.Raised
	var fault *jinja.Error
	switch {
	case errors.Is(err, jinja.ErrCostly):
		return text, &Refused{Reason: costly}
	case errors.As(err, &raised) && raised.Message == "":
		return text, refuse("the model's chat template refuses the conversation")
	case errors.As(err, &raised):
		return text, refuse("the model's chat template refuses the conversation: %s", raised.Message)
	case errors.As(err, &fault):
		return text, refuse("the model's chat template cannot render the conversation: %v", fault)
	case err == nil && text.Len() > outputBytesMax:
		return jinja.Text{}, refuse("the prompt has %d bytes, allowed are %d", text.Len(), outputBytesMax)
	}
	return text, err
}

// run renders with the variables that Hugging Face's tokenizers give a template.
func (t *Template) run(c Conversation, f form) (jinja.Text, error) {
	size, err := c.check()
	if err != nil {
		return jinja.Text{}, err
	}
	vars := jinja.NewDict()
	for _, name := range []string{"bos_token", "eos_token"} {
		vars.Set(name, jinja.Literal(t.names[name]))
	}
	for name, text := range t.names {
		vars.Set(name, jinja.Literal(text))
	}
	if err := c.arguments(vars); err != nil {
		return jinja.Text{}, err
	}
	spellTools, spellCalls := t.spelled(c)
	turns, err := t.turns(c, spellTools && !f.trial, spellCalls && !f.trial)
	if err != nil {
		return jinja.Text{}, err
	}
	messages := make([]jinja.Value, len(turns))
	for i, m := range turns {
		messages[i] = m.value(f, c.ContinueFinal && i == len(turns)-1)
	}
	vars.Set("messages", jinja.NewList(messages...))
	vars.Set("add_generation_prompt", jinja.Bool(!c.NoGenerationPrompt && !c.ContinueFinal))
	for what, list := range map[string][]json.RawMessage{"tools": c.Tools, "documents": c.Documents} {
		if spellTools && !f.trial && what == "tools" {
			list = nil
		}
		v, err := objects(what, list)
		if err != nil {
			return jinja.Text{}, err
		}
		vars.Set(what, v)
	}
	now := time.Now
	if !c.Now.IsZero() {
		now = func() time.Time { return c.Now }
	}
	text, err := t.compiled.Render(vars, f.budget(size), now)
	if err == nil && c.ContinueFinal {
		return cutOpen(text, c.Messages[len(c.Messages)-1].Content)
	}
	return text, err
}

// arguments sets what a client says to the template itself.
func (c *Conversation) arguments(vars *jinja.Dict) error {
	if len(c.Kwargs) == 0 {
		return nil
	}
	v, err := jinja.FromJSON(c.Kwargs)
	if err != nil {
		return refuseField("chat_template_kwargs", "the template's arguments are no JSON: %v", err)
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return refuseField("chat_template_kwargs", "the template's arguments are no JSON object")
	}
	for _, name := range d.Keys() {
		for _, r := range reserved {
			if name == r {
				return refuseField("chat_template_kwargs", "the template's argument %q is set by the server; leave it out", name)
			}
		}
	}
	d.Each(func(name string, v jinja.Value) { vars.Set(name, v) })
	return nil
}

// objects reads tools or documents; without any it is none.
func objects(what string, list []json.RawMessage) (jinja.Value, error) {
	if len(list) == 0 {
		return jinja.None(), nil
	}
	out := make([]jinja.Value, len(list))
	for i, raw := range list {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return nil, refuseField(what, "%s[%d] is no JSON: %v", what, i, err)
		}
		if _, ok := v.(*jinja.Dict); !ok {
			return nil, refuseField(what, "%s[%d] is no JSON object", what, i)
		}
		out[i] = v
	}
	return jinja.NewList(out...), nil
}

// value is a message as a template sees it.
func (t *turn) value(f form, open bool) jinja.Value {
	m, content := &t.of, t.content
	d := jinja.NewDict()
	d.Set("role", jinja.Literal(t.role))
	if open {
		content = content.Append(jinja.Literal(openMark))
	}
	switch {
	case f.emptyNone && content.Len() == 0 && len(m.ToolCalls) > 0:
		d.Set("content", jinja.None())
	case f.parts:
		part := jinja.NewDict()
		part.Set("type", jinja.Literal("text"))
		part.Set("text", content)
		d.Set("content", jinja.NewList(part))
	default:
		d.Set("content", content)
	}
	if m.Reasoning != "" {
		d.Set("reasoning_content", jinja.Client(m.Reasoning))
		d.Set("thinking", jinja.Client(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			calls[i] = c.value(f)
		}
		d.Set("tool_calls", jinja.NewList(calls...))
	}
	if m.ToolCallID != "" {
		d.Set("tool_call_id", jinja.Client(m.ToolCallID))
	}
	if m.Name != "" {
		d.Set("name", jinja.Client(m.Name))
	}
	return d
}

func (c *ToolCall) value(f form) jinja.Value {
	function := jinja.NewDict()
	function.Set("name", jinja.Client(c.Name))
	var args jinja.Value = jinja.Client(c.Arguments)
	if v, err := jinja.FromJSON([]byte(c.Arguments)); err == nil && !f.argsText {
		if d, ok := v.(*jinja.Dict); ok {
			args = d
		}
	}
	function.Set("arguments", args)
	d := jinja.NewDict()
	if c.ID != "" {
		d.Set("id", jinja.Client(c.ID))
	}
	d.Set("type", jinja.Literal("function"))
	d.Set("function", function)
	return d
}

// openMark stands behind a message that is to be continued. Its blank shows whether the template
// trims contents; no client can forge it, since it is looked for in what is not the client's.
const openMark = "\U000F0000continue\U000F0000 "

// cutOpen ends a prompt where the message to be continued ends. The message has to be whole, or
// the reply would go on with something that nobody said.
func cutOpen(text jinja.Text, content string) (jinja.Text, error) {
	at, from := -1, 0
	for s, client := range text.Parts() {
		if i := strings.LastIndex(s, strings.TrimSpace(openMark)); i >= 0 && !client {
			at = from + i
		}
		from += len(s)
	}
	if at < 0 || !strings.Contains(text.String(), strings.TrimFunc(content, jinja.IsSpace)) {
		return jinja.Text{}, refuseField("continue_final_message", "the model's chat template leaves out some of the last message, so that it cannot be continued")
	}
	if strings.HasPrefix(text.String()[at:], openMark) {
		return text.Slice(0, at), nil
	}
	text = text.Slice(0, at)
	return text.Slice(0, len(strings.TrimRightFunc(text.String(), jinja.IsSpace))), nil
}

// Probes are what a template is tried with.
const (
	probeText = "Hello"
	probeName = "probe_name"
	probeArg  = "probe_argument"
	probeTool = "probe_tool"
	// probeResult is what a tool answers.
	probeResult = "probe_result"
)

var probeTools = []json.RawMessage{[]byte(`{"type": "function", "function": {"name": "` + probeTool + `", "description": "", "parameters": {"type": "object", "properties": {}}}}`)}

// try finds out which form the template wants, and whether it works at all.
func (t *Template) try() error {
	hello := Conversation{Messages: []Message{{Role: "user", Content: probeText}}}
	text, err := t.run(hello, form{trial: true})
	var raised *jinja.Raised
	switch {
	case errors.Is(err, jinja.ErrCostly):
		return fmt.Errorf("chat: the template does not end on a single message: it takes more than %d steps or %d bytes", trialSteps, trialBytes)
	case errors.As(err, &raised):
	case err != nil || !strings.Contains(text.String(), probeText):
		text, err2 := t.run(hello, form{trial: true, parts: true})
		if s := text.String(); err2 == nil && strings.Contains(s, probeText) && !strings.Contains(s, "type") {
			t.form.parts, err = true, nil
		}
		if err != nil { // one for tools need not do without
			with := hello
			with.Tools = probeTools
			if _, err2 := t.run(with, form{trial: true}); err2 == nil {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("chat: rendering the template: %w", err)
		}
	}
	t.tryTools(hello.Messages[0])
	system := Conversation{Messages: []Message{{Role: "system", Content: probeName}, hello.Messages[0]}}
	text, err = t.run(system, form{trial: true, parts: t.form.parts})
	t.systemless = err != nil || !strings.Contains(text.String(), probeName)
	return nil
}

// tryTools finds out how the template wants calls, and whether it knows them and tools at all.
func (t *Template) tryTools(hello Message) {
	call := ToolCall{ID: "call12345", Name: probeName, Arguments: `{"` + probeArg + `": 1}`}
	calls := Conversation{
		Messages: []Message{hello, {Role: "assistant", ToolCalls: []ToolCall{call}}, {Role: "tool", Content: probeResult, Name: probeName, ToolCallID: call.ID}},
		Tools:    probeTools,
	}
	t.callless = true
	for i := range 4 {
		f := form{parts: t.form.parts, argsText: i&2 != 0, emptyNone: i&1 != 0, trial: true}
		text, err := t.run(calls, f)
		if s := text.String(); err == nil && strings.Contains(s, probeName) && strings.Contains(s, probeArg) {
			t.form, t.callless = f, !strings.Contains(s, probeResult)
			break
		}
	}
	calls.Messages = calls.Messages[:1]
	text, err := t.run(calls, form{parts: t.form.parts, trial: true})
	t.toolless = err != nil || !strings.Contains(text.String(), probeTool)
	t.form.trial = false
}
