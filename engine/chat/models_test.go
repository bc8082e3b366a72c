package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"baton/engine/chat/jinja"
	"baton/engine/tokenizer"
)

// realFile reads a file of a real model's tokenizer, which tools/tokenizer/fetch.sh brings. Without
// it the test is skipped, or fails where the environment variable BATON_REQUIRE_MODELS is 1.
func realFile(t *testing.T, model, name string) []byte {
	t.Helper()
	dir := os.Getenv("BATON_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "baton", "models")
	}
	b, err := os.ReadFile(filepath.Join(dir, "tokenizers", model, name))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("BATON_REQUIRE_MODELS") != "1" {
		t.Skipf("%v; bring it with: tools/tokenizer/fetch.sh", err)
	}
	if err != nil {
		t.Fatalf("%v; bring it with: tools/tokenizer/fetch.sh", err)
	}
	return b
}

// TestRealModelsArePromptedAsByTransformers holds C4 for the templates of real models, and C2 for
// their tokenizers: text by text, and token by token.
func TestRealModelsArePromptedAsByTransformers(t *testing.T) {
	if testing.Short() {
		t.Skip("short: real models are compared in whole runs")
	}
	vars := map[string]golden{}
	for _, g := range goldens(t, "testdata/renders.jsonl.gz") {
		vars[g.Name] = g
	}
	models := map[string][]golden{}
	for _, g := range goldens(t, "testdata/models.jsonl.gz") {
		if v, ok := vars[g.Name]; ok { // a form that no conversation has
			g.Vars, g.All = v.Vars, v.All
			models[g.Template] = append(models[g.Template], g)
		}
	}
	if len(models) != 4 {
		t.Errorf("%d models", len(models))
	}
	for model, rows := range models {
		t.Run(model, func(t *testing.T) {
			config := realFile(t, model, "tokenizer_config.json")
			tok, err := tokenizer.FromJSON(realFile(t, model, "tokenizer.json"), config)
			if err != nil {
				t.Fatal(err)
			}
			tpl, err := FromConfig(config, nil, tok)
			if err != nil {
				t.Fatal(err)
			}
			ids := 0
			for _, g := range rows {
				tpl.sameText(t, g)
				ids += tpl.sameIDs(t, g)
			}
			if len(rows) < 30 || ids < 12 {
				t.Errorf("only %d texts and %d prompts were compared", len(rows), ids)
			}
		})
	}
}

// sameText renders the row's variables themselves.
func (t *Template) sameText(tt *testing.T, g golden) {
	tt.Helper()
	all := maps.Clone(g.All)
	for _, name := range []string{"bos_token", "eos_token"} {
		delete(all, name)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		tt.Fatal(err)
	}
	v, err := jinja.FromJSON(raw)
	if err != nil {
		tt.Fatal(err)
	}
	d := v.(*jinja.Dict)
	for name, text := range t.names {
		d.Set(name, jinja.Literal(text))
	}
	got, err := t.compiled.Render(d, form{}.budget(1<<20), func() time.Time { return golden{}.now() })
	var raised *jinja.Raised
	var fault *jinja.Error
	switch {
	case g.Text != nil && (err != nil || got.String() != *g.Text):
		tt.Errorf("%s:\n got %q, %v\nwant %q", g.Name, got.String(), err, *g.Text)
	case g.Refused != "" && (!errors.As(err, &raised) || raised.Message != g.Refused), g.Error != "" && !errors.As(err, &fault):
		tt.Errorf("%s: %q, %v, want %s%s", g.Name, got.String(), err, g.Refused, g.Error)
	}
}

// sameIDs sends the row as a client does.
func (t *Template) sameIDs(tt *testing.T, g golden) int {
	tt.Helper()
	c, ok := g.conversation(t.form)
	if tools, calls := t.spelled(c); !ok || tools || calls || g.IDs == nil {
		return 0 // not a form that this template is given
	}
	ids, err := t.EncodeConversation(c)
	if err != nil || !slices.Equal(ids, g.IDs) {
		tt.Errorf("%s: %v\n got %v\nwant %v", g.Name, err, ids, g.IDs)
	}
	return 1
}

func (golden) now() time.Time { return time.Date(2026, 3, 7, 9, 5, 4, 0, time.UTC) }

// conversation is a row as a client sends it.
func (g golden) conversation(f form) (c Conversation, ok bool) {
	c = Conversation{Tools: g.Vars.Tools, Documents: g.Vars.Documents, Now: g.now()}
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
