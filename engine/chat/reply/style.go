package reply

// Calls is how a model writes tool calls.
type Calls uint8

const (
	// NoCalls: the text is never a call.
	NoCalls Calls = iota
	// Hermes and Qwen: <tool_call>{"name": …, "arguments": {…}}</tool_call>, repeated.
	Hermes
	// Llama 3: the whole reply is {"name": …, "parameters": {…}}, several in a list or with ";"
	// between them; <|python_tag|> may stand in front.
	Llama
)

// Style is how replies to a template's prompts are written.
type Style struct {
	Calls Calls
	// Thinks: <think>…</think> stands in front of the reply and is no content.
	Thinks bool
	// Open: the prompt ends inside of thoughts, so that the reply begins with them.
	Open bool
	// Special: marks of these are special tokens of the model, whose text a decoder has to keep
	// (skip_special_tokens false), or nobody sees them.
	Special bool
}

// Options say what a request wants of its reply.
type Options struct {
	// Names are the tools; a call of another one is content. Empty: any name is one.
	Names []string
	// One: only the first call is one (parallel_tool_calls false), what follows it is content.
	One bool
	// Whole: a call is put out when all of it is there, and one that ends too early or is no JSON
	// is content, all of it. Without it, arguments are put out as they come, and where they break
	// the call has ended, and what follows is content.
	Whole bool
}
