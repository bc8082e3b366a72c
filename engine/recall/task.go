package recall

import (
	"math/rand/v2"

	"baton/engine/chat"
)

// GGUF returns the embedded model file, read only.
func GGUF() []byte { panic("not yet") }

// MostFacts is the largest number of facts for which the model was trained.
const MostFacts = 170

// Fact is one line of a prompt: "The code of NAME is CODE."
type Fact struct{ Name, Code string }

// Prompt is a set of facts to ask about.
type Prompt struct{ Facts []Fact }

// Turn is a question and its one right answer.
type Turn struct{ Question, Answer string }

// NewPrompt draws facts (0 to MostFacts of them; more is a fault of the caller and panics), with
// different names and different second words.
func NewPrompt(r *rand.Rand, facts int) Prompt { panic("not yet") }

// Statement returns the facts as a prompt states them.
func (p Prompt) Statement() string { panic("not yet") }

// Messages returns a conversation that asks question: the statement as the system message.
func (p Prompt) Messages(question string) []chat.Message { panic("not yet") }

// UserMessages is Messages with statement and question in one user message.
func (p Prompt) UserMessages(question string) []chat.Message { panic("not yet") }

// Ask asks for the code of one name; for a name without a fact the right answer says so.
func (p Prompt) Ask(name string) Turn { panic("not yet") }

// AskOne asks for the code of one of the facts, drawn by r.
func (p Prompt) AskOne(r *rand.Rand) Turn { panic("not yet") }

// AskSeveral asks for the codes of 2 to 6 names.
func (p Prompt) AskSeveral(names ...string) Turn { panic("not yet") }

// AskAbsent asks for a name that has no fact.
func (p Prompt) AskAbsent(r *rand.Rand) Turn { panic("not yet") }

// Repeat asks for all facts.
func (p Prompt) Repeat() Turn { panic("not yet") }

// Names and Words return the closed vocabulary. The slices are shared, read only.
func Names() []string { panic("not yet") }
func Words() []string { panic("not yet") }
