package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"baton/engine/tokenizer"
)

// TestTokensAreThoseOfTransformers compares prompts with those of transformers, token by token, by
// the tokenizers and templates of model directories that MODELS names.
func TestTokensAreThoseOfTransformers(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("MODELS"))
	if len(dirs) == 0 {
		t.Skip("MODELS names no model directories with what tools/chat/tokens.py made of them")
	}
	for _, dir := range dirs {
		read := func(name string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		config := read("tokenizer_config.json")
		tok, err := tokenizer.FromJSON(read("tokenizer.json"), config)
		if err != nil {
			t.Fatal(err)
		}
		tpl, err := FromConfig(config, nil, tok)
		if err != nil {
			t.Fatal(err)
		}
		same, all := 0, 0
		for _, g := range goldens(t, filepath.Join(dir, "tokens.jsonl.gz")) {
			c, ok := g.conversation(tpl.form)
			tools, calls := tpl.spelled(c)
			if !ok || tools || calls {
				continue // not a form that this template is given
			}
			all++
			ids, err := tpl.EncodeConversation(c)
			if err == nil && slices.Equal(ids, g.IDs) {
				same++
				continue
			}
			t.Errorf("%s, %s: %v\n got %v\nwant %v", dir, g.Name, err, ids, g.IDs)
		}
		t.Logf("%s: %d of %d prompts have the same tokens; replies: %+v", dir, same, all, tpl.Reply())
	}
}

// conversation is a row as a client sends it.
func (g golden) conversation(f form) (c Conversation, ok bool) {
	c = Conversation{Tools: g.Vars.Tools, Documents: g.Vars.Documents, Now: time.Date(2026, 3, 7, 9, 5, 4, 0, time.UTC)}
	if c.Messages, ok = messages(g.Vars.Messages, f); !ok {
		return c, false
	}
	c.NoGenerationPrompt = g.Vars.Prompt != nil && !*g.Vars.Prompt
	kwargs := map[string]json.RawMessage{}
	for _, name := range []string{"enable_thinking", "thinking", "reasoning_effort", "date_string", "tools_in_user_message"} {
		if v := g.All[name]; v != nil {
			kwargs[name] = v
		}
	}
	c.Kwargs, _ = json.Marshal(kwargs)
	return c, true
}
