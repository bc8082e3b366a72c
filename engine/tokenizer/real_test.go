package tokenizer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/engine/tokenizer/nfc"
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
			compare(t, name, tok)
			roundTrip(t, tok, want)
		})
	}
}
