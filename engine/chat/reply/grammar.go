package reply

import (
	"encoding/json"

	"baton/engine/grammar"
)

// Tool is a function that may be called.
type Tool struct {
	Name       string
	Parameters json.RawMessage // JSON schema of the arguments; nil: any object
}

// grammarCallsMax is how many calls a grammar lets a reply have: an agent's step has a few.
const grammarCallsMax = 8

// Grammar is the form of a reply that is calls of these tools and nothing else, at least one, and
// with one set exactly one. Thoughts are not in it. It is nil of a style without calls.
func (s Style) Grammar(tools []Tool, one bool) *grammar.Spec {
	var calls [][]grammar.Part
	several := s.Calls == Hermes && !one
	for _, t := range tools {
		schema := t.Parameters
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		name, err := json.Marshal(t.Name)
		if err != nil { // a string always prints
			panic("reply: " + err.Error())
		}
		var call []grammar.Part
		switch s.Calls {
		case Hermes:
			call = s.hermes("\n"+`{"name": `+string(name)+`, "arguments": `, schema)
		case Llama:
			call = []grammar.Part{{Text: `{"name": ` + string(name) + `, "parameters": `}, {Schema: schema}, {Text: "}"}}
		default:
			return nil
		}
		if several {
			call = append(call, grammar.Part{Regex: "\n?"}) // between two
		}
		calls = append(calls, call)
	}
	all := grammar.Part{Any: calls}
	if several {
		all.Min, all.Max = 1, grammarCallsMax
	}
	return &grammar.Spec{Kind: grammar.KindSequence, Parts: []grammar.Part{all}}
}

// hermes is one of Hermes' calls: head stands in front of its arguments. Marks that are special
// tokens may come as these, so they are parts of their own.
func (s Style) hermes(head string, arguments json.RawMessage) []grammar.Part {
	if !s.Special {
		return []grammar.Part{{Text: callOpen + head}, {Schema: arguments}, {Text: "}\n" + callClose}}
	}
	return []grammar.Part{{Text: callOpen, Special: true}, {Text: head}, {Schema: arguments}, {Text: "}\n"}, {Text: callClose, Special: true}}
}
