package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"baton/engine/weights/gguf"
)

// tiny is a tokenizer of all bytes, three merges, a user-defined and two control tokens.
func tiny() map[string]any {
	var tokens []string
	var types []int32
	names := make([]string, 256)
	for r, b := range byteOfRune {
		if b >= 0 {
			names[b] = string(rune(r))
		}
	}
	for _, n := range append(names, "ab", "abc", "Ġa") {
		tokens, types = append(tokens, n), append(types, int32(Normal))
	}
	tokens = append(tokens, "<start>", "<|im_end|>", "<tool>")
	types = append(types, int32(Control), int32(Control), int32(User))
	return map[string]any{
		"tokenizer.ggml.model":         "gpt2",
		"tokenizer.ggml.pre":           "gpt-2",
		"tokenizer.ggml.tokens":        tokens,
		"tokenizer.ggml.token_type":    types,
		"tokenizer.ggml.merges":        []string{"a b", "ab c", "Ġ a"},
		"tokenizer.ggml.bos_token_id":  uint32(259),
		"tokenizer.ggml.add_bos_token": true,
	}
}

func build(t *testing.T, keys map[string]any) (*Tokenizer, error) {
	t.Helper()
	var w gguf.Writer
	for k, v := range keys {
		if v != nil {
			w.Set(k, v)
		}
	}
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return FromGGUF(f)
}

func mustBuild(t *testing.T, keys map[string]any) *Tokenizer {
	t.Helper()
	tok, err := build(t, keys)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestBadTokenizersAreRefusedWithAReason(t *testing.T) {
	rows := []struct {
		name, key string
		value     any // nil: without the key
		want      string
	}{
		{"no model", "tokenizer.ggml.model", nil, "the file has no key tokenizer.ggml.model: it carries no tokenizer"},
		{"another model", "tokenizer.ggml.model", "bert", `tokenizer.ggml.model is "bert", supported are "gpt2" (byte-level BPE) and "llama" (SentencePiece with scores)`},
		{"unknown pre", "tokenizer.ggml.pre", "bloom", `tokenizer.ggml.pre is "bloom", supported are ["command-r" "deepseek-r1-qwen" "deepseek-v3" "default" "falcon3" "gpt-2" "llama-bpe" "llama-v3" "llama3" "qwen2" "refact" "smollm" "starcoder"]`},
		{"no tokens", "tokenizer.ggml.tokens", nil, `tokenizer.ggml.tokens has 0 strings (""), needed are 1 to 4194304`},
		{"tokens of numbers", "tokenizer.ggml.tokens", []int32{1}, `tokenizer.ggml.tokens has 0 strings ("array of i32"), needed are 1 to 4194304`},
		{"token twice", "tokenizer.ggml.tokens", []string{"a", "b", "a"}, `tokenizer.ggml.token_type has 262 integers`},
		{"few types", "tokenizer.ggml.token_type", []int32{1, 1}, `tokenizer.ggml.token_type has 2 integers ("array of i32") for 262 tokens`},
		{"types of text", "tokenizer.ggml.token_type", "x", `tokenizer.ggml.token_type has 0 integers ("string") for 262 tokens`},
		{"type 9", "tokenizer.ggml.token_type", slices.Repeat([]int32{9}, 262), `tokenizer.ggml.token_type: token 0 ("Ā") is of type 9, allowed are 1 to 6`},
		{"no merges", "tokenizer.ggml.merges", nil, `tokenizer.ggml.merges is missing or no array of strings ("")`},
		{"merge of one", "tokenizer.ggml.merges", []string{"ab"}, `tokenizer.ggml.merges: merge 0 is "ab", needed are two tokens with one space between`},
		{"merge of three", "tokenizer.ggml.merges", []string{"a b", "a b c"}, `tokenizer.ggml.merges: merge 1 is "a b c", needed are two tokens with one space between`},
		{"merge to nowhere", "tokenizer.ggml.merges", []string{"b c"}, `tokenizer.ggml.merges: merge 0 ("b" and "c") needs "bc", which is no token`},
		{"bos beyond", "tokenizer.ggml.bos_token_id", uint32(262), "tokenizer.ggml.bos_token_id is 262 (u32), allowed are 0 to 261"},
		{"eos negative", "tokenizer.ggml.eos_token_id", int32(-1), "tokenizer.ggml.eos_token_id is 0 (i32), allowed are 0 to 261"},
		{"add bos of a number", "tokenizer.ggml.add_bos_token", uint32(1), "tokenizer.ggml.add_bos_token is of type u32, needed is bool"},
		{"eot of text", "tokenizer.ggml.eot_token_id", "x", "tokenizer.ggml.eot_token_id is 0 (string), allowed are 0 to 261"},
	}
	for _, r := range rows {
		keys := tiny()
		keys[r.key] = r.value
		_, err := build(t, keys)
		if err == nil || !strings.Contains(err.Error(), r.want) || !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Errorf("%s: error %v\n   want %s", r.name, err, r.want)
		}
	}
	keys := tiny()
	keys["tokenizer.ggml.tokens"] = append([]string{"b"}, keys["tokenizer.ggml.tokens"].([]string)[1:]...)
	if _, err := build(t, keys); err == nil || !strings.Contains(err.Error(), `"b" is token 0 and token 98`) {
		t.Errorf("a token twice: error %v", err)
	}
}

func TestUserDefinedTokensAreFoundInEveryText(t *testing.T) {
	tok := mustBuild(t, tiny())
	for _, special := range []bool{false, true} {
		if got := tok.Encode("a<tool>", special); !slices.Equal(got, []int32{'a', 261}) {
			t.Errorf("parseSpecial %v: %v", special, got)
		}
	}
	if tok.IsSpecial(261) || tok.Decode([]int32{261}, true) != "<tool>" {
		t.Error("a user-defined token is not ordinary text")
	}
	before, id, after, ok := tok.CutSpecial("x<tool><start>y")
	if before != "x<tool>" || id != 259 || after != "y" || !ok {
		t.Errorf("CutSpecial gives %q, %d, %q, %v", before, id, after, ok)
	}
}

func TestTheLongestNameWins(t *testing.T) {
	keys := tiny()
	keys["tokenizer.ggml.tokens"] = append(keys["tokenizer.ggml.tokens"].([]string), "<start><", "<st")
	keys["tokenizer.ggml.token_type"] = append(keys["tokenizer.ggml.token_type"].([]int32), int32(Control), int32(Control))
	tok := mustBuild(t, keys)
	if got := tok.Encode("<start><start>", true); !slices.Equal(got, []int32{262, 's', 't', 'a', 'r', 't', '>'}) {
		t.Errorf("%v", got)
	}
	if got := tok.Encode("<star<start>", true); !slices.Equal(got, []int32{263, 'a', 'r', 259}) {
		t.Errorf("%v", got)
	}
}

func TestEndTokensAreKeysAndKnownNames(t *testing.T) {
	keys := tiny()
	keys["tokenizer.ggml.eos_token_id"] = uint32(259)
	keys["tokenizer.ggml.eom_token_id"] = uint32(97)
	tok := mustBuild(t, keys)
	if got := tok.EOS(); !slices.Equal(got, []int32{97, 259, 260}) {
		t.Errorf("end tokens %v", got)
	}
	if tok.MainEOS() != 259 || !tok.IsEOS(260) || tok.IsEOS(98) {
		t.Error("MainEOS or IsEOS")
	}
	if tok.BOS() != 259 || !tok.AddBOS() {
		t.Errorf("BOS %d, %v", tok.BOS(), tok.AddBOS())
	}
	keys["tokenizer.ggml.bos_token_id"], keys["tokenizer.ggml.eos_token_id"] = nil, nil
	if tok := mustBuild(t, keys); tok.BOS() != -1 || tok.AddBOS() || tok.MainEOS() != -1 {
		t.Errorf("without keys BOS %d, %v, EOS %d", tok.BOS(), tok.AddBOS(), tok.MainEOS())
	}
	// A name alone is not enough: ordinary text that looks like an end token is text.
	types := slices.Repeat([]int32{1}, 262)
	keys["tokenizer.ggml.token_type"] = types
	if tok := mustBuild(t, keys); tok.IsEOS(260) {
		t.Error("an ordinary token ends the generation")
	}
}

// TestWhoAddsABeginToken: the file says, or else the kind of tokenizer (Llama 3 does).
func TestWhoAddsABeginToken(t *testing.T) {
	for _, r := range []struct {
		pre  string
		says any
		want bool
	}{
		{"gpt-2", nil, false}, {"gpt-2", true, true}, {"llama-bpe", nil, true}, {"llama-bpe", false, false},
	} {
		keys := tiny()
		keys["tokenizer.ggml.pre"], keys["tokenizer.ggml.add_bos_token"] = r.pre, r.says
		if got := mustBuild(t, keys).AddBOS(); got != r.want {
			t.Errorf("%s, %v: %v", r.pre, r.says, got)
		}
	}
}

// TestWholeTokensWinOnlyWhereTheSplitterSaysSo: "bc" is a token that merging cannot reach.
func TestWholeTokensWinOnlyWhereTheSplitterSaysSo(t *testing.T) {
	keys := tiny()
	keys["tokenizer.ggml.tokens"] = append(keys["tokenizer.ggml.tokens"].([]string), "bc")
	keys["tokenizer.ggml.token_type"] = append(keys["tokenizer.ggml.token_type"].([]int32), int32(Normal))
	tok := mustBuild(t, keys)
	for range 2 { // the second time what was learnt the first time
		if got := tok.Encode("bc", false); !slices.Equal(got, []int32{'b', 'c'}) {
			t.Errorf("gpt-2: %v", got)
		}
		if got := tok.Encode("abc", false); !slices.Equal(got, []int32{257}) {
			t.Errorf("gpt-2: %v", got)
		}
	}
	keys["tokenizer.ggml.pre"] = "llama-bpe"
	if got := mustBuild(t, keys).Encode("bc", false); !slices.Equal(got, []int32{262}) {
		t.Errorf("llama-bpe: %v", got)
	}
}

func TestMissingBytesAreLeftOutAndReported(t *testing.T) {
	keys := tiny()
	tokens := slices.Clone(keys["tokenizer.ggml.tokens"].([]string))
	tokens[0], tokens[200] = "unused-0", "unused-1"
	keys["tokenizer.ggml.tokens"] = tokens
	tok := mustBuild(t, keys)
	if got := tok.MissingBytes(); !slices.Equal(got, []byte{0, 200}) {
		t.Errorf("missing bytes %v", got)
	}
	if got := tok.Encode("a\u0200b", false); !slices.Equal(got, []int32{'a', 0x80, 'b'}) { // U+0200 is the bytes 200, 128
		t.Errorf("%v", got)
	}
	if got := tok.Encode("\x00", false); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestDigestSeesEverythingThatDecidesIDs(t *testing.T) {
	base := mustBuild(t, tiny()).Digest()
	if again := mustBuild(t, tiny()).Digest(); again != base {
		t.Error("the digest of the same tokenizer differs")
	}
	for key, v := range map[string]any{
		"tokenizer.ggml.pre":           "qwen2",
		"tokenizer.ggml.merges":        []string{"ab c", "a b", "Ġ a"},
		"tokenizer.ggml.bos_token_id":  uint32(260),
		"tokenizer.ggml.eos_token_id":  uint32(97),
		"tokenizer.ggml.add_bos_token": false,
		"tokenizer.ggml.token_type":    append(slices.Repeat([]int32{1}, 259), 3, 3, 1),
	} {
		keys := tiny()
		keys[key] = v
		if mustBuild(t, keys).Digest() == base {
			t.Errorf("%s does not change the digest", key)
		}
	}
}
