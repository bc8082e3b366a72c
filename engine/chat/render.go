package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// compile parses a template, rewritten for the engine.
func compile(src string) (c *jinja.Template, err error) {
	defer caught(&err)
	src, err = source(src)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(src, sentinelOpen+sentinelClose) {
		return nil, fmt.Errorf("it contains %q or %q, which stand for contents here", sentinelOpen, sentinelClose)
	}
	return jinja.Compile(src)
}

// costly says that a conversation takes a template too long. One message always has to be
// cheap, so New takes it for an error of the template.
const costly = "the model's chat template takes too long for this conversation"

// Bounds of one rendering (C3).
const (
	stepsMax  = 1 << 20 // rounds of all loops; a template of two nested loops takes 1024 messages
	macrosMax = 32      // macros inside each other: each costs stack, see nestingMax
	timeMax   = 10 * time.Second
)

// meter counts what a rendering does.
type meter struct {
	steps, macros int
	until         time.Time
	over          bool
}

// callable returns the count under a name that source puts into templates.
func (m *meter) callable(name string, count func()) jinja.Value {
	return jinja.NewCallable(name, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		count()
		if m.steps > stepsMax || m.macros > macrosMax || m.steps%1024 == 0 && time.Now().After(m.until) {
			m.over = true
			return jinja.Undefined(), &Refused{costly}
		}
		return jinja.NewBool(false), nil
	})
}

// caught turns a panic of the template engine into an error: it is third-party code that runs
// over text from a file.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the template engine failed: %v", p)
	}
}

// render runs the template with the variables that Hugging Face's tokenizers give it.
func (t *Template) render(msgs []Message, content func(i int) string) (out string, err error) {
	list := make([]jinja.Value, len(msgs))
	for i, m := range msgs {
		d := jinja.NewDict()
		d.AsDict().Set("role", jinja.NewString(m.Role))
		d.AsDict().Set("content", jinja.NewString(content(i)))
		list[i] = d
	}
	var refused *Refused
	m := meter{until: time.Now().Add(timeMax)}
	vars := map[string]jinja.Value{
		"messages":              jinja.NewList(list),
		"add_generation_prompt": jinja.NewBool(true),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
		"bos_token":             jinja.NewString(t.name(true)),
		"eos_token":             jinja.NewString(t.name(false)),
		stepName:                m.callable(stepName, func() { m.steps++ }),
		enterName:               m.callable(enterName, func() { m.steps++; m.macros++ }),
		leaveName:               m.callable(leaveName, func() { m.macros-- }),
		"range":                 jinja.NewCallable("range", boundedRange),
		"raise_exception": jinja.NewCallable("raise_exception", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			refused = &Refused{"the model's chat template refuses the conversation"}
			if len(args) > 0 && args[0].IsString() {
				refused.Reason += ": " + args[0].AsString()
			}
			return jinja.Undefined(), refused
		}),
	}
	out, err = t.run(vars)
	switch {
	case m.over:
		return "", &Refused{costly}
	case refused != nil:
		return "", refused
	case err != nil:
		return "", fmt.Errorf("chat: rendering the template: %w", err)
	case len(out) > outputBytesMax:
		return "", &Refused{fmt.Sprintf("the prompt has %d bytes, allowed are %d", len(out), outputBytesMax)}
	}
	return out, nil
}

func (t *Template) run(vars map[string]jinja.Value) (out string, err error) {
	defer caught(&err)
	return t.compiled.RenderValues(vars)
}

// name returns the text of the begin or end token, "" if there is none.
func (t *Template) name(begin bool) string {
	if t.tok == nil {
		return ""
	}
	if begin {
		return t.tok.Text(t.tok.BOS())
	}
	return t.tok.Text(t.tok.MainEOS())
}

// boundedRange is Python's range with at most rangeMax items.
func boundedRange(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	var n [3]int64
	for i, a := range args {
		if i >= len(n) || !a.IsInt() {
			return jinja.Undefined(), fmt.Errorf("range needs 1 to 3 integers")
		}
		n[i] = a.AsInt()
	}
	var from, to, step int64
	switch len(args) {
	case 1:
		from, to, step = 0, n[0], 1
	case 2:
		from, to, step = n[0], n[1], 1
	case 3:
		from, to, step = n[0], n[1], n[2]
	}
	if step == 0 {
		return jinja.Undefined(), fmt.Errorf("range needs 1 to 3 integers and a step that is not 0")
	}
	var items []jinja.Value
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(items) == rangeMax {
			return jinja.Undefined(), fmt.Errorf("range(%d, %d, %d) has more than %d items", from, to, step, rangeMax)
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}
