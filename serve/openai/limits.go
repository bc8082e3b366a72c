package openai

// Bounds on what one request may hold. They bound memory and work before a worker is asked.
const (
	FieldsMax      = 256     // fields of one object: all that are known, four times over
	MessagesMax    = 4096    // messages of a chat: agents keep some hundred, 4096 is ten times that
	PartsMax       = 1024    // content parts of one message
	PromptsMax     = 16      // prompts of one completion request; each takes a place in the running set
	StopMax        = 16      // stop strings: OpenAI allows 4, SGLang's and vLLM's clients send more
	StopBytesMax   = 512     // bytes of one stop string; held back text is bounded by it
	StopIDsMax     = 64      // stop token ids
	TopLogprobsMax = 20      // OpenAI's bound for chat
	LogprobsMax    = 5       // OpenAI's bound for completions
	TokensMax      = 1 << 20 // token ids in one prompt; the context's bound is checked later
)

// BodyBytesMax is the default bound of a request body: a million token ids of seven digits
// with their commas are 8 MB.
const BodyBytesMax = 8 << 20
