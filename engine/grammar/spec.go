package grammar

import (
	"encoding/json"
	"fmt"
	"runtime"
	"unicode/utf8"
)

// Kind says which form a Spec has.
type Kind string

// The kinds of a Spec.
const (
	KindObject   Kind = "json_object" // any JSON object
	KindSchema   Kind = "json_schema" // a JSON document that fits Schema
	KindRegex    Kind = "regex"       // a text that Regex matches as a whole
	KindChoice   Kind = "choice"      // one of Choice
	KindSequence Kind = "sequence"    // Parts, one after the other
)

// Bounds of a Spec. (Those of schemas and expressions stand where these are read.)
const (
	// ChoiceMax is how many texts a choice may have, ChoiceBytesMax how many bytes in all.
	ChoiceMax      = 4096
	ChoiceBytesMax = 128 << 10
	// PartsMax bounds the parts of a sequence, those inside alternatives included: a request may
	// have 128 tools (OpenAI), each with a schema and some text around it.
	PartsMax = 2048
	// PartsDepthMax bounds alternatives inside alternatives.
	PartsDepthMax = 8
	// MarksMax bounds the names that parts with Special have: each stands for a byte that UTF-8
	// never has (see markByte).
	MarksMax = 8
	// RepeatMax bounds how often a part may stand.
	RepeatMax = 1024
	// SchemasBytesMax bounds the schemas of a sequence together.
	SchemasBytesMax = 1 << 20
	// TextBytesMax bounds one literal text, UntilBytesMax the end of one that is free.
	TextBytesMax  = 16 << 10
	UntilBytesMax = 256
)

// Spec says what a generation has to look like. It travels from the gateway to the workers as
// JSON and counts in the digest of a request; who gets one calls Validate before anything else.
type Spec struct {
	Kind   Kind            `json:"kind"`
	Schema json.RawMessage `json:"schema,omitempty"` // json_schema
	Loose  bool            `json:"loose,omitempty"`  // objects may have more than their properties where additionalProperties is not said
	Regex  string          `json:"regex,omitempty"`  // regex: RE2 syntax, always matched as a whole
	Choice []string        `json:"choice,omitempty"` // choice
	Parts  []Part          `json:"parts,omitempty"`  // sequence
}

// Part is one step of a sequence: exactly one of Text, Schema, Regex, Until and Any is set.
//
// A Part with Min and Max both 0 stands once. Otherwise it stands Min to Max times, and may not
// be able to match the empty text. (An optional part has Min 0 and Max 1.)
type Part struct {
	Text   string          `json:"text,omitempty"`   // these bytes
	Schema json.RawMessage `json:"schema,omitempty"` // a JSON document, as json_schema
	Regex  string          `json:"regex,omitempty"`  // as regex
	Until  string          `json:"until,omitempty"`  // any text up to and with the first of these
	Any    [][]Part        `json:"any,omitempty"`    // one of these sequences

	// Special: Text, or the end of what Until says, may also be the control token of this name, if
	// the vocabulary has one (as some have for <tool_call> and </think>).
	Special bool `json:"special,omitempty"`

	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
}

// Validate returns "" if s can be compiled, otherwise a sentence that names what is wrong (in a
// schema: the keyword and its JSON pointer) and what is allowed. It needs no vocabulary, and its
// work is bounded, also for hostile input (workMost). No more of them run at a time than there are
// processors, so that many requests take no more memory than a few.
func (s *Spec) Validate() (message string) {
	validating <- struct{}{}
	defer func() { <-validating }()
	n := newNet()
	err := s.build(n)
	if err == nil {
		_, err = n.settle(allBytes())
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// validating holds one for each Validate that runs.
var validating = make(chan struct{}, runtime.GOMAXPROCS(0))

func allBytes() *[256]bool {
	var has [256]bool
	for i := range has {
		has[i] = true
	}
	return &has
}

// build makes the automaton of s; its rule 0 is the whole.
func (s *Spec) build(n *net) error {
	top := n.newRule("the whole")
	b := newBuilder(n)
	start, err := s.start(b)
	if err != nil {
		return err
	}
	n.rules[top].start = start
	if err := n.check(); err != nil {
		return fmt.Errorf("%s: %w", s.Kind, err)
	}
	return nil
}

func (s *Spec) start(b *builder) (int32, error) {
	b.loose = s.Loose
	switch s.Kind {
	case KindObject:
		return b.members(nil, nil, b.anyValue()), nil
	case KindSchema:
		r, err := b.document(s.Schema, s.Loose)
		if err != nil {
			return 0, fmt.Errorf("json_schema: %w", err)
		}
		return b.call(r, end), nil
	case KindRegex:
		at, err := b.regex(s.Regex, regexForm{max: -1}, end)
		if err != nil {
			return 0, fmt.Errorf("regex: %w", err)
		}
		return at, nil
	case KindChoice:
		return s.choice(b, end)
	case KindSequence:
		if len(s.Parts) == 0 {
			return 0, fmt.Errorf("sequence: it has no parts, needed is at least one")
		}
		q := sequence{builder: b, loose: s.Loose, schemas: map[string]int32{}}
		at, err := q.parts(s.Parts, 0, end)
		if err != nil {
			return 0, fmt.Errorf("sequence: %w", err)
		}
		return at, nil
	}
	return 0, fmt.Errorf("the kind of a grammar is %s, allowed are json_object, json_schema, regex, choice and sequence", quote(string(s.Kind)))
}

func (s *Spec) choice(b *builder, to int32) (int32, error) {
	if len(s.Choice) == 0 || len(s.Choice) > ChoiceMax {
		return 0, fmt.Errorf("choice: it has %d texts, allowed are 1 to %d", len(s.Choice), ChoiceMax)
	}
	n := 0
	for i, c := range s.Choice {
		if n += len(c); n > ChoiceBytesMax {
			return 0, fmt.Errorf("choice: its texts have more than %d bytes", ChoiceBytesMax)
		}
		if !utf8.ValidString(c) {
			return 0, fmt.Errorf("choice: text %d is not valid UTF-8", i)
		}
	}
	return b.texts(s.Choice, to), nil
}

// texts returns the alternatives if each is one text and nothing else, otherwise nil.
func texts(any [][]Part) (list []string) {
	for _, parts := range any {
		if len(parts) != 1 || parts[0].Text == "" || parts[0].Special || parts[0].Min != 0 || parts[0].Max != 0 ||
			parts[0].Schema != nil || parts[0].Regex != "" || parts[0].Until != "" || parts[0].Any != nil {
			return nil
		}
		list = append(list, parts[0].Text)
	}
	return list
}

// sequence builds parts.
type sequence struct {
	*builder
	loose bool
	count int // parts so far
	bytes int // of schemas so far

	schemas map[string]int32 // rules of schemas that were built, by their text
}

func (q *sequence) parts(list []Part, depth int, to int32) (int32, error) {
	if depth > PartsDepthMax {
		return 0, fmt.Errorf("alternatives nest deeper than %d levels", PartsDepthMax)
	}
	for i := len(list) - 1; i >= 0; i-- {
		q.spend(4)
		if q.count++; q.count > PartsMax {
			return 0, fmt.Errorf("it has more than %d parts", PartsMax)
		}
		at, err := q.part(&list[i], depth, to)
		if err == nil {
			err = q.err
		}
		if err != nil {
			return 0, fmt.Errorf("part %d: %w", i, err)
		}
		to = at
	}
	return to, nil
}

func (q *sequence) part(p *Part, depth int, to int32) (int32, error) {
	if p.Special && (p.Text == "") == (p.Until == "") {
		return 0, fmt.Errorf("special is set, which is for a text or an until")
	}
	if p.Min == 0 && p.Max == 0 {
		return q.once(p, depth, to)
	}
	if p.Min < 0 || p.Max < p.Min || p.Max > RepeatMax {
		return 0, fmt.Errorf("it stands %d to %d times, allowed are 0 to %d", p.Min, p.Max, RepeatMax)
	}
	start, err := q.once(p, depth, end)
	if err != nil {
		return 0, err
	}
	return q.repeat(q.ruleOf("a part", start), p.Min, p.Max, to), nil
}

func (q *sequence) once(p *Part, depth int, to int32) (int32, error) {
	set := 0
	for _, is := range []bool{p.Text != "", len(p.Schema) > 0, p.Regex != "", p.Until != "", len(p.Any) > 0} {
		if is {
			set++
		}
	}
	if set != 1 {
		return 0, fmt.Errorf("%d of text, schema, regex, until and any are set, needed is exactly one", set)
	}
	switch {
	case p.Text != "":
		if len(p.Text) > TextBytesMax || !utf8.ValidString(p.Text) {
			return 0, fmt.Errorf("its text has %d bytes, allowed are %d of valid UTF-8", len(p.Text), TextBytesMax)
		}
		at := q.net.text(p.Text, to)
		if p.Special {
			at = q.split(at, q.byte(q.mark(p.Text), to))
		}
		return at, nil
	case len(p.Schema) > 0:
		if q.bytes += len(p.Schema); q.bytes > SchemasBytesMax {
			return 0, fmt.Errorf("the schemas have more than %d bytes together", SchemasBytesMax)
		}
		r, ok := q.schemas[string(p.Schema)]
		if !ok {
			var err error
			if r, err = q.document(p.Schema, q.loose); err != nil {
				return 0, fmt.Errorf("schema: %w", err)
			}
			q.schemas[string(p.Schema)] = r
		}
		return q.call(r, to), nil
	case p.Regex != "":
		return q.regex(p.Regex, regexForm{max: -1}, to)
	case p.Until != "":
		if len(p.Until) > UntilBytesMax || !utf8.ValidString(p.Until) {
			return 0, fmt.Errorf("its until has %d bytes, allowed are %d of valid UTF-8", len(p.Until), UntilBytesMax)
		}
		mark := byte(0)
		if p.Special {
			mark = q.mark(p.Until)
		}
		return q.until(p.Until, mark, to), nil
	}
	if list := texts(p.Any); list != nil {
		return (&Spec{Choice: list}).choice(q.builder, to)
	}
	if len(p.Any) > branchesMost {
		return 0, fmt.Errorf("it has %d alternatives, allowed are %d", len(p.Any), branchesMost)
	}
	starts := make([]int32, len(p.Any))
	for i := range p.Any {
		at, err := q.parts(p.Any[i], depth+1, to)
		if err != nil {
			return 0, fmt.Errorf("alternative %d: %w", i, err)
		}
		starts[i] = at
	}
	return q.split(starts...), nil
}
