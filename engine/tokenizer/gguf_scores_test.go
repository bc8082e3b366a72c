package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// scored is a vocabulary with scores: all bytes, a few letters, and words of them.
func scored() map[string]any {
	tokens, types, scores := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}, []float32{0, 0, 0}
	for b := range 256 {
		tokens, types, scores = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(types, 6), append(scores, 0)
	}
	for i, s := range []string{"▁", "a", "b", "c", "ab", "bc", "▁a", "▁ab", "aa", "aaaa"} { // ids from 259 on
		tokens, types, scores = append(tokens, s), append(types, 1), append(scores, -float32(i))
	}
	return map[string]any{
		"tokenizer.ggml.model":            "llama",
		"tokenizer.ggml.tokens":           append(tokens, "<tool>", "  "),
		"tokenizer.ggml.token_type":       append(types, 4, 4),
		"tokenizer.ggml.scores":           append(scores, -1000, -1000),
		"tokenizer.ggml.bos_token_id":     uint32(1),
		"tokenizer.ggml.eos_token_id":     uint32(2),
		"tokenizer.ggml.unknown_token_id": uint32(0),
	}
}

// TestHighestScoreIsMergedFirst, leftmost among equals, whatever the length; bytes stand for what
// there is no token of.
func TestHighestScoreIsMergedFirst(t *testing.T) {
	keys := scored()
	keys["tokenizer.ggml.add_space_prefix"] = false
	tok := mustBuild(t, keys)
	for text, want := range map[string][]int32{
		"abc":        {263, 262}, // ab has a higher score than bc
		"bc":         {264},
		"aaaaa":      {268, 260},
		" ab":        {266},
		"a b":        {260, 259, 261},
		"x":          {3 + 'x'},
		"é":          {3 + 0xc3, 3 + 0xa9},
		"a\xffb":     {260, 3 + 0xff, 261},
		"▁a":         {265}, // U+2581 is a space to such a vocabulary
		"<0x0A>":     {3 + '<', 3 + '0', 3 + 'x', 3 + '0', 3 + 'A', 3 + '>'},
		"<tool>a":    {269, 260},
		"a  b":       {260, 270, 261}, // a user-defined token of two spaces
		"<s>":        {3 + '<', 3 + 's', 3 + '>'},
		"":           {},
		"\n":         {3 + '\n'},
		"a" + "\x00": {260, 3},
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if got := tok.Encode("<s>a", true); !slices.Equal(got, []int32{1, 260}) || !tok.AddBOS() {
		t.Errorf("with special tokens %v, adds BOS %v", got, tok.AddBOS())
	}
	if tok.Text(3+0xc3) != "\xc3" || tok.Kind(3) != Byte || tok.Text(266) != " ab" || tok.Text(270) != "  " {
		t.Errorf("texts %q %q %q", tok.Text(3+0xc3), tok.Text(266), tok.Text(270))
	}
	if n := len(tok.MissingBytes()); n != 0 {
		t.Errorf("%d bytes are missing", n)
	}
}

// TestEqualScoresAreMergedFromTheLeft, whichever token comes first in the file.
func TestEqualScoresAreMergedFromTheLeft(t *testing.T) {
	keys := scored()
	scores := slices.Clone(keys["tokenizer.ggml.scores"].([]float32))
	scores[263], scores[264] = -5, -5 // ab and bc
	keys["tokenizer.ggml.scores"], keys["tokenizer.ggml.add_space_prefix"] = scores, false
	tokens := slices.Clone(keys["tokenizer.ggml.tokens"].([]string))
	for range 2 {
		keys["tokenizer.ggml.tokens"] = tokens
		tok := mustBuild(t, keys)
		var got []string
		for _, id := range tok.Encode("abc", false) {
			got = append(got, tok.Text(id))
		}
		if !slices.Equal(got, []string{"ab", "c"}) {
			t.Errorf("%q", got)
		}
		tokens[263], tokens[264] = tokens[264], tokens[263]
	}
}

// TestSpaceInFrontOfEachStretch: such files want a space in front unless they say otherwise, also
// behind an added token.
func TestSpaceInFrontOfEachStretch(t *testing.T) {
	tok := mustBuild(t, scored())
	if got := tok.Encode("ab<tool>ab", false); !slices.Equal(got, []int32{266, 269, 266}) {
		t.Errorf("%v", got)
	}
	if got := tok.Decode(tok.Encode("ab", false), false); got != " ab" {
		t.Errorf("ab comes back as %q", got)
	}
}

func TestCharactersWithoutBytesAreUnknown(t *testing.T) {
	keys := scored()
	types := slices.Clone(keys["tokenizer.ggml.token_type"].([]int32))
	types[3+0xc3] = 1 // a byte is missing
	keys["tokenizer.ggml.token_type"], keys["tokenizer.ggml.add_space_prefix"] = types, false
	tok := mustBuild(t, keys)
	if got := tok.Encode("aéèa", false); !slices.Equal(got, []int32{260, 0, 0, 260}) {
		t.Errorf("%v", got)
	}
	if got := tok.MissingBytes(); !slices.Equal(got, []byte{0xc3}) {
		t.Errorf("missing bytes %v", got)
	}
	delete(keys, "tokenizer.ggml.unknown_token_id")
	if got := mustBuild(t, keys).Encode("aéa", false); !slices.Equal(got, []int32{267}) { // nothing is between them
		t.Errorf("without an unknown token %v", got)
	}
}

func TestBadScoresAreRefusedWithAReason(t *testing.T) {
	nan := slices.Clone(scored()["tokenizer.ggml.scores"].([]float32))
	nan[5] /= 0 * nan[5]
	odd := slices.Clone(scored()["tokenizer.ggml.token_type"].([]int32))
	odd[260] = 6
	for _, r := range []struct {
		key   string
		value any
		want  string
	}{
		{"tokenizer.ggml.scores", nil, `tokenizer.ggml.scores has 0 numbers ("") for 271 tokens`},
		{"tokenizer.ggml.scores", []float32{1}, `tokenizer.ggml.scores has 1 numbers`},
		{"tokenizer.ggml.scores", nan, `the score of token 5 ("<0x02>") is not a number`},
		{"tokenizer.ggml.token_type", odd, `token 260 is for a byte and called "a", allowed are <0x00> to <0xFF>`},
		{"tokenizer.ggml.add_space_prefix", "no", `tokenizer.ggml.add_space_prefix is of type string, needed is bool`},
		{"tokenizer.ggml.unknown_token_id", uint32(271), `tokenizer.ggml.unknown_token_id is 271 (u32), allowed are 0 to 270`},
	} {
		keys := maps.Clone(scored())
		keys[r.key] = r.value
		if _, err := build(t, keys); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: error %v\n   want %s", r.key, err, r.want)
		}
	}
}

// TestLongPiecesOfCharactersAreNotQuadratic holds T3 for vocabularies of characters, which do not
// cut text into pieces, also where nothing merges and where all characters are unknown.
func TestLongPiecesOfCharactersAreNotQuadratic(t *testing.T) {
	for _, tok := range []*Tokenizer{fromSmall(t, "gemma3-small"), mustBuild(t, scored())} {
		for _, unit := range []string{"a", " ", "the ", "\n", "\u0301", "\U0010ffff", "<unused", "<", "▁"} {
			text := strings.Repeat(unit, 1<<17/len(unit))
			if got := tok.Decode(tok.Encode(text, false), false); strings.TrimLeft(got, " ") != strings.TrimLeft(spaced(text), " ") {
				t.Errorf("%d times %q does not come back", len(text)/len(unit), unit)
			}
		}
	}
}
