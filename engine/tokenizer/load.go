package tokenizer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"baton/engine/weights/gguf"
)

// vocabMost bounds the vocabulary: token ids are int32 on the wire and in logits; the largest
// vocabulary in use has 262,144 tokens.
const vocabMost = 1 << 22

// endNames are the names of control tokens that end a generation in the models in use, also
// where the file's eos, eot and eom keys do not name them (the list of llama.cpp).
var endNames = []string{
	"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end▁of▁sentence|>",
	"<｜end▁of▁sentence｜>", "</s>", "<eos>", "<end_of_utterance>",
}

// FromGGUF builds the tokenizer that a model file describes. It reads byte-level BPE
// (tokenizer.ggml.model "gpt2") with the pre-tokenizers of splitters.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	t, err := load(f)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func load(f *gguf.File) (*Tokenizer, error) {
	model, ok := f.String("tokenizer.ggml.model")
	if !ok {
		return nil, fmt.Errorf("the file has no key tokenizer.ggml.model: it carries no tokenizer")
	}
	if model != "gpt2" {
		return nil, fmt.Errorf("tokenizer.ggml.model is %q, supported is \"gpt2\" (byte-level BPE)", model)
	}
	pre, ok := f.String("tokenizer.ggml.pre")
	if !ok {
		pre = "default" // files from before the key existed
	}
	s, ok := splitters[pre]
	if !ok {
		return nil, fmt.Errorf("tokenizer.ggml.pre is %q, supported are %q", pre, splitterNames())
	}
	t := &Tokenizer{split: s.split, wholes: s.wholes, byText: map[string]int32{}, user: newTrie(), special: newTrie()}
	raw, err := t.loadTokens(f)
	if err != nil {
		return nil, err
	}
	merges, err := t.loadMerges(f, raw)
	if err != nil {
		return nil, err
	}
	if err := t.loadEnds(f, s.addBOS); err != nil {
		return nil, err
	}
	t.sum(model, pre, merges)
	return t, nil
}

// loadTokens fills in the vocabulary and returns the ids by the names that the file has.
func (t *Tokenizer) loadTokens(f *gguf.File) (byName map[string]int32, err error) {
	names, ok := f.Strings("tokenizer.ggml.tokens")
	if !ok || len(names) == 0 || len(names) > vocabMost {
		return nil, fmt.Errorf("tokenizer.ggml.tokens has %d strings (%q), needed are 1 to %d", len(names), f.Kind("tokenizer.ggml.tokens"), vocabMost)
	}
	types, ok := f.Ints("tokenizer.ggml.token_type")
	if !ok && f.Kind("tokenizer.ggml.token_type") != "" || ok && len(types) != len(names) {
		return nil, fmt.Errorf("tokenizer.ggml.token_type has %d integers (%q) for %d tokens", len(types), f.Kind("tokenizer.ggml.token_type"), len(names))
	}
	t.text, t.kind = make([]string, len(names)), make([]kind, len(names))
	t.whole, t.reached = make([]bool, len(names)), make([]atomic.Int32, len(names))
	byName = make(map[string]int32, len(names))
	for i, name := range names {
		id := int32(i)
		if first, twice := byName[name]; twice {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: %q is token %d and token %d", name, first, id)
		}
		byName[name] = id
		k := kindNormal
		if ok {
			if types[i] < int64(kindNormal) || types[i] > int64(kindByte) {
				return nil, fmt.Errorf("tokenizer.ggml.token_type: token %d (%q) is of type %d, allowed are %d to %d", id, name, types[i], kindNormal, kindByte)
			}
			k = kind(types[i])
		}
		t.addToken(id, name, k)
	}
	for b := range t.bytes {
		if id, ok := t.byText[string([]byte{byte(b)})]; ok {
			t.bytes[b] = id
			continue
		}
		t.bytes[b] = -1
		t.unmapped = append(t.unmapped, byte(b))
	}
	return byName, nil
}

func (t *Tokenizer) addToken(id int32, name string, k kind) {
	text := name
	if k == kindNormal || k == kindByte {
		if b, ok := unmapBytes(name); ok {
			text = b
		}
		t.byText[text] = id
	}
	if k == kindUser {
		t.user.add(name, id)
	}
	if k == kindUser || k.special() {
		t.special.add(name, id)
	}
	t.text[id], t.kind[id], t.whole[id] = text, k, utf8.ValidString(text)
}

func (t *Tokenizer) loadMerges(f *gguf.File, byName map[string]int32) ([]string, error) {
	merges, ok := f.Strings("tokenizer.ggml.merges")
	if !ok {
		return nil, fmt.Errorf("tokenizer.ggml.merges is missing or no array of strings (%q)", f.Kind("tokenizer.ggml.merges"))
	}
	if len(merges) > vocabMost {
		return nil, fmt.Errorf("tokenizer.ggml.merges has %d strings, allowed are %d", len(merges), vocabMost)
	}
	t.merges = newMergeTable(len(merges))
	for rank, m := range merges {
		// The space stands between the two; in byte-level names a space byte is written Ġ.
		left, right, ok := strings.Cut(m, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return nil, fmt.Errorf("tokenizer.ggml.merges: merge %d is %q, needed are two tokens with one space between", rank, m)
		}
		var ids [3]int32
		for i, name := range []string{left, right, left + right} {
			if ids[i], ok = byName[name]; !ok {
				return nil, fmt.Errorf("tokenizer.ggml.merges: merge %d (%q) needs %q, which is no token", rank, m, name)
			}
		}
		t.merges.add(ids[0], ids[1], int32(rank), ids[2])
	}
	return merges, nil
}

// loadEnds reads the begin token and the set of end tokens.
func (t *Tokenizer) loadEnds(f *gguf.File, addBOS bool) error {
	t.bos = -1
	id := func(key string) (int32, error) {
		if f.Kind(key) == "" {
			return -1, nil
		}
		n, ok := f.Uint(key)
		if !ok || n >= uint64(len(t.text)) {
			return -1, fmt.Errorf("%s is %d (%s), allowed are 0 to %d", key, n, f.Kind(key), len(t.text)-1)
		}
		return int32(n), nil
	}
	var err error
	if t.bos, err = id("tokenizer.ggml.bos_token_id"); err != nil {
		return err
	}
	if f.Kind("tokenizer.ggml.add_bos_token") != "" {
		var ok bool
		if addBOS, ok = f.Bool("tokenizer.ggml.add_bos_token"); !ok {
			return fmt.Errorf("tokenizer.ggml.add_bos_token is of type %s, needed is bool", f.Kind("tokenizer.ggml.add_bos_token"))
		}
	}
	t.addBOS = addBOS && t.bos >= 0
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"} {
		n, err := id(key)
		if err != nil {
			return err
		}
		if n >= 0 {
			t.eos = append(t.eos, n)
		}
	}
	t.mainEOS, _ = id("tokenizer.ggml.eos_token_id") // checked above
	for n, k := range t.kind {
		if k == kindControl && slices.Contains(endNames, t.text[n]) {
			t.eos = append(t.eos, int32(n))
		}
	}
	slices.Sort(t.eos)
	t.eos = slices.Compact(t.eos)
	return nil
}

// sum computes the digest over everything that decides ids and texts.
func (t *Tokenizer) sum(model, pre string, merges []string) {
	h := xxh3.New()
	text := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.WriteString(s)
	}
	text(model)
	text(pre)
	for i, s := range t.text {
		text(s)
		h.Write([]byte{byte(t.kind[i])})
	}
	for _, m := range merges {
		text(m)
	}
	text(fmt.Sprint(t.bos, t.addBOS, t.eos))
	t.digest = h.Sum64()
}

// byteOfRune maps the characters by which byte-level vocabularies write bytes back to them:
// printable Latin-1 stands for itself, the other 68 bytes are U+0100 and up.
var byteOfRune = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	up := rune(0x100)
	for b := rune(0); b < 256; b++ {
		if 33 <= b && b <= 126 || 161 <= b && b <= 172 || 174 <= b {
			m[b] = byte(b)
			continue
		}
		m[up] = byte(b)
		up++
	}
	return m
}()

// unmapBytes returns the bytes for which a byte-level name stands, or false if it is no such
// name.
func unmapBytes(name string) (string, bool) {
	out := make([]byte, 0, len(name))
	for _, r := range name {
		b, ok := byteOfRune[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}
