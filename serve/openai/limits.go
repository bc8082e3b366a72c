package openai

import "baton/core/room"

// Bounds on what one request may hold. They bound memory and work before a worker is asked.
const (
	FieldsMax      = 256              // fields of one object: all that are known, four times over
	MessagesMax    = 4096             // messages of a chat: agents keep some hundred, 4096 is ten times that
	PartsMax       = 1024             // content parts of one message
	PromptsMax     = 16               // prompts of one completion request; each takes a place in the running set
	StopMax        = 16               // stop strings: OpenAI allows 4, SGLang's and vLLM's clients send more
	StopBytesMax   = 512              // bytes of one stop string; held back text is bounded by it
	StopIDsMax     = 64               // stop token ids
	TopLogprobsMax = 20               // OpenAI's bound for chat
	LogprobsMax    = 5                // OpenAI's bound for completions
	TokensMax      = 1 << 20          // token ids in one prompt; the context's bound is checked later
	ChoicesMax     = room.BranchesMax // choices for one prompt; what they may take together is CheckContext's
	BadWordsMax    = 64               // bad_words: each becomes one or two sequences of tokens, of which sample.BadMax may be
	ToolsMax       = 128              // tools of a chat (OpenAI)
	ToolCallsMax   = 128              // calls of one message of the history: as many as there may be tools
	NameBytesMax   = 256              // of ids of calls, and of names of those who speak
	ChoiceMax      = 1024             // strings of guided_choice
	ChoiceBytesMax = 1024             // bytes of one of them
	KwargsBytesMax = 16 << 10         // chat_template_kwargs: a handful of switches, or a date
	DocumentsMax   = 1024             // documents for a template of retrieval
)

// BodyBytesMax is the default bound of a request body: a million token ids of seven digits
// with their commas are 8 MB.
const BodyBytesMax = 8 << 20
