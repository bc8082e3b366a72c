package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/engine/tokenizer/split"
)

// jsonBytesMost bounds tokenizer.json and each file beside it: Gemma's has 33 MB.
const jsonBytesMost = 256 << 20

// FromJSON builds the tokenizer that a tokenizer.json describes (BPE, of bytes or of characters);
// it gives the tokens that the Hugging Face library `tokenizers` gives, but for T2. configs are the
// files beside it that name its begin and end tokens, as far as there are any, those that count
// first in front: tokenizer_config.json (bos_token, eos_token, add_bos_token),
// generation_config.json and config.json (bos_token_id, eos_token_id, a number or a list). All end
// tokens that any of them names end a generation; the first that names one decides MainEOS and BOS.
func FromJSON(tokenizerJSON []byte, configs ...[]byte) (*Tokenizer, error) {
	t, err := fromJSON(tokenizerJSON, configs)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

// jsonFile is tokenizer.json, as far as it decides tokens.
type jsonFile struct {
	AddedTokens   []jsonAdded     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         jsonModel       `json:"model"`
}

type jsonAdded struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type jsonModel struct {
	Type         string     `json:"type"`
	Vocab        jsonVocab  `json:"vocab"`
	Merges       jsonMerges `json:"merges"`
	Unknown      string     `json:"unk_token"`
	Fuse         bool       `json:"fuse_unk"`
	ByteFallback bool       `json:"byte_fallback"`
	Wholes       bool       `json:"ignore_merges"`
	Dropout      float64    `json:"dropout"`
	WordPrefix   string     `json:"continuing_subword_prefix"`
	WordSuffix   string     `json:"end_of_word_suffix"`
}

func fromJSON(file []byte, configs [][]byte) (*Tokenizer, error) {
	if len(file) > jsonBytesMost {
		return nil, fmt.Errorf("tokenizer.json has %d bytes, allowed are %d", len(file), jsonBytesMost)
	}
	var j jsonFile
	if err := json.Unmarshal(file, &j); err != nil {
		return nil, fmt.Errorf("tokenizer.json cannot be read: %w", err)
	}
	if err := j.Model.check(); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	v, err := j.vocabulary()
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t, err := j.build(v)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if err := t.readConfigs(v, configs); err != nil {
		return nil, err
	}
	t.sum(compact(j.Normalizer), compact(j.PreTokenizer), compact(j.Decoder), fmt.Sprint(j.AddedTokens, j.Model.ByteFallback, j.Model.Wholes))
	return t, nil
}

func compact(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return "" // there is none
	}
	return out.String()
}

func (m *jsonModel) check() error {
	switch {
	case m.Type != "BPE" && !(m.Type == "" && len(m.Merges) > 0):
		return fmt.Errorf("model.type is %q, supported is \"BPE\"", m.Type)
	case len(m.Vocab) == 0:
		return errors.New("model.vocab is empty, or no object of names and ids")
	case m.WordPrefix != "":
		return fmt.Errorf("model.continuing_subword_prefix is %q, supported is none", m.WordPrefix)
	case m.WordSuffix != "":
		return fmt.Errorf("model.end_of_word_suffix is %q, supported is none", m.WordSuffix)
	case m.Dropout != 0:
		return fmt.Errorf("model.dropout is %v: it would give other tokens each time, needed is null", m.Dropout)
	}
	return nil
}

// vocabulary puts the model's tokens and the added ones together.
func (j *jsonFile) vocabulary() (*vocabulary, error) {
	count := len(j.Model.Vocab) + len(j.AddedTokens)
	// Some leave holes: ids that the model's matrix has and nobody uses.
	most := int64(min(vocabMost, 2*count+1<<16))
	v := &vocabulary{byName: make(map[string]int32, count)}
	set := func(name string, id int64, k Kind) error {
		switch {
		case id < 0 || id >= most:
			return fmt.Errorf("%q is token %d, allowed are 0 to %d for %d tokens", name, id, most-1, count)
		case len(name) > nameBytesMost:
			return fmt.Errorf("token %d (%.40q…) has %d bytes, allowed are %d", id, name, len(name), nameBytesMost)
		}
		if grow := int(id) + 1 - len(v.names); grow > 0 {
			v.names = append(v.names, make([]string, grow)...)
			v.kinds = append(v.kinds, make([]Kind, grow)...)
		}
		if first := v.names[id]; v.kinds[id] != 0 && first != name {
			return fmt.Errorf("%q and %q are both token %d", min(first, name), max(first, name), id)
		}
		if first, twice := v.byName[name]; twice && int64(first) != id {
			return fmt.Errorf("%q is token %d and token %d", name, first, id)
		}
		v.names[id], v.kinds[id], v.byName[name] = name, k, int32(id)
		return nil
	}
	for _, e := range j.Model.Vocab {
		k := Normal
		if _, ok := byteOfName(e.name); ok && j.Model.ByteFallback {
			k = Byte
		}
		if err := set(e.name, e.id, k); err != nil {
			return nil, fmt.Errorf("model.vocab: %w", err)
		}
	}
	for _, a := range j.AddedTokens {
		k := User
		if a.Special || looksSpecial(a.Content) {
			k = Control
		}
		if err := set(a.Content, a.ID, k); err != nil {
			return nil, fmt.Errorf("added_tokens: %w", err)
		}
	}
	if name := j.Model.Unknown; name != "" {
		id, ok := v.byName[name]
		if !ok {
			return nil, fmt.Errorf("model.unk_token is %q, which is no token", name)
		}
		v.kinds[id] = Unknown
	}
	for id, k := range v.kinds {
		if k == 0 {
			v.kinds[id] = Unused
		}
	}
	return v, nil
}

func (j *jsonFile) build(v *vocabulary) (*Tokenizer, error) {
	cut, err := readPreTokenizer(j.PreTokenizer)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	text, err := readDecoder(j.Decoder, cut.ofBytes)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if cut.ofBytes && j.Model.ByteFallback {
		return nil, errors.New("model.byte_fallback is true, but the pre-tokenizer ByteLevel writes all text as bytes already")
	}
	t := v.build(cut.ofBytes, text)
	t.split, t.stage, t.fuse = cut.split, cut.stage, j.Model.Fuse
	if name := j.Model.Unknown; name != "" {
		t.unknown = v.byName[name]
	}
	if t.normalize, err = readNormalizer(j.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if j.Model.Wholes {
		t.wholes = make(map[string]int32, len(v.names))
		for _, e := range j.Model.Vocab {
			switch id := int32(e.id); {
			case v.kinds[id].Special():
			case cut.ofBytes:
				t.wholes[unmapBytes(e.name)] = id
			default:
				t.wholes[strings.Clone(e.name)] = id
			}
		}
	}
	merge := func(rank int) (string, string, error) {
		return j.Model.Merges[rank][0], j.Model.Merges[rank][1], nil
	}
	if err := t.addMerges(v, len(j.Model.Merges), merge, true); err != nil {
		return nil, fmt.Errorf("model.merges: %w", err)
	}
	if t.wholes != nil {
		t.borders = nil // a piece that is a token counts as a whole only
	}
	if err := t.addAdded(j.AddedTokens); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	t.bos, t.addBOS, err = readPostProcessor(j.PostProcessor, len(t.text))
	if err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	return t, nil
}

// addAdded sets up the search for added tokens: those that are normalised are sought in the
// normalised text.
func (t *Tokenizer) addAdded(tokens []jsonAdded) error {
	limit := split.NewLimit(0)
	var plain, normal []addedName
	flags := map[int32]addedFlags{}
	for _, a := range tokens {
		var f addedFlags
		for bit, set := range map[addedFlags]bool{stripLeft: a.LStrip, stripRight: a.RStrip, singleWord: a.SingleWord} {
			if set {
				f |= bit
			}
		}
		if f != 0 {
			flags[int32(a.ID)] = f
		}
		switch {
		case !a.Normalized:
			plain = append(plain, addedName{a.Content, int32(a.ID)})
		case t.normalize != nil:
			normal = append(normal, addedName{t.normalize(a.Content, &limit), int32(a.ID)})
		default:
			normal = append(normal, addedName{a.Content, int32(a.ID)})
		}
	}
	t.added, t.addedNormal = newAdded(plain, flags), newAdded(normal, flags)
	return limit.Err
}

// readConfigs reads what the files beside tokenizer.json say about begin and end tokens.
func (t *Tokenizer) readConfigs(v *vocabulary, configs [][]byte) error {
	var ends []int32
	bosKnown, addKnown := false, false
	for _, raw := range configs {
		if len(raw) == 0 {
			continue
		}
		if len(raw) > jsonBytesMost {
			return fmt.Errorf("a config file has %d bytes, allowed are %d", len(raw), jsonBytesMost)
		}
		var c jsonConfig
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("a config file cannot be read: %w", err)
		}
		begin, err := c.ids(v, "bos_token", c.BOS, c.BOSID)
		if err != nil {
			return err
		}
		if len(begin) > 0 && !bosKnown {
			t.bos, bosKnown = begin[0], true
		}
		if c.AddBOS != nil && !addKnown {
			t.addBOS, addKnown = *c.AddBOS, true
		}
		end, err := c.ids(v, "eos_token", c.EOS, c.EOSID)
		if err != nil {
			return err
		}
		for _, id := range end {
			if !slices.Contains(ends, id) {
				ends = append(ends, id)
			}
		}
	}
	t.addBOS = t.addBOS && t.bos >= 0
	t.addEnds(ends)
	return nil
}

// jsonConfig is what any of the files beside tokenizer.json may say.
type jsonConfig struct {
	BOS    jsonName `json:"bos_token"`
	EOS    jsonName `json:"eos_token"`
	AddBOS *bool    `json:"add_bos_token"`
	BOSID  jsonIDs  `json:"bos_token_id"`
	EOSID  jsonIDs  `json:"eos_token_id"`
}

// ids returns the tokens that a config names by name or by number.
func (c *jsonConfig) ids(v *vocabulary, key string, name jsonName, numbers jsonIDs) ([]int32, error) {
	var ids []int32
	if name != "" {
		id, ok := v.byName[string(name)]
		if !ok {
			return nil, fmt.Errorf("%s is %q, which is no token", key, string(name))
		}
		ids = append(ids, id)
	}
	for _, n := range numbers {
		if n < 0 || n >= int64(len(v.names)) {
			return nil, fmt.Errorf("%s_id is %d, allowed are 0 to %d", key, n, len(v.names)-1)
		}
		ids = append(ids, int32(n))
	}
	return ids, nil
}

// jsonName is a token by name: a string, or an object with its content.
type jsonName string

func (n *jsonName) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		var object struct{ Content string }
		err := json.Unmarshal(b, &object)
		*n = jsonName(object.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// jsonIDs is one token by number, or a list, at most as many as any model names.
type jsonIDs []int64

func (l *jsonIDs) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		if err := json.Unmarshal(b, (*[]int64)(l)); err != nil {
			return err
		}
		if len(*l) > 64 {
			return fmt.Errorf("a list of %d end tokens, allowed are 64", len(*l))
		}
		return nil
	}
	var one *int64
	if err := json.Unmarshal(b, &one); err != nil || one == nil {
		return err
	}
	*l = jsonIDs{*one}
	return nil
}
