package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"baton/engine/tokenizer/nfc"
	"baton/engine/tokenizer/split"
)

// Bounds of what one part of tokenizer.json may hold: DeepSeek's four steps are the most in use.
const (
	stepsMost = 64
	depthMost = 8
)

// step is one step of a normalizer, a pre-tokenizer, a post-processor or a decoder: their types
// share most fields.
type step struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`   // Sequence
	Pretokenizers []json.RawMessage `json:"pretokenizers"` // Sequence
	Processors    []json.RawMessage `json:"processors"`    // Sequence
	Decoders      []json.RawMessage `json:"decoders"`      // Sequence

	Pattern        *pattern `json:"pattern"`           // Replace, Split
	Content        string   `json:"content"`           // Replace, Strip
	Prepend        string   `json:"prepend"`           // Prepend
	Behavior       string   `json:"behavior"`          // Split, Punctuation
	Invert         bool     `json:"invert"`            // Split
	Individual     bool     `json:"individual_digits"` // Digits
	AddPrefixSpace *bool    `json:"add_prefix_space"`  // ByteLevel, Metaspace
	UseRegex       *bool    `json:"use_regex"`         // ByteLevel
	Replacement    string   `json:"replacement"`       // Metaspace
	PrependScheme  string   `json:"prepend_scheme"`    // Metaspace
	Split          *bool    `json:"split"`             // Metaspace
	Delimiter      string   `json:"delimiter"`         // CharDelimiterSplit

	Single        []templateItem             `json:"single"`         // TemplateProcessing
	SpecialTokens map[string]templateSpecial `json:"special_tokens"` // TemplateProcessing
}

type pattern struct {
	String *string
	Regex  *string
}

type templateItem struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct{}
}

type templateSpecial struct {
	IDs []int64 `json:"ids"`
}

// readSteps returns the steps of a part with sequences taken apart; none for null.
func readSteps(raw json.RawMessage, depth int) ([]step, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if depth > depthMost {
		return nil, fmt.Errorf("sequences inside sequences, allowed are %d", depthMost)
	}
	var s step
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	if s.Type != "Sequence" {
		return []step{s}, nil
	}
	var all []step
	for _, list := range [][]json.RawMessage{s.Normalizers, s.Pretokenizers, s.Processors, s.Decoders} {
		for _, inner := range list {
			more, err := readSteps(inner, depth+1)
			if err != nil {
				return nil, err
			}
			if all = append(all, more...); len(all) > stepsMost {
				return nil, fmt.Errorf("more than %d steps", stepsMost)
			}
		}
	}
	return all, nil
}

func isTrue(b *bool, missing bool) bool {
	if b == nil {
		return missing
	}
	return *b
}

// readNormalizer returns nil for a normalizer that changes nothing.
func readNormalizer(raw json.RawMessage) (func(string, *split.Limit) string, error) {
	steps, err := readSteps(raw, 0)
	if err != nil {
		return nil, err
	}
	var all []func(string, *split.Limit) string
	for _, s := range steps {
		f, err := s.normalizer()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return func(s string, l *split.Limit) string {
		for _, f := range all {
			s = f(s, l)
		}
		return s
	}, nil
}

func (s *step) normalizer() (func(string, *split.Limit) string, error) {
	switch s.Type {
	case "NFC":
		return func(text string, _ *split.Limit) string { return nfc.String(text) }, nil
	case "Prepend":
		return func(text string, _ *split.Limit) string {
			if text == "" {
				return text
			}
			return s.Prepend + text
		}, nil
	case "Replace":
		switch p := s.Pattern; {
		case p != nil && p.String != nil && *p.String != "":
			return func(text string, _ *split.Limit) string { return strings.ReplaceAll(text, *p.String, s.Content) }, nil
		case p != nil && p.Regex != nil:
			return split.Replace(*p.Regex, s.Content)
		}
		return nil, errors.New("a Replace has no pattern, needed is a String that is not empty or a Regex")
	}
	return nil, fmt.Errorf("%q is not supported, supported are NFC, Prepend, Replace and Sequence", s.Type)
}

// cutting is what a pre-tokenizer does; see Tokenizer.
type cutting struct {
	split   split.Func
	stage   func(atStart bool) split.Stage
	ofBytes bool
}

func readPreTokenizer(raw json.RawMessage) (cutting, error) {
	var c cutting
	steps, err := readSteps(raw, 0)
	if err != nil || len(steps) == 0 {
		return c, err
	}
	var exprs []string // as long as all steps are isolated expressions
	plain := true
	var stages [2][]split.Stage // not at the start of the text, at it
	for i := range steps {
		s := &steps[i]
		if c.ofBytes {
			return c, errors.New("the step ByteLevel is not the last step")
		}
		c.ofBytes = s.Type == "ByteLevel"
		switch {
		case s.Type == "Split" && s.Behavior == "Isolated" && !s.Invert && s.Pattern != nil && s.Pattern.Regex != nil:
			exprs = append(exprs, *s.Pattern.Regex)
		case !c.ofBytes || isTrue(s.AddPrefixSpace, true) || isTrue(s.UseRegex, true):
			plain = false
		}
		for start := range stages {
			stage, err := s.stage(start == 1)
			if err != nil {
				return c, err
			}
			stages[start] = append(stages[start], stage)
		}
	}
	if plain {
		if f, ok := split.Fuse(exprs); ok {
			c.split = f
			return c, nil
		}
	}
	if c.split = fused(steps); c.split != nil {
		return c, nil
	}
	inner, first := split.Sequence(stages[0]...), split.Sequence(stages[1]...)
	c.stage = func(atStart bool) split.Stage {
		if atStart {
			return first
		}
		return inner
	}
	return c, nil
}

// fused returns the Func of steps that are written out: GPT-2's, alone or after digits.
func fused(steps []step) split.Func {
	last := &steps[len(steps)-1]
	if last.Type != "ByteLevel" || isTrue(last.AddPrefixSpace, true) || !isTrue(last.UseRegex, true) {
		return nil
	}
	switch {
	case len(steps) == 1:
		return split.GPT2
	case len(steps) == 2 && steps[0].Type == "Digits" && steps[0].Individual:
		return split.SmolLM
	}
	return nil
}

// stage makes a Stage of a step of a pre-tokenizer.
func (s *step) stage(atStart bool) (split.Stage, error) {
	b, ok := split.Behaviors[s.Behavior]
	switch s.Type {
	case "Split":
		switch p := s.Pattern; {
		case !ok:
			return nil, fmt.Errorf("the behavior of Split is %q, allowed are Isolated, Removed, MergedWithPrevious, MergedWithNext and Contiguous", s.Behavior)
		case p != nil && p.String != nil:
			return split.Literal(*p.String, b, s.Invert), nil
		case p != nil && p.Regex != nil:
			return split.Expression(*p.Regex, b, s.Invert)
		}
		return nil, errors.New("a Split has no pattern, needed is a String or a Regex")
	case "Digits":
		return split.Digits(s.Individual), nil
	case "Punctuation":
		return split.Punctuation(b), nil // Isolated where it does not say
	case "WhitespaceSplit":
		return split.Whitespace(), nil
	case "CharDelimiterSplit":
		return split.Literal(s.Delimiter, split.Removed, false), nil
	case "Metaspace":
		return s.metaspace(atStart)
	case "ByteLevel":
		var all []split.Stage
		if isTrue(s.AddPrefixSpace, true) {
			all = append(all, split.Prefix(" "))
		}
		if isTrue(s.UseRegex, true) {
			all = append(all, split.Func(split.GPT2).Stage())
		}
		return split.Sequence(all...), nil
	}
	return nil, fmt.Errorf("%q is not supported, supported are ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split and WhitespaceSplit", s.Type)
}

// metaspace writes spaces as another character, puts one in front, and cuts in front of each.
func (s *step) metaspace(atStart bool) (split.Stage, error) {
	mark := s.Replacement
	scheme := s.PrependScheme
	if scheme == "" { // files from before there was one
		if scheme = "always"; !isTrue(s.AddPrefixSpace, true) {
			scheme = "never"
		}
	}
	if mark == "" {
		return nil, errors.New("a Metaspace has no replacement")
	}
	all := []split.Stage{func(text string, _ *split.Limit, yield func(string)) { yield(strings.ReplaceAll(text, " ", mark)) }}
	switch {
	case scheme == "always", scheme == "first" && atStart:
		all = append(all, split.Prefix(mark))
	case scheme != "first" && scheme != "never":
		return nil, fmt.Errorf("the prepend_scheme of Metaspace is %q, allowed are always, first and never", scheme)
	}
	if isTrue(s.Split, true) {
		all = append(all, split.Literal(mark, split.MergedWithNext, false))
	}
	return split.Sequence(all...), nil
}

// readDecoder returns the function that gives a token's text. What decoders take away at the start
// of a text (Strip, Metaspace) stays: a stream goes on where a prompt ends.
func readDecoder(raw json.RawMessage, ofBytes bool) (func(name string, k Kind) string, error) {
	steps, err := readSteps(raw, 0)
	if err != nil {
		return nil, err
	}
	fallback, sawBytes := false, false
	var pairs []string // what becomes what
	for _, s := range steps {
		switch s.Type {
		case "ByteLevel":
			sawBytes = true
		case "ByteFallback":
			fallback = true
		case "Fuse", "Strip":
		case "Metaspace":
			pairs = append(pairs, s.Replacement, " ")
		case "Replace":
			if s.Pattern == nil || s.Pattern.String == nil || *s.Pattern.String == "" {
				return nil, errors.New("a Replace has no pattern, needed is a String that is not empty")
			}
			pairs = append(pairs, *s.Pattern.String, s.Content)
		default:
			return nil, fmt.Errorf("%q is not supported, supported are ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence and Strip", s.Type)
		}
	}
	if sawBytes != ofBytes && !(ofBytes && len(steps) == 0) {
		return nil, fmt.Errorf("pre-tokenizer and decoder do not belong together: one of them writes bytes (ByteLevel), the other does not")
	}
	return func(name string, k Kind) string {
		if ofBytes {
			if k == Normal {
				return unmapBytes(name)
			}
			return name
		}
		if b, ok := byteOfName(name); ok && (k == Byte || fallback && k == Normal) {
			return string([]byte{b})
		}
		for i := 0; i < len(pairs); i += 2 {
			name = strings.ReplaceAll(name, pairs[i], pairs[i+1])
		}
		return name
	}, nil
}

// readPostProcessor returns the begin token that is put in front of a text, -1 if there is none.
// End tokens behind it are left out: a text is there to be continued.
func readPostProcessor(raw json.RawMessage, vocab int) (bos int32, add bool, err error) {
	steps, err := readSteps(raw, 0)
	if err != nil {
		return -1, false, err
	}
	bos = -1
	for _, s := range steps {
		switch s.Type {
		case "ByteLevel":
			continue
		case "TemplateProcessing":
		default:
			return -1, false, fmt.Errorf("%q is not supported, supported are ByteLevel, Sequence and TemplateProcessing", s.Type)
		}
		for _, item := range s.Single {
			if item.SpecialToken == nil {
				break
			}
			ids := s.SpecialTokens[item.SpecialToken.ID].IDs
			if add || len(ids) != 1 || ids[0] < 0 || ids[0] >= int64(vocab) {
				return -1, false, fmt.Errorf("the TemplateProcessing puts %q (tokens %d) in front, supported is one token of the vocabulary", item.SpecialToken.ID, ids)
			}
			bos, add = int32(ids[0]), true
		}
	}
	return bos, add, nil
}
