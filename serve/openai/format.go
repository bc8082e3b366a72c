package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"baton/engine/grammar"
)

// formats are the fields that say what an answer has to look like, of OpenAI, SGLang and vLLM.
// A request may have one of them.
var formats = []struct {
	name string
	read func(o *object, name string, v []byte) *grammar.Spec // nil: it asks for nothing, or is wrong
}{
	{"response_format", readResponseFormat},
	{"json_schema", readSchemaText},
	{"regex", readRegex},
	{"guided_json", readSchemaText},
	{"guided_regex", readRegex},
	{"guided_choice", readChoice},
	{"structured_outputs", readStructured},
}

func readFormat(o *object, r *Request) {
	for _, f := range formats {
		v, ok := o.raw(f.name)
		if !ok {
			continue
		}
		spec := f.read(o, f.name, v)
		if spec == nil || o.err != nil {
			continue
		}
		if r.FormatParam != "" {
			o.bad(f.name, CodeValue, "not together with %s: an answer can have one form", r.FormatParam)
			return
		}
		r.Params.Grammar, r.FormatParam = spec, f.name
		if message := spec.Validate(); message != "" {
			o.bad(f.name, CodeValue, "%s", strings.TrimPrefix(message, f.name+": "))
		}
	}
	if r.FormatParam != "" && r.ToolUse >= ToolRequired {
		how := "required"
		if r.ToolUse == ToolNamed {
			how = "that names a function"
		}
		o.bad(r.FormatParam, CodeValue, "not together with tool_choice %s: a call has the form of its tool", how)
	}
}

// readResponseFormat reads {"type":"text"}, {"type":"json_object"} or
// {"type":"json_schema","json_schema":{"name":…,"schema":…,"strict":…}}.
func readResponseFormat(o *object, name string, v []byte) (spec *grammar.Spec) {
	f, ok := o.inside(name, v)
	if !ok {
		return nil
	}
	switch kind, ok := f.string("type"); {
	case !ok:
		f.bad("type", CodeMissing, "required")
	case kind == "text":
	case kind == "json_object":
		spec = &grammar.Spec{Kind: grammar.KindObject}
	case kind == "json_schema":
		spec = readNamedSchema(f)
	default:
		f.bad("type", CodeUnsupported, "%q is not supported; want text, json_object or json_schema", cut(kind))
	}
	o.took(f)
	return spec
}

// readNamedSchema reads OpenAI's schema with its name. With strict true objects have what the
// schema names and nothing else; without it, what JSON Schema allows: more, where it is not
// forbidden.
func readNamedSchema(o *object) *grammar.Spec {
	v, ok := o.raw("json_schema")
	if !ok {
		o.bad("json_schema", CodeMissing, "required")
		return nil
	}
	f, ok := o.inside("json_schema", v)
	if !ok {
		return nil
	}
	if name, ok := f.string("name"); !ok {
		f.bad("name", CodeMissing, "required")
	} else if f.err == nil && !toolName.MatchString(name) {
		f.bad("name", CodeValue, "%q is not a name of 1 to 128 letters, digits and _ . : -", cut(name))
	}
	f.string("description")
	spec := &grammar.Spec{Kind: grammar.KindSchema, Loose: !f.bool("strict", false)}
	if schema, ok := f.raw("schema"); !ok {
		f.bad("schema", CodeMissing, "required")
	} else {
		spec.Schema = readSchema(f, "schema", schema)
	}
	o.took(f)
	return spec
}

// readSchema copies a schema: an object, or true and false, which are schemas, too.
func readSchema(o *object, name string, v []byte) json.RawMessage {
	if c := first(v); c != '{' && c != 't' && c != 'f' {
		o.wrongType(name, "a JSON schema, which is an object", v)
		return nil
	}
	return bytes.Clone(v)
}

// readSchemaText reads a schema, or the text of one in a string, as SGLang and vLLM take it.
func readSchemaText(o *object, name string, v []byte) *grammar.Spec {
	if first(v) == '"' {
		s, _ := o.string(name)
		if v = []byte(s); !json.Valid(v) {
			o.bad(name, CodeValue, "%s is not JSON; want a JSON schema", cut(s))
			return nil
		}
	}
	return &grammar.Spec{Kind: grammar.KindSchema, Loose: true, Schema: readSchema(o, name, v)}
}

func readRegex(o *object, name string, _ []byte) *grammar.Spec {
	s, _ := o.string(name)
	if s == "" {
		o.bad(name, CodeValue, "empty; want a regular expression")
	}
	return &grammar.Spec{Kind: grammar.KindRegex, Regex: s}
}

func readChoice(o *object, name string, v []byte) *grammar.Spec {
	list := o.strings(name, v, ChoiceMax, ChoiceBytesMax)
	if o.err == nil && len(list) == 0 {
		o.bad(name, CodeValue, "empty; want at least one string")
	}
	return &grammar.Spec{Kind: grammar.KindChoice, Choice: list}
}

// structured are the fields of vLLM's structured_outputs of which one may be there.
var structured = []struct {
	name string
	read func(o *object, name string, v []byte) *grammar.Spec
}{
	{"json", readSchemaText},
	{"regex", readRegex},
	{"choice", readChoice},
	{"json_object", func(o *object, name string, _ []byte) *grammar.Spec {
		if !o.bool(name, false) {
			return nil
		}
		return &grammar.Spec{Kind: grammar.KindObject}
	}},
}

func readStructured(o *object, name string, v []byte) (spec *grammar.Spec) {
	f, ok := o.inside(name, v)
	if !ok {
		return nil
	}
	for _, kind := range [...]string{"grammar", "structural_tag", "whitespace_pattern"} {
		if raw, ok := f.raw(kind); ok {
			f.bad(kind, CodeUnsupported, "%s is not supported; want json, regex, choice or json_object", shown(raw))
		}
	}
	if f.bool("disable_any_whitespace", false) {
		f.bad("disable_any_whitespace", CodeUnsupported, "true is not supported; leave it out")
	}
	from := ""
	for _, kind := range structured {
		raw, ok := f.raw(kind.name)
		if !ok {
			continue
		}
		one := kind.read(f, kind.name, raw)
		if one == nil {
			continue
		}
		if spec != nil {
			f.bad(kind.name, CodeValue, "not together with %s: an answer can have one form", from)
			break
		}
		spec, from = one, kind.name
	}
	if spec == nil && f.err == nil {
		o.bad(name, CodeValue, "names no form; want one of json, regex, choice and json_object")
	}
	if f.bool("disable_additional_properties", false) && spec != nil {
		spec.Loose = false
	}
	o.took(f)
	return spec
}
