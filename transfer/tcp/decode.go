package tcp

import (
	"baton/core/room"
	"baton/transfer"
)

// Decode is the dialling end of links.
type Decode struct{}

// NewDecode makes an end without links.
func NewDecode(id Identity, mem transfer.Memory, h DecodeHandler) *Decode { panic("not yet") }

// Dial makes a link; LinkUp or LinkFailed follows.
func (d *Decode) Dial(peer int32, addr string) { panic("not yet") }

// Prealloc tells prefill of a lease.
func (d *Decode) Prealloc(c room.Conn, p room.Prealloc) { panic("not yet") }

// Cancel gives a lease up.
func (d *Decode) Cancel(c room.Conn, x room.Cancel) { panic("not yet") }

// Stats counts since the start.
func (d *Decode) Stats() transfer.Stats { panic("not yet") }

// Close ends every link and waits until nothing moves.
func (d *Decode) Close() error { panic("not yet") }

var _ transfer.Decode = (*Decode)(nil)
