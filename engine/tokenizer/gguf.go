package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"baton/engine/tokenizer/split"
	"baton/engine/weights/gguf"
)

// FromGGUF builds the tokenizer that a model file describes. It reads byte-level BPE
// (tokenizer.ggml.model "gpt2") with the pre-tokenizers of split.ByName, and vocabularies with
// scores ("llama", as SentencePiece makes them). It gives the tokens that llama.cpp gives: text
// is not normalised, also where the model's tokenizer.json says so.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	t, err := fromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func fromGGUF(f *gguf.File) (*Tokenizer, error) {
	model, ok := f.String("tokenizer.ggml.model")
	if !ok {
		return nil, fmt.Errorf("the file has no key tokenizer.ggml.model: it carries no tokenizer")
	}
	switch model {
	case "gpt2":
		return bytesFromGGUF(f)
	case "llama":
		return scoresFromGGUF(f)
	}
	return nil, fmt.Errorf("tokenizer.ggml.model is %q, supported are \"gpt2\" (byte-level BPE) and \"llama\" (SentencePiece with scores)", model)
}

func bytesFromGGUF(f *gguf.File) (*Tokenizer, error) {
	pre, ok := f.String("tokenizer.ggml.pre")
	if !ok {
		pre = "default" // files from before the key existed
	}
	p, ok := split.ByName(pre)
	if !ok {
		return nil, fmt.Errorf("tokenizer.ggml.pre is %q, supported are %q", pre, split.Names())
	}
	v, err := vocabularyOfGGUF(f)
	if err != nil {
		return nil, err
	}
	t := v.build(true, func(name string, k Kind) string {
		if k == Normal || k == Byte {
			return unmapBytes(name)
		}
		return name
	})
	t.split = p.Func
	if p.Wholes {
		t.wholes = make(map[string]int32, len(v.names))
		for id, k := range v.kinds {
			if k == Normal {
				t.wholes[t.text[id]] = int32(id)
			}
		}
	}
	merges, ok := f.Strings("tokenizer.ggml.merges")
	if !ok {
		return nil, fmt.Errorf("tokenizer.ggml.merges is missing or no array of strings (%q)", f.Kind("tokenizer.ggml.merges"))
	}
	err = t.addMerges(v, len(merges), func(rank int) (string, string, error) {
		left, right, ok := cutMerge(merges[rank])
		if !ok {
			return "", "", fmt.Errorf("merge %d is %q, needed are two tokens with one space between", rank, merges[rank])
		}
		return left, right, nil
	}, false)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.ggml.merges: %w", err)
	}
	return t, t.finishGGUF(f, v, p.AddBOS, "gpt2", pre)
}

// cutMerge takes a merge that is one string apart: the space stands between the two, in names a
// space is written otherwise.
func cutMerge(m string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(m, " ")
	return left, right, ok && left != "" && right != "" && !strings.Contains(right, " ")
}

// scoresFromGGUF reads a vocabulary with scores: of all neighbours that make a token together, the
// one with the highest score is made first. That is BPE whose merges are not written down.
func scoresFromGGUF(f *gguf.File) (*Tokenizer, error) {
	v, err := vocabularyOfGGUF(f)
	if err != nil {
		return nil, err
	}
	scores, ok := f.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) != len(v.names) {
		return nil, fmt.Errorf("tokenizer.ggml.scores has %d numbers (%q) for %d tokens", len(scores), f.Kind("tokenizer.ggml.scores"), len(v.names))
	}
	for i, s := range scores {
		if s != s {
			return nil, fmt.Errorf("tokenizer.ggml.scores: the score of token %d (%q) is not a number", i, v.names[i])
		}
	}
	for id, k := range v.kinds {
		if _, ok := byteOfName(v.names[id]); k == Byte && !ok {
			return nil, fmt.Errorf("tokenizer.ggml.token_type: token %d is for a byte and called %q, allowed are <0x00> to <0xFF>", id, v.names[id])
		}
	}
	t := v.build(false, func(name string, k Kind) string {
		switch k {
		case Byte:
			b, _ := byteOfName(name)
			return string([]byte{b})
		case Normal, Unused:
			return unmarkSpaces(name)
		}
		return name
	})
	if err := t.addScores(v, scores); err != nil {
		return nil, err
	}
	prefix, err := boolOfGGUF(f, "tokenizer.ggml.add_space_prefix", true)
	if err != nil {
		return nil, err
	}
	t.normalize = func(s string, _ *split.Limit) string { return markSpaces(s) }
	if prefix {
		t.normalize = func(s string, _ *split.Limit) string { return markSpace + markSpaces(s) }
	}
	unknown, err := t.idOfGGUF(f, "tokenizer.ggml.unknown_token_id")
	if err != nil {
		return nil, err
	}
	t.unknown = unknown
	return t, t.finishGGUF(f, v, true, "llama", fmt.Sprint(prefix))
}

func markSpaces(s string) string { return strings.ReplaceAll(s, " ", markSpace) }

// addScores makes merges of scores: equal scores are equal ranks.
func (t *Tokenizer) addScores(v *vocabulary, scores []float64) error {
	type made struct {
		ids   [3]int32
		score float64
	}
	usable := func(name string) (int32, bool) {
		id, ok := v.byName[name]
		return id, ok && (v.kinds[id] == Normal || v.kinds[id] == User)
	}
	var all []made
	for i, name := range v.names {
		if _, ok := usable(name); !ok || len(name) > pieceBytesMost {
			continue
		}
		for at := range name {
			left, lok := usable(name[:at])
			right, rok := usable(name[at:])
			if at > 0 && lok && rok {
				all = append(all, made{[3]int32{left, right, int32(i)}, scores[i]})
			}
		}
		if len(all) > mergesMost {
			return fmt.Errorf("tokenizer.ggml.tokens make more than %d merges", mergesMost)
		}
	}
	slices.SortStableFunc(all, func(a, b made) int { return cmp.Compare(b.score, a.score) })
	t.merges = newMergeTable(len(all))
	if !slices.Contains(t.bytes[:], -1) {
		t.borders = newBorders()
	}
	rank := int32(0)
	for i, m := range all {
		if i > 0 && m.score != all[i-1].score {
			rank++
		}
		t.merges.ranks = append(t.merges.ranks, rank)
		t.addMerge(v, m.ids, false)
	}
	return nil
}

// pieceBytesMost is the longest name that merging looks for: SentencePiece makes pieces of 16
// characters at most, Gemma has runs of 31.
const pieceBytesMost = 512

func vocabularyOfGGUF(f *gguf.File) (*vocabulary, error) {
	names, ok := f.Strings("tokenizer.ggml.tokens")
	if !ok || len(names) == 0 || len(names) > vocabMost {
		return nil, fmt.Errorf("tokenizer.ggml.tokens has %d strings (%q), needed are 1 to %d", len(names), f.Kind("tokenizer.ggml.tokens"), vocabMost)
	}
	types, ok := f.Ints("tokenizer.ggml.token_type")
	if !ok && f.Kind("tokenizer.ggml.token_type") != "" || ok && len(types) != len(names) {
		return nil, fmt.Errorf("tokenizer.ggml.token_type has %d integers (%q) for %d tokens", len(types), f.Kind("tokenizer.ggml.token_type"), len(names))
	}
	v := &vocabulary{names: names, kinds: make([]Kind, len(names)), byName: make(map[string]int32, len(names))}
	for i, name := range names {
		id := int32(i)
		if first, twice := v.byName[name]; twice {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: %q is token %d and token %d", name, first, id)
		}
		if len(name) > nameBytesMost {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: token %d (%.40q…) has %d bytes, allowed are %d", id, name, len(name), nameBytesMost)
		}
		v.byName[name], v.kinds[i] = id, Normal
		if ok {
			if types[i] < int64(Normal) || types[i] > int64(Byte) {
				return nil, fmt.Errorf("tokenizer.ggml.token_type: token %d (%q) is of type %d, allowed are %d to %d", id, name, types[i], Normal, Byte)
			}
			v.kinds[i] = Kind(types[i])
		}
	}
	return v, nil
}

// finishGGUF reads what is left: added tokens, begin and end tokens.
func (t *Tokenizer) finishGGUF(f *gguf.File, v *vocabulary, addBOS bool, rest ...string) error {
	var names []addedName
	for id, k := range v.kinds {
		if k == User || k.Special() {
			names = append(names, addedName{v.names[id], int32(id)})
		}
	}
	t.added = newAdded(names, nil)
	var err error
	if t.bos, err = t.idOfGGUF(f, "tokenizer.ggml.bos_token_id"); err != nil {
		return err
	}
	if addBOS, err = boolOfGGUF(f, "tokenizer.ggml.add_bos_token", addBOS); err != nil {
		return err
	}
	t.addBOS = addBOS && t.bos >= 0
	var ends []int32
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"} {
		n, err := t.idOfGGUF(f, key)
		if err != nil {
			return err
		}
		if n >= 0 {
			ends = append(ends, n)
		}
	}
	t.addEnds(ends)
	if f.Kind("tokenizer.ggml.eos_token_id") == "" {
		t.mainEOS = -1
	}
	t.sum(rest...)
	return nil
}

func boolOfGGUF(f *gguf.File, key string, missing bool) (bool, error) {
	if f.Kind(key) == "" {
		return missing, nil
	}
	b, ok := f.Bool(key)
	if !ok {
		return false, fmt.Errorf("%s is of type %s, needed is bool", key, f.Kind(key))
	}
	return b, nil
}

// idOfGGUF returns the token that a key names, -1 if the file lacks the key.
func (t *Tokenizer) idOfGGUF(f *gguf.File, key string) (int32, error) {
	if f.Kind(key) == "" {
		return -1, nil
	}
	n, ok := f.Uint(key)
	if !ok || n >= uint64(len(t.text)) {
		return -1, fmt.Errorf("%s is %d (%s), allowed are 0 to %d", key, n, f.Kind(key), len(t.text)-1)
	}
	return int32(n), nil
}
