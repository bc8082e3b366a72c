package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine/chat"
	"baton/engine/model"
)

func TestTheEmbeddedModelOpens(t *testing.T) {
	c, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Name != "recall" || c.Template == nil || c.Tokenizer.Vocab() < c.Config.Vocab {
		t.Errorf("%+v", c)
	}
	m, err := c.Load(model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Config().Vocab; got != c.Config.Vocab {
		t.Errorf("the model has %d logits, its checkpoint says %d", got, c.Config.Vocab)
	}
	m.Close()
}

// tiny copies a model directory that has no tokenizer, and adds these files.
func tiny(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	const from = "../model/testdata/goldens/qwen3"
	for _, name := range []string{"config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if files[name] == "" {
			files[name] = string(b)
		}
	}
	for name, s := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// words is a byte-level tokenizer of the 26 small letters, <s> and </s>: fewer tokens than the
// model has rows. More tokens may be added.
func words(more ...int) string {
	var b strings.Builder
	b.WriteString(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[`)
	b.WriteString(`{"id":26,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},`)
	b.WriteString(`{"id":27,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`)
	for _, id := range more {
		fmt.Fprintf(&b, `,{"id":%d,"content":"<%d>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`, id, id)
	}
	b.WriteString(`],`)
	b.WriteString(`"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(`"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{`)
	for i := range 26 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + string(rune('a'+i)) + `":` + string(rune('0'+i/10)) + string(rune('0'+i%10)))
	}
	b.WriteString(`},"merges":[]}}`)
	return strings.NewReplacer(`:0`, `:`).Replace(b.String())
}

func TestDirectoriesOpenWithTheirWords(t *testing.T) {
	const one = `{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}`
	config := `{"bos_token":"<s>","eos_token":"</s>","chat_template":"` + one + `"}`
	c, err := Open(tiny(t, map[string]string{"tokenizer.json": words(), "tokenizer_config.json": config}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Config.Arch != "qwen3" || c.Config.Rows != 88 || c.Config.Vocab != 28 || c.Template == nil {
		t.Fatalf("%+v", c)
	}
	ids, err := c.Template.Encode([]chat.Message{{Role: "user", Content: "abz"}})
	if err != nil || !slices.Equal(ids, []int32{26, 0, 1, 25}) {
		t.Errorf("a chat is %v, %v", ids, err)
	}
	if eos := c.Tokenizer.EOS(); !slices.Contains(eos, 27) {
		t.Errorf("ends are %v", eos)
	}
	m, err := c.Load(model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	kv, err := m.NewKV(1)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	items := []model.Item{{Tokens: []int32{60, 26, 0}, Table: []int32{0}, Want: true}}
	if err := m.NewRunner(kv).Step(items); err != nil || len(items[0].Logits) != 28 {
		t.Errorf("%d logits, %v; want 28: padding must not be drawn", len(items[0].Logits), err)
	}
}

// TestTokensWithoutRowsAreNoTokens: Gemma's tokenizer has one token more than its text models have
// rows; a tokenizer with many more is another model's.
func TestTokensWithoutRowsAreNoTokens(t *testing.T) {
	c, err := Open(tiny(t, map[string]string{"tokenizer.json": words(88)}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := c.Load(model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if c.Tokenizer.Vocab() != 89 || m.Config().Vocab != 88 {
		t.Errorf("%d tokens, of which %d can be drawn", c.Tokenizer.Vocab(), m.Config().Vocab)
	}
	c, err = Open(tiny(t, map[string]string{"tokenizer.json": words(200)}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Load(model.Options{Threads: 1}); err == nil || !strings.Contains(err.Error(), "not of one model") {
		t.Errorf("201 tokens for 88 rows: %v", err)
	}
}

func TestTemplatesAreFoundWhereTheyMayBe(t *testing.T) {
	c, err := Open(tiny(t, map[string]string{"tokenizer.json": words()}))
	if err != nil || c.Template != nil {
		t.Fatalf("a model without a template: %v", err)
	}
	c.Close()
	c, err = Open(tiny(t, map[string]string{"tokenizer.json": words(), "chat_template.jinja": "own", "tokenizer_config.json": `{}`}))
	if err != nil || c.Template == nil {
		t.Fatalf("a template in a file of its own: %v", err)
	}
	c.Close()
}

func TestIncompleteDirectoriesAreExplained(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no tokenizer": {map[string]string{}, "tokenizer.json is missing"},
		"bad config":   {map[string]string{"config.json": `{"model_type":"bert"}`}, `model_type "bert" is not supported`},
		"bad weights":  {map[string]string{"model.safetensors": "short"}, "no safetensors file"},
		"bad words":    {map[string]string{"tokenizer.json": "{"}, "tokenizer"},
	} {
		c, err := Open(tiny(t, row.files))
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), "checkpoint: ") {
			t.Errorf("%s: %v, error %v, want %q", name, c, err, row.want)
		}
	}
}
