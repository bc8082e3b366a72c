package chat

import (
	"fmt"

	"github.com/ardanlabs/jinja"
)

// compile parses a template. The engine follows Hugging Face's settings: trim_blocks and
// lstrip_blocks are on.
func compile(src string) (c *jinja.Template, err error) {
	defer caught(&err)
	return jinja.Compile(src)
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
	vars := map[string]jinja.Value{
		"messages":              jinja.NewList(list),
		"add_generation_prompt": jinja.NewBool(true),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
		"bos_token":             jinja.NewString(t.name(true)),
		"eos_token":             jinja.NewString(t.name(false)),
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
