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

// realFiles reads the tokenizer of a real model, which tools/tokenizer/fetch.sh brings. Without it
// the test is skipped, or fails where the environment variable BATON_REQUIRE_MODELS is 1.
func realFiles(t testing.TB, name string) (file, config []byte) {
	t.Helper()
	dir := os.Getenv("BATON_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "baton", "models")
	}
	dir = filepath.Join(dir, "tokenizers", name)
	file, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("BATON_REQUIRE_MODELS") != "1" {
		t.Skipf("the tokenizer %s is not on this machine (looked in %s); fetch it with: tools/tokenizer/fetch.sh", name, dir)
	}
	if err != nil {
		t.Fatalf("%v; fetch it with: tools/tokenizer/fetch.sh", err)
	}
	if config, err = os.ReadFile(filepath.Join(dir, "tokenizer_config.json")); err != nil {
		t.Fatal(err)
	}
	return file, config
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
