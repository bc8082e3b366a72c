package leg

import (
	"time"

	"baton/core/room"
)

// Limits of what a worker takes from a gateway and a gateway from a worker. They bound memory
// before it is allocated; a worker's own limits (context length, blocks) are tighter.
const (
	// BodyBytesMax bounds a request's body: TokensMax ids of seven digits with a comma, and
	// room for the rest.
	BodyBytesMax = 8*TokensMax + 1<<20
	// TokensMax is the longest prompt: the longest context that any model of the families
	// that Baton serves was published with (1 Mi).
	TokensMax = 1 << 20
	// MaxTokensMax bounds the output for the same reason.
	MaxTokensMax = 1 << 20
	// SaltBytesMax is a digest in hexadecimal, as tenants' salts are.
	SaltBytesMax = 128
	// RIDBytesMax is four UUIDs: gateways chain their ids.
	RIDBytesMax = 160
	// LinkBytesMax is a DNS name (253) with a port.
	LinkBytesMax = 260
	// StopsMax and StopBytesMax: OpenAI allows 4 stop strings, vLLM more; matching costs
	// time per token, so both stay small.
	StopsMax     = 32
	StopBytesMax = 512
	// StopIDsMax bounds the extra end tokens of a request.
	StopIDsMax = 64
	// TopLogprobsMax is OpenAI's bound.
	TopLogprobsMax = 20
	// LeftMax bounds the time left: a week. Whoever needs more has lost the request.
	LeftMax = 7 * 24 * time.Hour
	// LineBytesMax bounds one line of the answer: PieceIDsMax tokens with TopLogprobsMax
	// alternatives each come to less.
	LineBytesMax = 1 << 20
	// PieceIDsMax is how many tokens one piece may carry: one step yields one token, but
	// tokens that were held back for a stop string come out together.
	PieceIDsMax = 4096
	// ChoicesMax bounds the choices of one request: they are the branches of one room. A worker's own
	// bound may be lower.
	ChoicesMax = room.BranchesMax
	// ParamBytesMax bounds the name of a field.
	ParamBytesMax = 64
	// MessageBytesMax bounds the human sentence of an end.
	MessageBytesMax = 4096
)
