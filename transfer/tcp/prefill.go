package tcp

import (
	"baton/core/room"
	"baton/transfer"
)

// Prefill is the listening end of links.
type Prefill struct{}

// Listen opens addr ("127.0.0.1:0") for decode workers.
func Listen(addr string, id Identity, mem transfer.Memory, h PrefillHandler) (*Prefill, error) {
	panic("not yet")
}

// Settle sends the final word on a lease.
func (p *Prefill) Settle(s room.Settled) { panic("not yet") }

// Write sends a chunk; exactly one WriteDone follows.
func (p *Prefill) Write(w Write) { panic("not yet") }

// Addr is where decode workers dial.
func (p *Prefill) Addr() string { panic("not yet") }

// Stats counts since the start.
func (p *Prefill) Stats() transfer.Stats { panic("not yet") }

// Close ends every link and waits until nothing moves.
func (p *Prefill) Close() error { panic("not yet") }

var _ transfer.Prefill = (*Prefill)(nil)
