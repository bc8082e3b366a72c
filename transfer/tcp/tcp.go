package tcp

import (
	"baton/transfer"
)

// The words of package transfer, under the names that callers of this plane use.
type (
	Identity       = transfer.Identity
	Chunk          = transfer.Chunk
	Write          = transfer.Write
	PrefillHandler = transfer.PrefillHandler
	DecodeHandler  = transfer.DecodeHandler
)
