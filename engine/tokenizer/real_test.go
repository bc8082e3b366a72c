package tokenizer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/engine/tokenizer/nfc"
	"baton/engine/weights/gguf"
)

// realFile reads a file of a real model out of the cache of baton pull. Without it the test is
// skipped, or fails where the environment variable BATON_REQUIRE_MODELS is 1.
func realFile(t testing.TB, path, remedy string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("short: real models are compared in whole runs")
	}
	dir := os.Getenv("BATON_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "baton", "models")
	}
	b, err := os.ReadFile(filepath.Join(dir, path))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("BATON_REQUIRE_MODELS") != "1" {
		t.Skipf("%v; bring it with: %s", err, remedy)
	}
	if err != nil {
		t.Fatalf("%v; bring it with: %s", err, remedy)
	}
	return b
}

// realFiles reads the tokenizer of a real model, which tools/tokenizer/fetch.sh brings.
func realFiles(t testing.TB, name string) (file, config []byte) {
	t.Helper()
	const remedy = "tools/tokenizer/fetch.sh"
	return realFile(t, "tokenizers/"+name+"/tokenizer.json", remedy), realFile(t, "tokenizers/"+name+"/tokenizer_config.json", remedy)
}

func realSmolLM2(t testing.TB) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(realFile(t, "SmolLM2-135M-Instruct.Q4_1.gguf", "baton pull smollm2"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func realTokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	file, config := realFiles(t, name)
	tok, err := FromJSON(file, config)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func same(s string) string { return s }

// spaced is what comes back of a vocabulary that writes spaces as U+2581.
func spaced(s string) string { return strings.ReplaceAll(s, markSpace, " ") }

// TestEqualToReference compares with the Python package `tokenizers` on more than 6,000 texts, with
// special tokens and without.
func TestEqualToReference(t *testing.T) {
	for name, want := range map[string]func(string) string{"qwen3": nfc.String, "llama3_1": same, "gemma3": spaced, "deepseek_v3": same} {
		t.Run(name, func(t *testing.T) {
			tok := realTokenizer(t, name)
			compare(t, name, tok, nil)
			roundTrip(t, tok, want)
		})
	}
}

// ggufOf writes the vocabulary of a tokenizer.json as llama.cpp's conversion does (see
// tools/tokenizer/vocab.py), with the pre-tokenizer pre, or with scores for "spm".
func ggufOf(t testing.TB, file []byte, pre string) *gguf.File {
	t.Helper()
	var j jsonFile
	if err := json.Unmarshal(file, &j); err != nil {
		t.Fatal(err)
	}
	v, err := j.vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	types, scores := make([]int32, len(v.names)), make([]float32, len(v.names))
	for i, k := range v.kinds {
		if types[i], scores[i] = int32(k), -float32(i); k == User {
			v.names[i] = spaced(v.names[i])
		}
	}
	var w gguf.Writer
	w.Set("tokenizer.ggml.tokens", v.names)
	w.Set("tokenizer.ggml.token_type", types)
	if pre == "spm" {
		w.Set("tokenizer.ggml.model", "llama")
		w.Set("tokenizer.ggml.scores", scores)
		w.Set("tokenizer.ggml.add_space_prefix", false)
	} else {
		var merges []string
		for _, m := range j.Model.Merges {
			merges = append(merges, m[0]+" "+m[1])
		}
		w.Set("tokenizer.ggml.model", "gpt2")
		w.Set("tokenizer.ggml.pre", pre)
		w.Set("tokenizer.ggml.merges", merges)
	}
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEqualToLlamaCpp compares the GGUF form of the same vocabularies with llama.cpp. It differs by
// choice in two things: llama.cpp makes a control token of a token called </s> whatever its
// file says, and its digits are those of Unicode 15.
func TestEqualToLlamaCpp(t *testing.T) {
	other := func(text string) bool {
		return strings.Contains(text, "</s>") || strings.ContainsFunc(text, func(r rune) bool { return 0x10d40 <= r && r <= 0x10d49 })
	}
	for name, pre := range map[string]string{"qwen3": "qwen2", "llama3_1": "llama-bpe", "deepseek_v3": "deepseek-v3", "gemma3": "spm"} {
		t.Run(name, func(t *testing.T) {
			file, _ := realFiles(t, name)
			tok, err := FromGGUF(ggufOf(t, file, pre))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, name+"-llamacpp", tok, other)
			if pre != "spm" {
				roundTrip(t, tok, same)
			}
		})
	}
}

// TestSmolLM2IsTheSameFromBothFiles compares SmolLM2's file with llama.cpp, and the tokenizer.json
// of the same vocabulary with the reference.
func TestSmolLM2IsTheSameFromBothFiles(t *testing.T) {
	f := realSmolLM2(t)
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "smollm2-llamacpp", tok, nil)
	names, _ := f.Strings("tokenizer.ggml.tokens")
	merges, _ := f.Strings("tokenizer.ggml.merges")
	vocab := map[string]int{}
	var added []jsonAdded
	for id, name := range names {
		if vocab[name] = id; tok.IsSpecial(int32(id)) {
			added = append(added, jsonAdded{ID: int64(id), Content: name, Special: true})
		}
	}
	file, err := json.Marshal(map[string]any{
		"added_tokens": added,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Digits", "individual_digits": true}, map[string]any{"type": "ByteLevel", "add_prefix_space": false},
		}},
		"decoder": map[string]any{"type": "ByteLevel"},
		"model":   map[string]any{"type": "BPE", "vocab": vocab, "merges": merges},
	})
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := FromJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "smollm2", fromJSON, nil)
}

// BenchmarkReal encodes mixed text: prose of many languages, program text, and this package.
func BenchmarkReal(b *testing.B) {
	text := mixed(b)
	run := func(name string, tok *Tokenizer) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var ids []int32
			for b.Loop() {
				ids = tok.AppendEncode(ids[:0], text, true)
			}
			b.ReportMetric(float64(len(text))/float64(len(ids)), "bytes/token")
		})
	}
	for name, pre := range map[string]string{"qwen3": "qwen2", "llama3_1": "llama-bpe", "deepseek_v3": "deepseek-v3", "gemma3": "spm"} {
		file, _ := realFiles(b, name)
		run(name, realTokenizer(b, name))
		tok, err := FromGGUF(ggufOf(b, file, pre))
		if err != nil {
			b.Fatal(err)
		}
		run(name+"-gguf", tok)
	}
	tok, err := FromGGUF(realSmolLM2(b))
	if err != nil {
		b.Fatal(err)
	}
	run("smollm2-gguf", tok)
}

// mixed is 300 kB of text.
func mixed(t testing.TB) string {
	var b strings.Builder
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "../../README.md", "../../ARCHITECTURE.md", "../../BUGS.md") {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(file)
		for _, s := range prose {
			b.WriteString(s + "\n")
		}
	}
	return b.String()
}
