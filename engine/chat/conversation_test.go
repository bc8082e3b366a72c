package chat

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"baton/engine/tokenizer"
)

// golden is a row of what tools/chat/oracle.py writes.
type golden struct {
	Template, Name string
	Vars           struct {
		Messages  []goldenMessage
		Tools     []json.RawMessage
		Documents []json.RawMessage
		Prompt    *bool `json:"add_generation_prompt"`
	}
	All      map[string]json.RawMessage `json:"-"`
	Messages []goldenMessage            // of a continued row
	Text     *string
	Refused  string
	Error    string
	IDs      []int32 // of a row of tokens
}

type goldenMessage struct {
	Role, Name string
	Content    json.RawMessage
	Reasoning  string `json:"reasoning_content"`
	Calls      []struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

func goldens(t testing.TB, name string) (out []golden) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	sc := bufio.NewScanner(in)
	for sc.Buffer(nil, 1<<20); sc.Scan(); {
		var g golden
		var all struct{ Vars map[string]json.RawMessage }
		// What a message cannot hold (a content that is no text or none) fails to be read here.
		if json.Unmarshal(sc.Bytes(), &g) != nil || json.Unmarshal(sc.Bytes(), &all) != nil {
			continue
		}
		g.All = all.Vars
		out = append(out, g)
	}
	return out
}

// plain is a template without the vocabulary's names of tokens.
func plain(t testing.TB, name string, tok *tokenizer.Tokenizer) *Template {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name + ".jinja")
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := newTemplate(string(src), tok, map[string]string{"bos_token": "<|begin|>", "eos_token": "<|end|>"})
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// messages turns a row's messages into ours; ok is false if the row has them in a form that this
// template is not given by Conversation.
func messages(in []goldenMessage, f form) (out []Message, ok bool) {
	for _, m := range in {
		o := Message{Role: m.Role, Name: m.Name, Reasoning: m.Reasoning, ToolCallID: m.CallID}
		none := string(m.Content) == "null"
		if json.Unmarshal(m.Content, &o.Content) != nil || none != (f.emptyNone && len(m.Calls) > 0 && o.Content == "") {
			return nil, false
		}
		for _, c := range m.Calls {
			call := ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)}
			if text := call.Arguments[0] == '"'; text != f.argsText {
				return nil, false
			} else if text {
				_ = json.Unmarshal(c.Function.Arguments, &call.Arguments)
			}
			o.ToolCalls = append(o.ToolCalls, call)
		}
		out = append(out, o)
	}
	return out, true
}

// TestConversationsRenderAsTransformersDoes holds C4 from the wire's side: messages, tools, calls
// and arguments as clients send them give the text that apply_chat_template gives.
func TestConversationsRenderAsTransformersDoes(t *testing.T) {
	templates := map[string]*Template{}
	seen, refusals := 0, 0
	for _, g := range goldens(t, "testdata/renders.jsonl.gz") {
		tpl := templates[g.Template]
		if tpl == nil {
			tpl = plain(t, g.Template, nil)
			templates[g.Template] = tpl
		}
		c, ok := g.conversation(tpl.form)
		if !ok || g.Error != "" {
			continue
		}
		if tools, calls := tpl.spelled(c); tools || calls {
			continue // transformers leaves them out
		}
		seen++
		got, err := tpl.render(c)
		var refused *Refused
		switch {
		case g.Refused != "":
			refusals++
			if !errors.As(err, &refused) || !strings.HasSuffix(err.Error(), ": "+g.Refused) {
				t.Errorf("%s, %s: error %v, want %s", g.Template, g.Name, err, g.Refused)
			}
		case err != nil || got.String() != *g.Text:
			t.Errorf("%s, %s:\n got %q, %v\nwant %q", g.Template, g.Name, got.String(), err, *g.Text)
		}
	}
	if seen < 260 || refusals < 4 {
		t.Errorf("only %d rows and %d refusals were compared", seen, refusals)
	}
}

// TestContinuedMessagesAreThoseOfTransformers: continue_final_message.
func TestContinuedMessagesAreThoseOfTransformers(t *testing.T) {
	rows := goldens(t, "testdata/continued.jsonl")
	for _, g := range rows {
		msgs, _ := messages(g.Messages, form{})
		got, err := plain(t, g.Template, nil).render(Conversation{Messages: msgs, ContinueFinal: true})
		var refused *Refused
		if g.Text == nil {
			if !errors.As(err, &refused) {
				t.Errorf("%s, %s: %q, %v, want it refused", g.Template, g.Name, got.String(), err)
			}
		} else if err != nil || got.String() != *g.Text {
			t.Errorf("%s, %s:\n got %q, %v\nwant %q", g.Template, g.Name, got.String(), err, *g.Text)
		}
	}
	if len(rows) != 80 {
		t.Errorf("%d rows, expected are 80", len(rows))
	}
}

func TestBadPartsOfConversationsAreTheClientsError(t *testing.T) {
	tpl := template(t, "qwen3", vocabulary(t))
	hello := []Message{{Role: "user", Content: "a"}}
	object := json.RawMessage(`{}`)
	many := make([]json.RawMessage, ToolsMax+1)
	for i := range many {
		many[i] = object
	}
	deep := []byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))
	for want, c := range map[string]Conversation{
		"the conversation has 1025 tools, allowed are 1024":               {Messages: hello, Tools: many},
		"the conversation has 1025 documents, allowed are 1024":           {Messages: hello, Documents: many},
		"tools[1] is no JSON: ":                                           {Messages: hello, Tools: []json.RawMessage{object, []byte(`{"a":`)}},
		"tools[0] is no JSON object":                                      {Messages: hello, Tools: []json.RawMessage{[]byte(`[]`)}},
		"tools[0] is no JSON: the JSON is nested more than 128 deep":      {Messages: hello, Tools: []json.RawMessage{deep}},
		"tools[0] is no JSON: something follows the JSON value at byte":   {Messages: hello, Tools: []json.RawMessage{[]byte(`{} {}`)}},
		"documents[0] is no JSON object":                                  {Messages: hello, Documents: []json.RawMessage{[]byte(`"a"`)}},
		"the template's arguments are no JSON: ":                          {Messages: hello, Kwargs: []byte(`{`)},
		"the template's arguments are no JSON object":                     {Messages: hello, Kwargs: []byte(`[1]`)},
		`the template's argument "messages" is set by the server`:         {Messages: hello, Kwargs: []byte(`{"a": 1, "messages": []}`)},
		`the template's argument "raise_exception" is set by the server`:  {Messages: hello, Kwargs: []byte(`{"raise_exception": []}`)},
		"the template's arguments have 262145 bytes, allowed are 262144":  {Messages: hello, Kwargs: bytes.Repeat([]byte(" "), kwargsBytes+1)},
		"the last message is to be continued and has no content":          {Messages: []Message{{Role: "assistant"}}, ContinueFinal: true},
		"message 0 has 129 tool calls, allowed are 128":                   {Messages: []Message{{Role: "assistant", ToolCalls: make([]ToolCall, CallsMax+1)}}},
		"the contents have 16777217 bytes, allowed are 16777216":          {Messages: []Message{{Role: "user", Content: "a", Reasoning: strings.Repeat("a", outputBytesMax)}}},
		"the model's chat template cannot render the conversation: line ": {Messages: hello, Tools: []json.RawMessage{object}, Kwargs: []byte(`{"enable_thinking": false}`)},
	} {
		use := tpl
		if strings.Contains(want, "cannot render") {
			use, _ = New("{{ messages[0].content }}{% if tools %}{{ tools[0].function.name + 'x' }}{% endif %}{{ 'probe_tool<tool_call>' }}", vocabulary(t))
		}
		var refused *Refused
		if _, err := use.Prompt(c); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "chat: "+want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Documents that a template does not print are refused, and those that it prints are not.
func TestDocumentsThatNobodyReadsAreRefused(t *testing.T) {
	hello := []Message{{Role: "user", Content: "a"}}
	docs := []json.RawMessage{[]byte(`{"title":"a","text":"b"}`)}
	for _, name := range names {
		tpl := template(t, name, vocabulary(t))
		err := tpl.CheckDocuments(Conversation{Messages: hello, Documents: docs})
		refused, is := errors.AsType[*Refused](err)
		if reads := name == "opening"; is == reads || err == nil != reads || is && refused.Field != "documents" {
			t.Errorf("%s: %v", name, err)
		}
		if err := tpl.CheckDocuments(Conversation{Messages: hello}); err != nil {
			t.Errorf("%s, without any: %v", name, err)
		}
		if err := tpl.CheckDocuments(Conversation{Documents: docs}); err != nil { // that is Prompt's to say
			t.Errorf("%s, no messages: %v", name, err)
		}
	}
}
