package recall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"baton/engine/chat"
)

// MostFacts is the largest number of facts for which the model was trained: 170 facts, question
// and answer just fit its context of 2,048 tokens.
const MostFacts = 170

// Bounds of AskSeveral: what the model was trained for.
const (
	askLeast = 2
	askMost  = 6
)

const (
	// last ends every statement, so that a repetition knows its end.
	last = "The code of all others is unknown."
	// Other is the answer to everything that is not a question about codes. It is the one answer
	// that the model does not always give.
	Other = "I only answer questions about codes."
)

// Fact is one line of a prompt: "The code of NAME is CODE."
type Fact struct{ Name, Code string }

func (f Fact) String() string { return "The code of " + f.Name + " is " + f.Code + "." }

// Prompt is a set of facts to ask about. Names are all different, and so are the second words of
// the codes (so that a repetition never has two ways on).
type Prompt struct{ Facts []Fact }

// Turn is a question and its one right answer.
type Turn struct{ Question, Answer string }

// NewPrompt draws 1 to MostFacts facts. Another number is a fault of the program, which panics:
// whoever takes it from a user compares it with MostFacts first.
func NewPrompt(r *rand.Rand, facts int) Prompt {
	if facts < 1 || facts > MostFacts {
		panic(fmt.Sprintf("recall: %d facts, allowed are 1 to %d", facts, MostFacts))
	}
	p := Prompt{Facts: make([]Fact, facts)}
	who, second := r.Perm(len(names)), r.Perm(len(words))
	for i := range p.Facts {
		p.Facts[i] = Fact{names[who[i]], words[r.IntN(len(words))] + " " + words[second[i]]}
	}
	return p
}

// Statement returns the facts as a prompt states them, "" if there are none.
func (p Prompt) Statement() string {
	if len(p.Facts) == 0 {
		return ""
	}
	var b strings.Builder
	for _, f := range p.Facts {
		b.WriteString(f.String())
		b.WriteByte(' ')
	}
	b.WriteString(last)
	return b.String()
}

// Messages returns a conversation that asks question, with the statement as the system message.
func (p Prompt) Messages(question string) []chat.Message {
	if len(p.Facts) == 0 {
		return []chat.Message{{Role: "user", Content: question}}
	}
	return []chat.Message{{Role: "system", Content: p.Statement()}, {Role: "user", Content: question}}
}

// UserMessages is Messages with statement and question in one user message.
func (p Prompt) UserMessages(question string) []chat.Message {
	if len(p.Facts) == 0 {
		return p.Messages(question)
	}
	return []chat.Message{{Role: "user", Content: p.Statement() + "\n" + question}}
}

// Ask asks for the code of one name; for a name without a fact the right answer says so.
func (p Prompt) Ask(name string) Turn {
	return Turn{"What is the code of " + name + "?", p.answer(name)}
}

func (p Prompt) answer(name string) string {
	i := slices.IndexFunc(p.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return "The code of " + name + " is unknown."
	}
	return p.Facts[i].String()
}

// AskOne asks for the code of one of the facts, drawn by r. There must be a fact.
func (p Prompt) AskOne(r *rand.Rand) Turn { return p.Ask(p.Facts[r.IntN(len(p.Facts))].Name) }

// AskSeveral asks for the codes of 2 to 6 names that have facts, in this order. Another number
// is a fault of the program, which panics.
func (p Prompt) AskSeveral(who ...string) Turn {
	if len(who) < askLeast || len(who) > askMost {
		panic(fmt.Sprintf("recall: a question about %d names, allowed are %d to %d", len(who), askLeast, askMost))
	}
	answers := make([]string, len(who))
	for i, n := range who {
		answers[i] = p.answer(n)
	}
	list := strings.Join(who[:len(who)-1], ", ") + " and " + who[len(who)-1]
	return Turn{"What are the codes of " + list + "?", strings.Join(answers, " ")}
}

// AskAbsent asks for a name that has no fact, drawn by r.
func (p Prompt) AskAbsent(r *rand.Rand) Turn {
	for { // MostFacts is less than the number of names, so this ends
		n := names[r.IntN(len(names))]
		if !slices.ContainsFunc(p.Facts, func(f Fact) bool { return f.Name == n }) {
			return p.Ask(n)
		}
	}
}

// Repeat asks for the statement again, word for word.
func (p Prompt) Repeat() Turn { return Turn{"Repeat all facts.", p.Statement()} }
