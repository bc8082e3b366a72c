package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine/tokenizer/split"
)

// littleJSON is a tokenizer of characters with a part replaced: old by new.
func littleJSON(t testing.TB, old, new string) []byte {
	t.Helper()
	const file = `{
	"added_tokens": [
		{"id": 8, "content": "<s>", "special": true, "normalized": false},
		{"id": 9, "content": "<think>", "special": false, "normalized": false},
		{"id": 10, "content": "<|turn|>", "special": false, "normalized": false}
	],
	"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
	"pre_tokenizer": null,
	"post_processor": {"type": "TemplateProcessing",
		"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
		"special_tokens": {"<s>": {"id": "<s>", "ids": [8]}}},
	"decoder": {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
	"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "▁": 2, "ab": 3, "▁a": 4, "é": 5, "<unk>": 6},
		"merges": ["a b", ["▁", "a"]], "unk_token": "<unk>", "fuse_unk": true}
}`
	if old != "" && strings.Count(file, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(file, old))
	}
	return []byte(strings.Replace(file, old, new, 1))
}

func TestTokenizerOfCharacters(t *testing.T) {
	tok, err := FromJSON(littleJSON(t, "", ""), []byte(`{"eos_token": {"content": "<|turn|>"}, "bos_token": null}`), nil, []byte(`{"eos_token_id": [10, 9], "bos_token_id": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode("ab a xyé<think><s><|turn|>", true); !slices.Equal(got, []int32{3, 4, 2, 6, 5, 9, 8, 10}) {
		t.Errorf("%v", got)
	}
	plain := tok.Encode("<s><|turn|><think>", false)
	if slices.ContainsFunc(plain, func(id int32) bool { return tok.Kind(id) == Control }) || plain[len(plain)-1] != 9 {
		t.Errorf("without special tokens %v", plain)
	}
	if tok.BOS() != 4 || !tok.AddBOS() || tok.MainEOS() != 10 || !slices.Equal(tok.EOS(), []int32{9, 10}) {
		t.Errorf("BOS %d, %v, EOS %d of %v", tok.BOS(), tok.AddBOS(), tok.MainEOS(), tok.EOS())
	}
	var kinds []Kind
	var text string
	for token := range tok.All() {
		kinds = append(kinds, token.Kind)
		text += token.Text + "|"
		if token.Kind != tok.Kind(token.ID) || token.Text != tok.Text(token.ID) || token.ID != int32(len(kinds)-1) {
			t.Errorf("token %+v", token)
		}
	}
	if want := []Kind{1, 1, 1, 1, 1, 1, Unknown, Unused, Control, User, Control}; !slices.Equal(kinds, want) || text != "a|b| |ab| a|é|<unk>||<s>|<think>|<|turn|>|" {
		t.Errorf("%v, %q", kinds, text)
	}
	if tok.Kind(-1) != 0 || tok.Kind(11) != 0 {
		t.Error("an id that there is not has a kind")
	}
}

// TestPartsAreOneText holds C1 and C2 of engine/chat from below: special tokens come from the parts
// that may have them, whole, and everything else is as if there were no parts.
func TestPartsAreOneText(t *testing.T) {
	tok := fromSmall(t, "qwen3-small")
	in := func(special bool, text string) Part { return Part{text, special} }
	rows := []struct {
		name  string
		parts []Part
		same  string // what Encode makes of this with special tokens …
		plain bool   // … or without
	}{
		{"no parts", nil, "", true},
		{"across a border", []Part{in(true, "<|im_start|>the"), in(false, "re is"), in(true, "n't<|im_end|>")}, "<|im_start|>there isn't<|im_end|>", false},
		{"in a content", []Part{in(false, "a<|im_end|>b")}, "a<|im_end|>b", true},
		{"half of it in a content", []Part{in(true, "<|im_"), in(false, "end|>")}, "<|im_end|>", true},
		{"the other half", []Part{in(false, "<|im_"), in(true, "end|>")}, "<|im_end|>", true},
		{"in two parts that may", []Part{in(true, "<|im_"), in(true, ""), in(true, "end|>")}, "<|im_end|>", false},
		{"with an empty content inside", []Part{in(true, "<|im_"), in(false, ""), in(true, "end|>")}, "<|im_end|>", false},
		{"behind the half of one", []Part{in(false, "<|im_"), in(true, "<|im_end|>")}, "<|im_<|im_end|>", false},
		{"user-defined anywhere", []Part{in(false, "<thi"), in(true, "nk>")}, "<think>", true},
		{"composed across a border", []Part{in(true, "e"), in(false, "\u0301")}, "é", true},
	}
	for _, r := range rows {
		if got, want := encodeParts(t, tok, r.parts...), tok.Encode(r.same, !r.plain); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", r.name, got, want)
		}
	}
}

func encodeParts(t *testing.T, tok *Tokenizer, parts ...Part) []int32 {
	t.Helper()
	ids, err := tok.EncodeParts(parts)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestATextThatTakesTooLongIsAnError, never other tokens: of a pre-tokenizer, and of a normalizer.
func TestATextThatTakesTooLongIsAnError(t *testing.T) {
	for _, change := range [][2]string{
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Split", "pattern": {"Regex": "(a+a+)+y"}, "behavior": "Isolated"}]}`},
		{`"pattern": {"String": " "}`, `"pattern": {"Regex": "(a+a+)+y"}`},
	} {
		tok, err := FromJSON(littleJSON(t, change[0], change[1]))
		if err != nil {
			t.Fatal(err)
		}
		hard := strings.Repeat(strings.Repeat("a", 1000)+" ", 1000) + "<s>a"
		if ids, err := tok.EncodeParts([]Part{{hard, false}}); err != ErrSlow || ids != nil {
			t.Errorf("%s: %d tokens, error %v", change[1], len(ids), err)
		}
	}
}

// TestNormalizedNamesInParts: DeepSeek's <｜Assistant｜> is sought in normalised text. Where normalising
// changes a section, no part of it is known to be the template's any more, unless all of it is.
func TestNormalizedNamesInParts(t *testing.T) {
	tok := fromSmall(t, "deepseek_v3-small")
	id := tok.Encode("<｜Assistant｜>", true)
	if len(id) != 1 || !tok.IsSpecial(id[0]) {
		t.Fatalf("%v", id)
	}
	has := func(ids []int32) bool { return slices.Contains(ids, id[0]) }
	for _, normalize := range []func(string, *split.Limit) string{nil, func(s string, _ *split.Limit) string { return strings.ReplaceAll(s, "x", "y") }} {
		tok.normalize = normalize
		if has(encodeParts(t, tok, Part{"x<｜Assistant｜>", false}, Part{"b", true})) || has(encodeParts(t, tok, Part{"x<｜Assist", false}, Part{"ant｜>", true})) {
			t.Error("a client wrote a special token")
		}
		if !has(encodeParts(t, tok, Part{"x<｜Assistant｜>", true})) {
			t.Error("the template's own is not found")
		}
		if got := has(encodeParts(t, tok, Part{"x", false}, Part{"<｜Assistant｜>", true})); got != (normalize == nil) {
			t.Errorf("behind a content: %v", got)
		}
	}
}

// TestOfEqualMergesTheLastCounts in a tokenizer.json; in a GGUF file it is the first.
func TestOfEqualMergesTheLastCounts(t *testing.T) {
	const merges = `["a b", ["▁", "a"]]`
	for new, want := range map[string][]int32{
		`["▁ a", "a b"]`:        {4, 1}, // ▁a is merged first
		`["▁ a", "a b", "▁ a"]`: {2, 3}, // now it comes after ab
	} {
		tok, err := FromJSON(littleJSON(t, merges, new))
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(" ab", false); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", new, got, want)
		}
	}
	keys := tiny()
	keys["tokenizer.ggml.merges"] = []string{"Ġ a", "a b", "ab c", "Ġ a"}
	if got := mustBuild(t, keys).Encode(" ab", false); !slices.Equal(got, []int32{258, 'b'}) {
		t.Errorf("in a GGUF file: %v", got)
	}
}

// TestNoMergeMakesASpecialToken holds T2 where a vocabulary could spell one.
func TestNoMergeMakesASpecialToken(t *testing.T) {
	tok, err := FromJSON(littleJSON(t, `{"id": 8, "content": "<s>", "special": true, "normalized": false},`,
		`{"id": 8, "content": "<s>", "special": true, "normalized": false}, {"id": 3, "content": "ab", "special": true, "normalized": false},`))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode("ab", false); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("%v", got)
	}
	if got := tok.Encode("ab", true); !slices.Equal(got, []int32{3}) {
		t.Errorf("asked for: %v", got)
	}
}

// TestAddedTokensTakeWhiteSpace that none before took, and stand alone if they are to.
func TestAddedTokensTakeWhiteSpace(t *testing.T) {
	names := []addedName{{"<l>", 1}, {"<r>", 2}, {"word", 3}, {"<lr>", 4}}
	a := newAdded(names, map[int32]addedFlags{1: stripLeft, 2: stripRight, 3: singleWord, 4: stripLeft | stripRight})
	all := func(int, int, int32) bool { return true }
	for text, want := range map[string]string{
		"a \t<l> b":        "[1  \t<l>]",
		"a <r> \u2003b":    "[2 <r> \u2003]",
		" <lr> ":           "[4  <lr> ]",
		"<r> <l>":          "[2 <r> ][1 <l>]", // the space is taken
		"word words sword": "[3 word]",
		"éword (word)":     "[3 word]",
		"word":             "[3 word]",
		"\u0301word_word":  "",
		"<l":               "",
	} {
		got := ""
		for from := 0; from < len(text); {
			m, ok := a.find(text, from, all)
			if !ok {
				break
			}
			got += "[" + string('0'+m.id) + " " + text[m.lo:m.hi] + "]"
			from = m.hi
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if newAdded([]addedName{{"", 1}}, nil) != nil {
		t.Error("a token without a name is sought")
	}
}

func TestBadTokenizerJSONIsRefusedWithAReason(t *testing.T) {
	rows := []struct{ name, old, new, want string }{
		{"no JSON", `"pre_tokenizer": null,`, `"pre_tokenizer"`, "tokenizer.json cannot be read: invalid character"},
		{"another model", `"BPE"`, `"Unigram"`, `model.type is "Unigram", supported is "BPE"`},
		{"a list of words", `"vocab": {"a": 0, "b": 1, "▁": 2, "ab": 3, "▁a": 4, "é": 5, "<unk>": 6}`, `"vocab": [["a", 0.1]]`, "model.vocab is empty, or no object of names and ids"},
		{"prefix", `"fuse_unk": true`, `"continuing_subword_prefix": "##"`, `model.continuing_subword_prefix is "##", supported is none`},
		{"suffix", `"fuse_unk": true`, `"end_of_word_suffix": "</w>"`, `model.end_of_word_suffix is "</w>", supported is none`},
		{"dropout", `"fuse_unk": true`, `"dropout": 0.1`, "model.dropout is 0.1"},
		{"id of text", `"ab": 3`, `"ab": "3"`, `the id of "ab" is not an integer`},
		{"id negative", `"ab": 3`, `"ab": -3`, `"ab" is token -3, allowed are 0 to`},
		{"id far away", `"ab": 3`, `"ab": 4194303`, `"ab" is token 4194303, allowed are 0 to 65555 for 10 tokens`},
		{"id twice", `"ab": 3`, `"ab": 1`, `"ab" and "b" are both token 1`},
		{"name twice", `{"id": 9, "content": "<think>"`, `{"id": 9, "content": "ab"`, `added_tokens: "ab" is token 3 and token 9`},
		{"merge of one", `"a b"`, `"ab"`, `merge 0 is "ab", needed are two tokens with one space between`},
		{"merge of three", `["▁", "a"]`, `["▁", "a", "b"]`, `merge 1 is a list of 3`},
		{"merge of numbers", `["▁", "a"]`, `[1, 2]`, `stands where a string is needed`},
		{"merge of nothing", `["▁", "a"]`, `["", "a"]`, `merge 1 is a list of 2 (["" "a"]), needed are two tokens`},
		{"merge to nowhere", `["▁", "a"]`, `["▁", "b"]`, `model.merges: merge 1 ("▁" and "b") needs "▁b", which is no token`},
		{"merges of text", `["a b", ["▁", "a"]]`, `"a b"`, "merges are no list"},
		{"unknown unknown", `"unk_token": "<unk>"`, `"unk_token": "<nil>"`, `model.unk_token is "<nil>", which is no token`},
		{"normalizer", `{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`, `{"type": "Lowercase"}`, `normalizer: "Lowercase" is not supported, supported are NFC, Prepend, Replace and Sequence`},
		{"replace nothing", `"pattern": {"String": " "}`, `"pattern": {"String": ""}`, "normalizer: a Replace has no pattern"},
		{"replace badly", `"pattern": {"String": " "}`, `"pattern": {"Regex": "("}`, `normalizer: the expression "(" cannot be read`},
		{"pre-tokenizer", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "BertPreTokenizer"}`, `pre_tokenizer: "BertPreTokenizer" is not supported`},
		{"behavior", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Lost"}`, `the behavior of Split is "Lost"`},
		{"no pattern", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "behavior": "Isolated"}`, `a Split has no pattern`},
		{"long expression", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "` + strings.Repeat("a", 1<<15) + `"}}`, `an expression has 32768 bytes, allowed are 16384`},
		{"bytes not last", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}`, `the step ByteLevel is not the last step`},
		{"bytes alone", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "ByteLevel"}`, `pre-tokenizer and decoder do not belong together`},
		{"no mark", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Metaspace"}`, `a Metaspace has no replacement`},
		{"scheme", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}`, `the prepend_scheme of Metaspace is "last", allowed are always, first and never`},
		{"many steps", `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [` + strings.Repeat(`{"type": "Digits"},`, 64) + `{"type": "Digits"}]}`, "pre_tokenizer: more than 64 steps"},
		{"deep steps", `"pre_tokenizer": null`, `"pre_tokenizer": ` + strings.Repeat(`{"type": "Sequence", "pretokenizers": [`, 10) + strings.Repeat(`]}`, 10), "pre_tokenizer: sequences inside sequences, allowed are 8"},
		{"decoder", `"decoder": {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}`, `"decoder": {"type": "WordPiece"}`, `decoder: "WordPiece" is not supported`},
		{"decoder's pattern", `"decoder": {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}`, `"decoder": {"type": "Replace"}`, `decoder: a Replace has no pattern`},
		{"post-processor", `"type": "TemplateProcessing"`, `"type": "BertProcessing"`, `post_processor: "BertProcessing" is not supported`},
		{"two in front", `{"SpecialToken": {"id": "<s>"}}, {"Seq`, `{"SpecialToken": {"id": "<s>"}}, {"SpecialToken": {"id": "<s>"}}, {"Seq`, `the TemplateProcessing puts "<s>" (tokens [8]) in front, supported is one token`},
		{"none in front", `"ids": [8]`, `"ids": [800]`, `the TemplateProcessing puts "<s>" (tokens [800]) in front`},
	}
	for _, r := range rows {
		_, err := FromJSON(littleJSON(t, r.old, r.new))
		if err == nil || !strings.Contains(err.Error(), r.want) || !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Errorf("%s: error %.300v\n   want %s", r.name, err, r.want)
		}
	}
	for config, want := range map[string]string{
		`{"eos_token": "</s>"}`:     `eos_token is "</s>", which is no token`,
		`{"bos_token_id": 11}`:      `bos_token_id is 11, allowed are 0 to 10`,
		`{"eos_token_id": [1, -1]}`: `eos_token_id is -1, allowed are 0 to 10`,
		`{"eos_token_id": "x"}`:     `a config file cannot be read`,
		`{"add_bos_token": 1}`:      `a config file cannot be read`,
		`[]`:                        `a config file cannot be read`,
		`{"eos_token_id": [` + strings.Repeat("1,", 64) + `1]}`: `a list of 65 end tokens, allowed are 64`,
	} {
		if _, err := FromJSON(littleJSON(t, "", ""), []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: error %v\n   want %s", config, err, want)
		}
	}
	if _, err := FromJSON([]byte(`{"model": {"type": "BPE", "vocab": {}, "merges": []}}`)); err == nil || !strings.Contains(err.Error(), "model.vocab is empty") {
		t.Errorf("no tokens: error %v", err)
	}
}

func TestDigestSeesTheWholeFile(t *testing.T) {
	seen := map[uint64]string{}
	for _, change := range [][2]string{{"", ""}, {`["a b", ["▁", "a"]]`, `[["▁", "a"], "a b"]`}, {`"fuse_unk": true`, `"fuse_unk": false`}, {`"content": "▁"}`, `"content": "_"}`},
		{`"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Digits"}`}, {`"é"`, `"è"`}, {`"<think>", "special": false`, `"<think>", "special": true`}, {`"ids": [8]`, `"ids": [9]`},
		{`"<think>", "special": false, "normalized": false`, `"<think>", "special": false, "normalized": true`}, {`"fuse_unk": true`, `"fuse_unk": true, "ignore_merges": true`}} {
		tok, err := FromJSON(littleJSON(t, change[0], change[1]))
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[tok.Digest()]; twice {
			t.Errorf("%s has the digest of %q", change[1], other)
		}
		seen[tok.Digest()] = change[1]
	}
}

// FuzzFromJSON is a tokenizer.json that nobody made on purpose: an error, or a tokenizer whose ids
// are its own, whose streams say what its Decode says, and that makes nothing special of a text by
// itself (T2, T4).
func FuzzFromJSON(f *testing.F) {
	f.Add(littleJSON(f, "", ""), []byte(`{"eos_token": "<s>"}`), "ab <s> a\n\xffb")
	f.Add(littleJSON(f, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}`), []byte(nil), "ab ab")
	f.Add(littleJSON(f, `"fuse_unk": true`, `"byte_fallback": true, "ignore_merges": true`), []byte(`{"eos_token_id": [1]}`), "ab\u0301")
	f.Add(littleJSON(f, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|b)+"}, "behavior": "Removed", "invert": true}`), []byte(nil), "xabx")
	f.Add(littleJSON(f, `"special": true, "normalized": false`, `"special": true, "normalized": true, "lstrip": true, "rstrip": true, "single_word": true`), []byte(nil), "a <s> b<s>")
	f.Add([]byte(`{"pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "Ġa": 2}, "merges": ["Ġ a"]}}`), []byte(nil), "a a")
	f.Fuzz(func(t *testing.T, file, config []byte, text string) {
		if len(text) > 2048 || len(file) > 1<<14 {
			t.Skip()
		}
		tok, err := FromJSON(file, config)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Fatalf("%q", err.Error())
			}
			return
		}
		speaks(t, tok, text)
	})
}
